"""The verbs that run nights: run, build, backfill, bisect."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from nexmark.cli import shared_options as option
from nexmark.errors import NexmarkError
from nexmark.terminal import say

if TYPE_CHECKING:
    from nexmark.config import Config

#: Options of the verbs run and build that are params of the night as they are.
_OF_THE_NIGHT = (
    *("workload", "queries", "repetitions", "against", "cluster", "mode", "compatibility"),
    "candidate",
)


def run(
    context: typer.Context,
    engine: option.Engine = None,
    workload: option.Workload = None,
    queries: option.Queries = None,
    repetitions: option.Repetitions = None,
    against: option.Against = None,
    cluster: option.ClusterName = None,
    mode: option.Mode = None,
    candidate_conf: option.CandidateConf = None,
    compatibility: option.Compatibility = None,
    candidate: Annotated[
        str | None, typer.Option(callback=option.given, help=f"A build, {option.BUILD}.")
    ] = None,
    date: Annotated[
        str | None, typer.Option(callback=option.given, help="As 2026-11-03 (default: today).")
    ] = None,
) -> int:
    """Run the night of an engine; 0 if it is green, 1 if it is red or cannot be run."""
    from nexmark.cli.night_runner import run_night
    from nexmark.config import load

    moment = option.day("--date", date) if date else None
    config = load()
    chosen = config.engine(engine)
    params = _at_the_prompt(config, context.params)
    return run_night(config, chosen.dag_id, chosen.name, params, moment)


def build(
    context: typer.Context,
    build: Annotated[str, typer.Option(help=f"The build to test, {option.BUILD}.")] = "",
    against: option.Against = None,
    engine: option.Engine = None,
    workload: option.Workload = None,
    queries: option.Queries = None,
    repetitions: option.Repetitions = None,
    cluster: option.ClusterName = None,
    mode: option.Mode = None,
    candidate_conf: option.CandidateConf = None,
    compatibility: option.Compatibility = None,
) -> int:
    """Test any Spark build; 0 if it is as good, 1 if it is not or cannot be run."""
    from nexmark.cli.night_runner import run_night
    from nexmark.config import BUILD_DAG_ID, load

    if not build.strip():
        raise typer.BadParameter(f"--build: none is given; give it {option.BUILD}")
    config = load()
    name = config.engine(engine).name
    params = {"build": build, "engine": name, **_at_the_prompt(config, context.params)}
    return run_night(config, BUILD_DAG_ID, name, params)


def _at_the_prompt(config: Config, options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the params that are given; at the prompt the workload is a small one."""
    params = {name: options.get(name) for name in _OF_THE_NIGHT}
    params["candidate_conf"] = option.confs_of(options["candidate_conf"])
    found = {name: value for name, value in params.items() if value or value is False}
    return {"workload": "smoke", "cluster": next(iter(config.clusters)), **found}


def backfill(
    first: Annotated[str, typer.Option("--from", help="The first date, as 2026-11-01.")] = "",
    last: Annotated[str, typer.Option("--to", help="The last date.")] = "",
    engine: option.Engine = None,
    workload: option.EngineWorkload = None,
    queries: option.Queries = None,
    cluster: option.EngineCluster = None,
    reprocess: Annotated[
        Literal["none", "failed", "completed"],
        typer.Option(help="Dates that had a night: leave them, or run those again."),
    ] = "none",
    port: option.Port = 8080,
) -> int:
    """Run the nights of past dates; 0 if all nights that have a build are green."""
    from nexmark.cli.own_airflow import run_backfill

    for name, value in (("--from", first), ("--to", last)):
        if not value:
            raise typer.BadParameter(f"{name} is not given; give {name} 2026-11-03")
    days = (option.day("--from", first), option.day("--to", last))
    params = {"workload": workload, "queries": queries, "cluster": cluster}
    wanted = {name: value for name, value in params.items() if value}
    return run_backfill(engine, days, wanted, reprocess, port)


def bisect(
    good: Annotated[str, typer.Option(help="A build without the change, as pypi:4.3.0.")] = "",
    bad: Annotated[str, typer.Option(help="A later build with it.")] = "",
    builds: Annotated[str, typer.Option(help="Those between, in order: a file, or a,b,c.")] = "",
    query: Annotated[str, typer.Option(help="The query that changed.")] = "",
    engine: option.Engine = None,
    workload: option.EngineWorkload = None,
    cluster: option.EngineCluster = None,
    repetitions: option.Repetitions = None,
    measurements: Annotated[int, option.number(1, 10_000, help="The most nights to run.")] = 40,
    airflow: option.Optional = None,
) -> int:
    """Find the build that brought a change, by nights; 0 if it is found.

    --airflow is the URL of a running Airflow whose scheduler runs the nights. Started again with
    the same arguments, the search goes on where it was.
    """
    from nexmark.airflow_site.api import running_airflow
    from nexmark.bisect.measured_builds import MeasuredBuilds
    from nexmark.bisect.search import Search, answer, read_builds, table
    from nexmark.cli.night_runner import run_night
    from nexmark.config import BUILD_DAG_ID, load

    ends = read_builds(good, bad, builds)
    config = load()
    chosen = config.engine(engine)
    params = {
        "engine": chosen.name,
        "queries": query,
        "workload": workload or chosen.workload,
        "cluster": cluster or config.cluster_of(chosen),
        "against": ends[0],
        "mode": "paired",
        "repetitions": repetitions or config.gate.pairs,
    }
    elsewhere = running_airflow(airflow) if airflow else None
    run_it = elsewhere.night if elsewhere else partial(run_night, config, BUILD_DAG_ID, chosen.name)
    nights = MeasuredBuilds(config, chosen.name, params, run_it)
    if not query.strip() or len(nights.plan(ends[0]).queries) != 1:
        raise NexmarkError(f"query: {query!r} is not one query; give --query q5")
    if elsewhere is not None:
        elsewhere.check()
    for build in (ends[0], ends[-1]):
        nights.fetch(build)
    search = Search(ends, nights.known(ends), config.gate.noise_floor)
    if search.nights:
        say(f"{len(search.nights)} nights of an earlier search are used")
    try:
        state = search.run(nights.measure, measurements, lambda *found: say(table(*found)), say)
    except KeyboardInterrupt:
        say("interrupted: the same command goes on from here")
        raise
    say(answer(query, search, state))
    return 0 if state.found else 1
