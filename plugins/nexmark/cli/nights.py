"""The verbs that run nights: run, build, soak, backfill, bisect, rollout."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from nexmark.cli import shared_options as option
from nexmark.config import BUILD_DAG_ID, Config, load, paths, pick
from nexmark.errors import NexmarkError
from nexmark.model import MIN_PAIRS, Mode, query_name
from nexmark.night.params import NightParams, RolloutParams, help_of
from nexmark.people import process_user, signed
from nexmark.terminal import INTERRUPTED, show_line

if TYPE_CHECKING:
    from nexmark.bisect.build_sequence import BuildSequence
    from nexmark.bisect.measured_builds import MeasuredBuilds
    from nexmark.config import Engine
    from nexmark.rollout.state import Rollout
    from nexmark.store import Store

_SOAK_RUNS = 4
"""The repetitions of two pairs."""


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
    candidate_job: option.CandidateJob = None,
    compatibility: option.Compatibility = None,
    candidate: Annotated[
        str | None, option.text(f"The build to test, {option.BUILD} (default: the engine's).")
    ] = None,
    date: Annotated[
        str | None, option.text("The date of the night, as 2026-11-03 (default: today).")
    ] = None,
) -> int:
    """Run the night of an engine.

    0 if it is green, 1 if it is red, 2 if it could not be run.
    """
    from nexmark.cli.night_runner import run_night

    moment = option.day("--date", date) if date else None
    config = load()
    chosen = config.engine(engine)
    params = _at_the_prompt(config, context.params, "smoke")
    return run_night(config, chosen.dag_id, chosen.name, params, moment)


def build(
    context: typer.Context,
    build: Annotated[str, typer.Option(help=f"The build to test, {option.BUILD}.")] = "",
    against: option.Against = None,
    engine: option.Engine = None,
    workload: option.CompareWorkload = None,
    queries: option.Queries = None,
    repetitions: option.Repetitions = None,
    cluster: option.ClusterName = None,
    mode: option.Mode = None,
    candidate_conf: option.CandidateConf = None,
    candidate_job: option.CandidateJob = None,
    compatibility: option.Compatibility = None,
    until: Annotated[
        Literal["decided"],
        typer.Option(help="Measure rounds of pairs until each query is decided."),
    ] = "decided",
    pairs: Annotated[int | None, option.number(MIN_PAIRS, 1000, help=help_of("pairs"))] = None,
    minutes: Annotated[
        int | None, option.number(1, 10_000, metavar="M", help=help_of("budget_minutes"))
    ] = None,
    continued: option.Continued = None,
) -> int:
    """Test any Spark build against another one, by pairs.

    0 if it is as good or undecided, 1 if it is not, 2 if it could not be run.
    """
    from nexmark.cli.comparisons import compare, go_on

    config = load()
    budget = {"pairs": pairs, "budget_minutes": minutes}
    given = {name: value for name, value in budget.items() if value is not None}
    if continued is not None:
        return go_on("build", continued, config, context.params, given)
    chosen = config.engine(engine)
    if not build.strip() and candidate_job is None:
        raise typer.BadParameter(f"--build: none is given; give it {option.BUILD}")
    build = build.strip() or str(chosen.build)
    asked = _at_the_prompt(config, context.params, config.comparison_workload(chosen))
    params = {"build": build, "engine": chosen.name, **asked, **given}
    return compare("build", config, chosen.name, params)


def soak(
    context: typer.Context,
    build: Annotated[str, typer.Option(help=f"The build to test, {option.BUILD}.")] = "",
    against: option.Against = None,
    engine: option.Engine = None,
    workload: option.SoakWorkload = None,
    queries: option.Queries = None,
    cluster: option.ClusterName = None,
    candidate_conf: option.CandidateConf = None,
    candidate_job: option.CandidateJob = None,
    batches: Annotated[
        int | None, option.number(100, 10_000_000, metavar="N", help=help_of("batches"))
    ] = None,
    hours: Annotated[
        float | None,
        typer.Option(
            min=0.1,
            max=1000,
            metavar="H",
            help="As many batches as two pairs of each query can have in H hours, by the last "
            "soak of the query here.",
        ),
    ] = None,
    continued: option.Continued = None,
) -> int:
    """Measure what a build loses as its queries run on.

    0 if nothing grows by more than its limit, 1 if something does, 2 if it could not be run.
    """
    from nexmark.cli.comparisons import compare, go_on

    if continued is not None:
        return go_on("soak", continued, load(), context.params)
    if not build.strip() and candidate_job is None:
        raise typer.BadParameter(f"--build: none is given; give it {option.BUILD}")
    if batches and hours:
        raise typer.BadParameter("--hours: --batches is given as well; give one of them")
    if hours and candidate_job and not queries:
        raise typer.BadParameter("--hours: name the changed jobs by --queries, or give --batches")
    config = load()
    chosen = config.engine(engine)
    build = build.strip() or str(chosen.build)
    asked = _at_the_prompt(config, context.params, "soak")
    params: dict[str, Any] = {"build": build, "engine": chosen.name, **asked}
    if hours:
        params |= {"batches": _batches_in(hours, config, asked), "budget_minutes": 60 * hours}
    return compare("soak", config, chosen.name, params)


def _batches_in(hours: float, config: Config, asked: Mapping[str, Any]) -> int:
    """Return how many batches two pairs of each query can have in a number of hours.

    BadParameter for a query whose time of a batch is not known.

    Args:
        hours: How long all of them may take.
        config: The configuration.
        asked: The params of the run: its queries, workload and cluster.
    """
    from nexmark.night.make_night import select_queries

    workload = pick("workload", asked["workload"], config.workloads)
    queries = select_queries(asked.get("queries"), workload, config)
    seconds: dict[str, float] = {}
    with option.opened(None) as store:
        for night in store.nights():
            if (night.workload, night.cluster) == (asked["workload"], asked["cluster"]):
                for row in store.repetitions(night.id, queries, leave_out=("batch_list",)):
                    if row.counts and row.batches and row.wall_s:
                        seconds.setdefault(row.query, row.wall_s / row.batches)
    if unknown := [query for query in queries if query not in seconds]:
        problem = f"no soak of {', '.join(unknown)} has run on cluster {asked['cluster']}"
        raise typer.BadParameter(
            f"--hours: {problem}, which tells how long a batch takes; give --batches"
        )
    return max(100, int(3600 * hours / (_SOAK_RUNS * sum(seconds.values()))))


def _at_the_prompt(config: Config, options: Mapping[str, Any], workload: str) -> dict[str, Any]:
    """Return the params of a night that a command starts.

    Only given params are in it. Without a given workload the night has `workload`, and without a
    given cluster the first one of clusters.yaml.
    """
    params = {name: options.get(name) for name in NightParams.model_fields}
    params |= {"candidate_conf": option.confs_of(options["candidate_conf"])}
    params |= {"engine": None, "build": None}  # params of the DAG, not of its run
    given = {name: value for name, value in params.items() if value or value is False}
    return {"workload": workload, "cluster": next(iter(config.clusters)), **given}


def backfill(
    first: Annotated[str, typer.Option("--from", help="The first date, as 2026-11-01.")] = "",
    last: Annotated[str, typer.Option("--to", help="The last date.")] = "",
    engine: option.Engine = None,
    workload: option.EngineWorkload = None,
    queries: option.Queries = None,
    cluster: option.EngineCluster = None,
    reprocess: Annotated[
        Literal["none", "failed", "completed"],
        typer.Option(help="Which dates run again of those that have had a night."),
    ] = "none",
    port: option.Port = 8080,
) -> int:
    """Run the nights of past dates.

    0 if all nights that have a build are green, 1 if one is red, 2 if one could not be run.
    """
    from nexmark.cli.own_airflow import run_backfill

    for name, value in (("--from", first), ("--to", last)):
        if not value:
            raise typer.BadParameter(f"{name} is not given; give {name} 2026-11-03")
    days = (option.day("--from", first), option.day("--to", last))
    params = {"workload": workload, "queries": queries, "cluster": cluster}
    wanted = {name: value for name, value in params.items() if value}
    return run_backfill(engine, days, wanted, reprocess, port)


def bisect(
    good: Annotated[
        str, typer.Option(help="A build without the change, as pypi:4.3.0; with --repo a revision.")
    ] = "",
    bad: Annotated[str, typer.Option(help="A later build or revision with the change.")] = "",
    builds: Annotated[
        str | None, option.text("The builds between them, in order: a file, or a,b,c.")
    ] = None,
    repo: Annotated[
        str | None, option.text("A clone of Spark whose commits are built.", metavar="DIR")
    ] = None,
    build_command: Annotated[
        str,
        typer.Option(help="With --repo: builds a checkout, in a shell; ./dev/make-distribution.sh"),
    ] = "",
    query: Annotated[str, typer.Option(help="The query that changed.")] = "",
    engine: option.Engine = None,
    workload: option.CompareWorkload = None,
    cluster: option.EngineCluster = None,
    repetitions: option.Repetitions = None,
    measurements: Annotated[
        int, option.number(1, 10_000, help="How many nights are run at most.")
    ] = 40,
    airflow: Annotated[
        str | None, option.text("The URL of a running Airflow whose scheduler runs the nights.")
    ] = None,
) -> int:
    """Find the build or commit of a change, by nights.

    With --repo, commits are built: the build command runs in a checkout of one commit, and leaves a
    Spark build in $NEXMARK_BUILD or in dist/. Each commit is built once; one that fails is left
    out.

    0 if it is found, 1 if not, 2 if it could not be run. --airflow is the URL of a running Airflow
    whose scheduler runs the nights. After an interruption, the same command goes on where the
    search was.
    """
    from nexmark.airflow_site.api import running_airflow
    from nexmark.bisect.measured_builds import MeasuredBuilds
    from nexmark.cli.night_runner import run_night

    config = load()
    chosen, query = config.engine(engine), query_name(query)
    sequence = _sequence(good, bad, builds, repo, build_command, chosen)
    first = sequence.builds[0]
    params = {
        "engine": chosen.name,
        "queries": query,
        "workload": workload or config.comparison_workload(chosen),
        "cluster": cluster or config.cluster_of(chosen),
        "against": first,
        "mode": Mode.PAIRED,
        "repetitions": repetitions or config.gate.for_comparison().pairs,
    }
    elsewhere = running_airflow(airflow) if airflow else None
    run_it = elsewhere.night if elsewhere else partial(run_night, config, BUILD_DAG_ID, chosen.name)
    nights = MeasuredBuilds(config, chosen.name, params, run_it, sequence)
    if not query.strip() or len(nights.plan(first).queries) != 1:
        raise NexmarkError(f"query: {query!r} is not one query; give --query q5")
    if elsewhere is not None:
        elsewhere.check()
    return _search(query, nights, measurements)


def _sequence(
    good: str,
    bad: str,
    builds: str | None,
    repo: str | None,
    build_command: str,
    engine: "Engine",
) -> "BuildSequence":
    """Return the builds of a search, as the options of `nexmark bisect` name them.

    Args:
        good: The value of --good.
        bad: The value of --bad.
        builds: The value of --builds.
        repo: The value of --repo.
        build_command: The value of --build-command.
        engine: The engine whose nights measure the builds.

    Raises:
        NexmarkError: The options do not belong together, or one of them is wrong.
    """
    from nexmark.bisect.build_sequence import GivenBuilds
    from nexmark.bisect.built_commits import BuiltCommits, commits_to_search
    from nexmark.bisect.search import read_builds

    if repo is None:
        if build_command.strip():
            raise NexmarkError("bisect: --build-command is given without --repo; give --repo DIR")
        return GivenBuilds(read_builds(good, bad, builds or ""), engine.name)
    if builds is not None:
        raise NexmarkError(
            "bisect: --builds is given with --repo, whose commits are built; drop one"
        )
    if not build_command.strip():
        example = "--build-command './dev/make-distribution.sh'"
        raise NexmarkError(f"bisect: --repo is given without --build-command; give {example}")
    repository, commits = commits_to_search(repo, good, bad)
    compare = engine.repository.compare if engine.repository else None
    return BuiltCommits(repository, build_command, commits, show_line, compare)


def _search(query: str, nights: "MeasuredBuilds", measurements: int) -> int:
    """Search the first bad build and print it; return 0 if it is found, else 1."""
    from nexmark.bisect.search import Search, answer, table

    sequence = nights.sequence
    builds = sequence.builds
    floor = nights.config.gate.noise_floor
    try:
        for build in (builds[0], builds[-1]):
            nights.fetch(build)
        names, noun = sequence.names, sequence.noun
        search = Search(builds, nights.known(), floor, names=names, noun=noun)
        if search.nights:
            show_line(f"{len(search.nights)} nights of an earlier search are used")
        state = search.run(
            nights.measure, measurements, lambda *so_far: show_line(table(*so_far)), show_line
        )
    except KeyboardInterrupt:
        show_line("interrupted: the same command goes on from here")
        raise
    if state.found:
        before = builds[builds.index(state.found[0]) - 1]
        for line in sequence.details(before, state.found[-1]):
            show_line(line)
    show_line(answer(query, search, state))
    return 0 if state.found else 1


def rollout(
    context: typer.Context,
    conf: Annotated[list[str] | None, option.confs_option("A Spark conf of the new arm.")] = None,
    build: Annotated[
        str | None,
        option.text(f"The build of the new arm, {option.BUILD} (default: the old arm's)."),
    ] = None,
    against: Annotated[
        str | None, option.text("The build of the old arm (default: the engine's).")
    ] = None,
    stages: Annotated[str | None, option.text(help_of("stages"))] = None,
    engine: option.Engine = None,
    workload: option.CompareWorkload = None,
    cluster: option.EngineCluster = None,
    repetitions: option.Repetitions = None,
    name: Annotated[
        str | None, option.text("A name to resume the rollout by (default: the time).")
    ] = None,
    resume: Annotated[str | None, option.text(help_of("resume"))] = None,
    accept: Annotated[str | None, option.text(help_of("accept"))] = None,
    go_on_undecided: Annotated[
        bool, typer.Option("--go-on-undecided", help=help_of("go_on_undecided"))
    ] = False,
    by: option.By = None,
) -> int:
    """Give a conf or a build to queries stage by stage.

    0 if all stages have it; 1 if a stage is red or undecided (then it stops, and says whether the
    way back is right); 2 if a stage could not be run.
    """
    from nexmark.rollout.rolling import resumed, table, write_page
    from nexmark.rollout.state import rollout_of

    given = {**context.params, "candidate_conf": option.confs_of(conf)}
    wanted = rollout_of(RolloutParams.of(given), load())
    if resume is not None:
        with _opened() as store:
            wanted = resumed(wanted, store, signed(process_user(), by), accept)
    done = _roll(wanted)
    show_line(table(done))
    show_line(f"page: {write_page(done)}")
    return 0 if done.next is None else 1


def _roll(wanted: "Rollout") -> "Rollout":
    """Measure the stages of a rollout until all have it or one is red; return the rollout then."""
    from nexmark.rollout.rolling import roll

    again = f"nexmark rollout --resume {wanted.name}"
    show_line(f"rollout {wanted.name}: {len(wanted.stages)} stages; to go on: {again}")
    try:
        return roll(wanted, partial(_measure, wanted), _opened, show_line)
    except KeyboardInterrupt:
        show_line(f"interrupted; to go on from here: {again}")
        raise


def _measure(wanted: "Rollout", queries: Sequence[str]) -> str:
    """Run a night of some queries of a rollout; return the name of the night's run."""
    from nexmark.cli.night_runner import run_night

    with _opened() as store:
        before = {row.id for row in store.nights()}
    params = {**wanted.params, "queries": ",".join(queries)}
    if run_night(load(), BUILD_DAG_ID, wanted.engine, params) == INTERRUPTED:
        raise KeyboardInterrupt
    with _opened() as store:
        for row in store.nights():
            if row.id not in before and (row.dag_id, row.queries) == (BUILD_DAG_ID, list(queries)):
                return str(row.id)
    problem = f"the night of {', '.join(queries)} ended before it was measured, see above"
    raise NexmarkError(f"{problem}; mend it, then `nexmark rollout --resume {wanted.name}`")


def _opened() -> "Store":
    """Return the results database of this home, and make it where there is none."""
    from nexmark.store import open_store

    return open_store(paths.database_url())
