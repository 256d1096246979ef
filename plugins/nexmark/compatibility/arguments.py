"""The arguments and confs of the runs of a check, and the files that they read.

<work>/events                      the dumped events, or the tables of a job as they are laid out
<work>/jobs/<formulation>/<job>/   the files of a version of a job
"""

from collections.abc import Sequence
from pathlib import Path

from nexmark.compatibility.application import OF_APPLICATION
from nexmark.compatibility.cases import Input, Side
from nexmark.config import Job
from nexmark.errors import NexmarkError
from nexmark.model import Say

_ROWS_OF_A_BATCH = 5_000


def events_of(work: Path) -> Path:
    """Return the directory of what the runs read, below the directory of the whole check."""
    return work / "events"


def query_arguments(query: str, formulation: str, side: Side, work: Path) -> list[str]:
    """Return the arguments that name what runs; a job's files are where `write_jobs` puts them."""
    jobs = [] if side.job is None else ["--jobs", str(_jobs_of(side.job, work))]
    return ["--query", query, "--formulation", formulation, *jobs]


def input_arguments(side: Side, events: Input, work: Path) -> list[str]:
    """Return the arguments that name what is read: generated events, or the tables of a job."""
    if side.job is None or side.job.own_tables is None:
        return events.run_arguments
    return ["--source", f"tables:{events_of(work)}"]


def dump_arguments(side: Side, events: Input, work: Path) -> list[str] | None:
    """Return the arguments of `dump_events.py`; None if a job reads tables of its own."""
    if side.job is not None and side.job.own_tables is not None:
        return None
    return [*events.generator_arguments, "--out", str(events_of(work)), "--format", "parquet"]


def _jobs_of(job: Job, work: Path) -> Path:
    """Return the directory with the files of a job; another version of it has another one."""
    return work / "jobs" / job.formulation


def write_jobs(sides: Sequence[Side], work: Path, say: Say) -> None:
    """Write the files of the jobs, and the first rows of their tables in four micro-batches.

    Raises:
        NexmarkError: The tables cannot be read, or have too few rows to stop between them.
    """
    jobs = [side.job for side in sides if side.job is not None]
    for job in jobs:
        job.write(_jobs_of(job, work))
    if not jobs or jobs[0].own_tables is None:
        return

    from nexmark.inputs.layout import lay_out
    from nexmark_jobs.sources.laid_out_tables import read_tables

    job, target, batches = jobs[0], events_of(work), Input.batches
    lay_out(job.in_batches_of(_ROWS_OF_A_BATCH), target, say, batches)
    streams = [table.rows for table in read_tables(target) if not table.static]
    longest = max(streams, key=len)
    if len(longest) < batches:
        if sum(longest) < batches:
            problem = f"its streams have {sum(longest)} rows at most, too few to stop in between"
            raise NexmarkError(f"{job.name}: {problem}; leave it out, or name more files")
        lay_out(job.in_batches_of(-(-sum(longest) // batches)), target, say, batches)


def application_confs(side: Side, work: Path) -> dict[str, str]:
    """Return what a job asks of its application: its confs, as far as it may, and its JARs."""
    if side.job is None:
        return {}
    confs = {name: value for name, value in side.job.confs.items() if name not in OF_APPLICATION}
    jars = ",".join(map(str, side.job.jar_paths(_jobs_of(side.job, work))))
    return {**confs, **({"spark.jars": jars} if jars else {})}
