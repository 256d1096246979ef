"""The verb `nexmark job`: a new job of a person's own, a check of it, and the list."""

from typing import TYPE_CHECKING, Annotated

import typer

from nexmark.cli import shared_options as option
from nexmark.config import Job, load, load_jobs, paths
from nexmark.errors import NexmarkError
from nexmark.reason import reason_of
from nexmark.terminal import COULD_NOT_RUN, FOUND_RED, columns, show_line

if TYPE_CHECKING:
    from nexmark.engines import Build
    from nexmark.jobs.job_check import JobCheck

job = typer.Typer(name="job", help="Queries of your own: a new one, a check, the list.")
_Name = Annotated[str, typer.Argument(callback=option.given, help="The name of the job.")]


@job.command()
def new(name: _Name) -> int:
    """Write the commented files of a new job, which run as they are."""
    from nexmark.jobs.job_template import write_new

    for path in write_new(name, paths.conf_dir()):
        show_line(f"wrote {path}")
    show_line(f"next: nexmark job check {name}")
    return 0


@job.command(name="list")
def list_() -> int:
    """List the jobs, and what is wrong with those that cannot be run."""
    jobs, broken = load_jobs()
    if not jobs and not broken:
        show_line("there is no job of your own; write one: nexmark job new NAME")
        return 0
    rows = [
        [
            name,
            each.file,
            _tables_of(each),
            each.output_mode,
            ",".join(each.key) or "-",
            each.reference or "-",
        ]
        for name, each in jobs.items()
    ]
    if rows:
        show_line(columns(("job", "file", "tables", "output mode", "key", "reference"), rows))
    for name, problem in broken.items():
        show_line(f"{name} cannot be run: {problem}")
    return 0


def _tables_of(job: Job) -> str:
    """Return what a job reads: nexmark, its own tables, or - for an application."""
    if job.own_tables is not None:
        return ",".join(job.own_tables)
    return "-" if job.application is not None else "nexmark"


@job.command()
def check(name: _Name, engine: option.Engine = None) -> int:
    """Run a job small: its columns, plan, state and first rows, and whether it is right.

    Then it runs on the other engines whose builds are on this machine. With --engine, on that
    one alone. 0 if it runs everywhere and no row is wrong, 1 if rows are wrong or differ from run
    to run, else 2 if it does not run somewhere or its files have a mistake. An application is not
    run: the check tells what a night will do with it.
    """
    from nexmark.jobs.job_check import checked_in

    chosen = load().job(name)
    if chosen.application is not None:
        from nexmark.jobs.application_check import description

        missing = chosen.missing_input()
        for line in filter(None, [*description(chosen.name, chosen.application), missing]):
            show_line(line)
        return COULD_NOT_RUN if missing else 0
    work = paths.home() / "job-check" / name
    return checked_in(work, chosen, option.on_stderr, lambda made: _checked(made, chosen, engine))


def _checked(made: "JobCheck", chosen: Job, engine: str | None) -> int:
    """Print what a check finds; return the exit code.

    Args:
        made: Makes the check.
        chosen: The job.
        engine: The only engine to check it on; None for all.
    """
    from nexmark.expectations.contract import ExpectationsError

    first, build = option.build_of(engine, option.on_stderr)
    try:
        checked = made.on(first, build)
    except NexmarkError as error:
        show_line(f"{first}: {chosen.name} does not run: {_reason(first, error)}")
        return COULD_NOT_RUN
    except ExpectationsError as error:
        show_line(f"{first}: {chosen.name} runs, and its rows cannot be compared: {error}")
        return COULD_NOT_RUN
    for line in (f"{chosen.name} on {first}, Spark {checked.version}", *checked.lines()):
        show_line(line)
    others = [] if engine else [other for other in load().engines if other != first]
    runs = [_runs(made, other) for other in others]
    if not checked.outcome.success:
        return FOUND_RED
    return 0 if all(runs) else COULD_NOT_RUN


def _reason(engine: str, error: NexmarkError) -> str:
    """Return why a job does not run on an engine, without the name of the engine."""
    return reason_of(error).removeprefix(f"{engine}: ")


def _runs(made: "JobCheck", engine: str) -> bool:
    """Print whether a job runs on an engine; True also where there is no build to try."""
    build = _fetched(engine)
    if build is None:
        problem = "not tried, its build is not on this machine; to fetch it"
        command = f"nexmark job check {made.job.name} --engine {engine}"
        show_line(f"{engine}: {problem}: {command}")
        return True
    try:
        made.runs_on(engine, build)
    except NexmarkError as error:
        show_line(f"{engine}: does not run: {_reason(engine, error)}")
        return False
    show_line(f"{engine}: runs")
    return True


def _fetched(engine: str) -> "Build | None":
    """Return the build of an engine, None if it would have to be fetched."""
    from nexmark.engines import usable
    from nexmark.engines.cached_builds import cached_builds

    source, cache = load().engines[engine].build, paths.builds_dir()
    known = {name for build in cached_builds(cache) for name in build.sources}
    is_here = source.directory is not None or str(source) in known
    return usable(source, cache, say=option.on_stderr) if is_here else None
