"""Jobs that a night compares with a changed version of themselves (param `candidate_job`)."""

from collections.abc import Mapping
from pathlib import Path

from nexmark.config import Job
from nexmark.config.own_jobs import read_job
from nexmark.errors import NexmarkError
from nexmark.model import CANDIDATE_JOB

_PARAM = "candidate_job"


def changed_jobs(directory: str, jobs: Mapping[str, Job]) -> dict[str, Job]:
    """Return the jobs that have other files in a directory, by name, with these files.

    Args:
        directory: The directory with NAME.yaml and the files beside it.
        jobs: All jobs, as they are in `include/conf/jobs`.

    Raises:
        NexmarkError: The directory has no job, a job as it is, one that reads other tables, or an
            application.
    """
    place = Path(directory).expanduser()
    if not (place.is_absolute() and place.is_dir()):
        problem = f"{directory} is no directory; give the absolute path of one"
        raise NexmarkError(f"{_PARAM}: {problem}")
    changed = [name for name in jobs if (place / f"{name}.yaml").is_file()]
    if not changed:
        known = ", ".join(f"{name}.yaml" for name in jobs) or "none, there is no job of your own"
        problem = f"{directory} has the file of no job in include/conf/jobs"
        raise NexmarkError(f"{_PARAM}: {problem}; the files would be {known}")
    return {name: _changed(read_job(place / f"{name}.yaml"), jobs[name]) for name in changed}


def recorded(directory: str, jobs: Mapping[str, Job]) -> dict[str, str]:
    """Return what a night records of the changed jobs, beside the confs of the candidate alone."""
    if not jobs:
        return {}
    versions = {f"{CANDIDATE_JOB}.{name}": job.formulation for name, job in jobs.items()}
    return {CANDIDATE_JOB: directory, **versions}


def _changed(changed: Job, job: Job) -> Job:
    problem = ""
    if changed.application is not None or job.application is not None:
        problem = "is an application; run its two versions under two names"
    elif changed.tables != job.tables:
        problem = "reads other tables than in include/conf/jobs; both versions need the same input"
    elif changed.formulation == job.formulation:
        problem = "is as in include/conf/jobs; change it, or leave it out"
    if problem:
        raise NexmarkError(f"{_PARAM}: {job.name} {problem}")
    return changed
