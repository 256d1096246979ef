"""The verb `compat`: will running jobs survive the upgrade?"""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from nexmark.cli import shared_options as option
from nexmark.config import paths
from nexmark.errors import suggest
from nexmark.secrets import shown_build
from nexmark.terminal import COULD_NOT_RUN

if TYPE_CHECKING:
    from nexmark.compatibility.cases import Side
    from nexmark.compatibility.results import Compatibility
    from nexmark.config import Job
    from nexmark.engines import Build


def compat(
    first: Annotated[
        str | None, typer.Option("--from", help=f"The build that jobs run on now, {option.BUILD}.")
    ] = None,
    second: Annotated[
        str | None, typer.Option("--to", help="The build that jobs go on with (default: --from).")
    ] = None,
    query: Annotated[
        str | None,
        option.query("The query, also of an experiment, or a job (default: all with state)."),
    ] = None,
    candidate_job: Annotated[
        str | None,
        typer.Option(
            callback=option.absolute,
            metavar="DIR",
            help="A directory with changed files of the job --query, for the side of --to.",
        ),
    ] = None,
    formulation: Annotated[
        str | None, option.text("A formulation of --query, for both sides.")
    ] = None,
    against: Annotated[str | None, option.text("Another one, for the side of --to.")] = None,
    formulations: Annotated[
        Path | None, typer.Option(help="A Python file with formulations of your own.")
    ] = None,
    events: Annotated[int, option.number(200, 10**9, help="How many events are read.")] = 20_000,
    tps: Annotated[int, option.number(1, 10**9, "T", "Events per second of event time.")] = 200,
    seed: option.Seed = 1,
    from_conf: Annotated[
        list[str] | None, option.confs_option("A conf of Spark SQL, for the side of --from.")
    ] = None,
    to_conf: Annotated[
        list[str] | None, option.confs_option("A conf of Spark SQL, for the side of --to.")
    ] = None,
    plans_only: Annotated[
        bool, typer.Option("--plans-only", help="Compare the plans; run nothing.")
    ] = False,
    corpus: Annotated[
        Path | None,
        typer.Option(
            callback=option.new, help="A new directory: leave the checkpoints of --from in it."
        ),
    ] = None,
    out: option.Out = None,
) -> int:
    """Check whether running jobs survive another Spark build.

    Each query goes on from a checkpoint of one build with the other one, and back. 0 if all
    survive; 1 if a query is incompatible or silently wrong; 2 if one could not be run.
    """
    from nexmark.compatibility.cases import Input, Side, case_of_job, cases_of
    from nexmark.compatibility.check import check, check_plans, write_corpus
    from nexmark.compatibility.results import as_json, exit_code, matrix
    from nexmark.engines import BuildError
    from nexmark_jobs.errors import UsageError
    from nexmark_jobs.generator.generator_options import generator_config

    try:
        if not (first or "").strip():
            raise typer.BadParameter(f"--from: none is given; give a build {option.BUILD}")
        jobs = _jobs(query, candidate_job, formulation, formulations, corpus, plans_only=plans_only)
        names = [] if jobs else _queries(query, formulations, formulation, against)
        builds = _builds(str(first), second or str(first))
        cases = cases_of(names, builds, formulation, against)
        confs = option.confs_of(from_conf), option.confs_of(to_conf)
        sides = Side(builds[0], confs[0]), Side(builds[1], confs[1])
        if jobs is not None:
            cases = [case_of_job(*jobs)]
            sides = sides[0].with_job(jobs[0]), sides[1].with_job(jobs[1])
        chosen = Input(events, tps, seed, formulations.resolve() if formulations else None)
        generator_config(seed, tps, (), events)  # UsageError if it cannot make such events
    except (BuildError, UsageError) as error:
        option.on_stderr(f"nexmark compat: {error}")
        return COULD_NOT_RUN
    if corpus is not None:
        missing = write_corpus(sides[0], cases, chosen, option.on_stderr, corpus)
        print(f"{corpus}: checkpoints of Spark {builds[0].version}; missing: {missing or 'none'}")
        return COULD_NOT_RUN if missing else 0
    shown = (shown_build(build.version, build.source, build.id) for build in builds)
    title = " to ".join(f"Spark {name}" for name in shown)
    if jobs is not None and jobs[0].application is not None:
        print(f"{title}: {query} reads its whole input\n", flush=True)
        results = [_check_application(*sides)]
    else:
        print(f"{title}: {events:,} events, {tps:,} per second, seed {seed}\n", flush=True)
        run = check_plans if plans_only else check
        results = run(*sides, cases, chosen, option.on_stderr, only_stateful=query is None)
    print(matrix(results))
    option.write(out, as_json(results))
    return exit_code(results)


def _check_application(first: "Side", second: "Side") -> "Compatibility":
    """Return whether an application goes on on the other side."""
    from nexmark.compatibility.own_application import check_application, hide_secrets

    for side in (first, second):
        assert side.job is not None
        hide_secrets(side.job)
    return check_application(first, second, option.on_stderr)


def _jobs(
    query: str | None,
    changed: str | None,
    formulation: str | None,
    formulations: Path | None,
    corpus: Path | None,
    *,
    plans_only: bool,
) -> "tuple[Job, Job] | None":
    """Return the job of a person's own on both sides; None if the query is none.

    Args:
        query: The value of --query.
        changed: The value of --candidate-job.
        formulation: The value of --formulation.
        formulations: The value of --formulations.
        corpus: The value of --corpus.
        plans_only: The value of --plans-only.
    """
    from nexmark.config import own_job
    from nexmark.config.fields import job_names
    from nexmark.night.changed_jobs import changed_jobs

    job = own_job(query or "")
    if job is None:
        if changed is not None:
            known = ", ".join(job_names()) or "there is none"
            problem = f"needs a job of yours as --query; jobs: {known}"
            raise typer.BadParameter(f"--candidate-job: {problem}")
        return None
    for flag, value in (
        ("--formulation", formulation),
        ("--formulations", formulations),
        ("--corpus", corpus),
    ):
        if value is not None:
            raise typer.BadParameter(f"{flag}: {query} is a job of yours; leave it out")
    both = job, job
    if changed is not None:
        both = job, changed_jobs(changed, {job.name: job})[job.name]
    if job.application is not None:
        _check_application_options(both, plans_only=plans_only)
    return both


def _check_application_options(jobs: "tuple[Job, Job]", *, plans_only: bool) -> None:
    """Refuse an application that cannot be checked here, or not as it is asked for.

    Args:
        jobs: Its versions on both sides.
        plans_only: The value of --plans-only.
    """
    from nexmark.compatibility.own_application import why_left_out

    if plans_only:
        problem = f"{jobs[0].name} is an application, whose plans show when it runs; leave it out"
        raise typer.BadParameter(f"--plans-only: {problem}")
    for job in jobs:
        if reason := why_left_out(job):
            raise typer.BadParameter(f"--query: {job.name}: {reason}")


def _queries(
    query: str | None, file: Path | None, formulation: str | None, against: str | None
) -> list[str]:
    """Return the names of the queries; refuse unknown queries and formulations.

    Args:
        query: The value of --query.
        file: The value of --formulations.
        formulation: The value of --formulation.
        against: The value of --against.
    """
    from nexmark.config.fields import job_names
    from nexmark_jobs.errors import UsageError
    from nexmark_jobs.experiments import EXPERIMENT_QUERIES, query_named
    from nexmark_jobs.queries import QUERIES, add_formulations

    if formulation is not None and query is None:
        raise typer.BadParameter("--formulation: needs a query; give it by --query")
    if against is not None and formulation is None:
        raise typer.BadParameter("--against: needs --formulation as the other side; give both")
    if file is not None:
        try:
            add_formulations(file)
        except UsageError as error:
            raise UsageError(f"--formulations: {error}") from None
    if query is None:
        return list(QUERIES)
    if query not in EXPERIMENT_QUERIES:
        option.known_query(query, job_names())
    known = [each.name for each in query_named(query).formulations]
    for flag, name in (("--formulation", formulation), ("--against", against)):
        if name is not None and name not in known:
            problem = f"{query} has no formulation {name!r}; {suggest(name, known)}"
            raise typer.BadParameter(f"{flag}: {problem}")
    return [query]


def _builds(first: str, second: str) -> "tuple[Build, Build]":
    """Return the builds of --from and --to, fetched; BuildError if one cannot be used."""
    from nexmark.engines import BuildError, UnusableBuild, parse_source, usable

    sources = {}
    for flag, text in (("--from", first), ("--to", second)):
        try:
            sources[flag] = parse_source(text)
        except BuildError as error:
            raise BuildError(f"{flag}: {error}") from None
    cache, say = paths.builds_dir(), option.on_stderr
    builds = {}
    for flag, source in sources.items():
        try:
            builds[flag] = usable(source, cache, say=say)
        except UnusableBuild as error:
            raise BuildError(f"{flag}: {error}") from None
    return builds["--from"], builds["--to"]
