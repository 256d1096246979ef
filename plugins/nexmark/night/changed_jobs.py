"""Jobs that a night compares with a changed version of themselves (param `candidate_job`)."""

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

from nexmark.config import Job
from nexmark.config.own_jobs import read_job
from nexmark.errors import NexmarkError
from nexmark.model import CANDIDATE_JOB

_PARAM = "candidate_job"
#: What two versions of an application have alike, so that their CPU time and rows can be compared.
_ALIKE = ("input", "output", "ends")


def changed_jobs(
    directory: str, jobs: Mapping[str, Job], broken: Mapping[str, str] = MappingProxyType({})
) -> dict[str, Job]:
    """Return the jobs that have other files in a directory, by name, with these files.

    The directory may have copies of other jobs, too: who changes one may have copied all.

    Args:
        directory: The directory with NAME.yaml and the files beside it.
        jobs: The jobs that can be run, as they are in `include/conf/jobs`.
        broken: What is wrong there with the other jobs, by name.

    Raises:
        NexmarkError: The directory has no changed job, one that reads another input, or only one
            whose files in `include/conf/jobs` have a mistake.
    """
    place = Path(directory).expanduser()
    if not (place.is_absolute() and place.is_dir()):
        problem = f"{directory} is no directory; give the absolute path of one"
        raise NexmarkError(f"{_PARAM}: {problem}")
    versions = {name: read_job(file) for name in jobs if (file := place / f"{name}.yaml").is_file()}
    if not versions:
        for problem in (broken[name] for name in broken if (place / f"{name}.yaml").is_file()):
            raise NexmarkError(problem)
        known = ", ".join(f"{name}.yaml" for name in jobs) or "none, there is no job of your own"
        problem = f"{directory} has the file of no job in include/conf/jobs"
        raise NexmarkError(f"{_PARAM}: {problem}; the files would be {known}")
    changed = {
        name: job for name, job in versions.items() if job.formulation != jobs[name].formulation
    }
    if not changed:
        as_they_are = f"{', '.join(versions)} in {directory} compute what include/conf/jobs does"
        raise NexmarkError(f"{_PARAM}: {as_they_are}; change one there")
    for name, job in changed.items():
        _check_same_input(job, jobs[name])
    return changed


def recorded(directory: str, jobs: Mapping[str, Job]) -> dict[str, str]:
    """Return what a night records of the changed jobs, beside the confs of the candidate alone."""
    if not jobs:
        return {}
    versions = {f"{CANDIDATE_JOB}.{name}": job.formulation for name, job in jobs.items()}
    return {CANDIDATE_JOB: directory, **versions}


def _check_same_input(changed: Job, job: Job) -> None:
    """Refuse a version that does not read and end as the job as it is."""
    old, new = job.application, changed.application
    problem = ""
    if (old is None) != (new is None):
        problem = "is an application in one version alone; both have to be one, or neither"
    elif changed.tables != job.tables:
        problem = "reads other tables than in include/conf/jobs; both versions need the same input"
    elif old and new:
        keys = [key for key in _ALIKE if getattr(old, key) != getattr(new, key)]
        if keys:
            problem = f"has another {keys[0]} than in include/conf/jobs; both need the same"
    if problem:
        raise NexmarkError(f"{_PARAM}: {job.name} {problem}")
