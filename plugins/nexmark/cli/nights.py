"""The verbs that run nights: run, build, backfill, bisect."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from nexmark.cli.shared_options import (
    Against,
    CandidateConf,
    ClusterName,
    Compatibility,
    Engine,
    EngineCluster,
    EngineWorkload,
    Mode,
    Optional,
    Port,
    Queries,
    Repetitions,
    Workload,
    confs_of,
    day,
    whole,
)

if TYPE_CHECKING:
    from nexmark.config import Config

_BUILD = "as pypi:4.3.0, tarball:PATH-OR-URL#sha512=HEX or directory:PATH"


def run(
    engine: Engine = None,
    workload: Workload = None,
    queries: Queries = None,
    repetitions: Repetitions = None,
    against: Against = None,
    cluster: ClusterName = None,
    mode: Mode = None,
    candidate_conf: CandidateConf = None,
    compatibility: Compatibility = None,
    candidate: Annotated[str | None, typer.Option(help=f"A build, {_BUILD}.")] = None,
    date: Annotated[str | None, typer.Option(help="As 2026-11-03 (default: today).")] = None,
) -> int:
    """Run the night of an engine; 0 if it is green, 1 if it is red or cannot be run."""
    from nexmark.cli.night_runner import engine_of, run_night
    from nexmark.cli.shared_options import given
    from nexmark.config import load

    moment = None if given(date) is None else day("--date", str(date))
    config = load()
    chosen = engine_of(config, engine)
    params = _at_the_prompt(
        config,
        workload=workload,
        queries=queries,
        repetitions=repetitions,
        against=against,
        cluster=cluster,
        mode=mode,
        candidate_conf=confs_of(candidate_conf),
        compatibility=compatibility,
        candidate=given(candidate),
    )
    return run_night(config, chosen.dag_id, chosen.name, params, moment)


def build(
    build: Annotated[str, typer.Option(help=f"The build to test, {_BUILD}.")] = "",
    against: Against = None,
    engine: Engine = None,
    workload: Workload = None,
    queries: Queries = None,
    repetitions: Repetitions = None,
    cluster: ClusterName = None,
    mode: Mode = None,
    candidate_conf: CandidateConf = None,
    compatibility: Compatibility = None,
) -> int:
    """Test any Spark build; 0 if it is as good, 1 if it is not or cannot be run."""
    from nexmark.cli.night_runner import engine_of, run_night
    from nexmark.config import BUILD_DAG_ID, load

    if not build.strip():
        raise typer.BadParameter(f"--build: none is given; give it {_BUILD}")
    config = load()
    name = engine_of(config, engine).name
    params = _at_the_prompt(
        config,
        workload=workload,
        queries=queries,
        repetitions=repetitions,
        against=against,
        cluster=cluster,
        mode=mode,
        candidate_conf=confs_of(candidate_conf),
        compatibility=compatibility,
    )
    return run_night(config, BUILD_DAG_ID, name, {"build": build, "engine": name, **params})


def _at_the_prompt(config: Config, **params: Any) -> dict[str, Any]:
    """Return the params that are given; at the prompt the workload is a small one."""
    found = {name: value for name, value in params.items() if value or value is False}
    return {"workload": "smoke", "cluster": next(iter(config.clusters)), **found}


def backfill(
    first: Annotated[str, typer.Option("--from", help="The first date, as 2026-11-01.")] = "",
    last: Annotated[str, typer.Option("--to", help="The last date.")] = "",
    engine: Engine = None,
    workload: EngineWorkload = None,
    queries: Queries = None,
    cluster: EngineCluster = None,
    reprocess: Annotated[
        Literal["none", "failed", "completed"],
        typer.Option(help="Dates that had a night: leave them, or run those again."),
    ] = "none",
    port: Port = 8080,
) -> int:
    """Run the nights of past dates; 0 if all nights that have a build are green."""
    from nexmark.cli import backfill as nights_of_dates

    for option, value in (("--from", first), ("--to", last)):
        if not value:
            raise typer.BadParameter(f"{option} is not given; give {option} 2026-11-03")
    days = (day("--from", first), day("--to", last))
    params = {"workload": workload, "queries": queries, "cluster": cluster}
    wanted = {name: value for name, value in params.items() if value}
    return nights_of_dates.run(engine, days, wanted, reprocess, port)


def bisect(
    good: Annotated[str, typer.Option(help="A build without the change, as pypi:4.3.0.")] = "",
    bad: Annotated[str, typer.Option(help="A later build with it.")] = "",
    builds: Annotated[str, typer.Option(help="Those between, in order: a file, or a,b,c.")] = "",
    query: Annotated[str, typer.Option(help="The query that changed.")] = "",
    engine: Engine = None,
    workload: EngineWorkload = None,
    cluster: EngineCluster = None,
    repetitions: Repetitions = None,
    measurements: Annotated[
        int, typer.Option(parser=whole(1, 10_000), metavar="N", help="The most nights to run.")
    ] = 40,
    airflow: Optional = None,
) -> int:
    """Find the build that brought a change, by nights; 0 if it is found.

    --airflow is the URL of a running Airflow whose scheduler runs the nights. Started again with
    the same arguments, the search goes on where it was.
    """
    from nexmark.cli import bisect as search

    return search.run(
        (good, bad, builds),
        query,
        engine=engine,
        workload=workload,
        cluster=cluster,
        repetitions=repetitions,
        most=measurements,
        airflow=airflow,
    )
