"""Finds the problems on this machine that would stop a night, before it costs time.

Free of Airflow, so that `nexmark run` can report them before Airflow is even imported.
"""

import tarfile
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from nexmark import engines
from nexmark.config import BuildSource, Config, EmbeddedCluster, paths
from nexmark.config.fields import local_path
from nexmark.engines import BuildError
from nexmark.engines.jvm import path_problem
from nexmark.model import Mode
from nexmark.night.kinds import kind_of
from nexmark.night.night_plan import Night

#: State, event logs, outputs and events of one night on this machine, bytes.
RUN_BYTES = 2 * 10**9
#: A build whose version does not show may run every formulation.
_NEWEST = "99.0"


def find_problems(night: Night) -> Iterator[str]:
    """Yield each problem of this machine or of the request, in one line.

    Preflight checks the hosts that are reached by SSH, because it has the connections.
    """
    builds = dict.fromkeys([night.candidate, *night.against.values()])
    problems = [path_problem(paths.home(), "NEXMARK_HOME"), *map(_build_problem, builds)]
    problems += [*map(_spark_problem, builds), *map(engines.java_problem, map(_version, builds))]
    problems.append(engines.job_python_problem(*map(_version, builds)))
    problems += [engines.files_problem(), engines.disk_problem(paths.home(), RUN_BYTES)]
    yield from filter(None, dict.fromkeys(problems))
    if isinstance(night.cluster, EmbeddedCluster):
        for arm in night.arms:
            yield from night.clusters[arm].problems()
        yield from filter(None, (job.missing_input() for job in night.jobs.values()))
    yield from filter(None, _job_problems(night))
    yield from _formulation_problems(night)
    yield from kind_of(night.workload).problems(night)


def _job_problems(night: Night) -> Iterator[str]:
    """Yield what is wrong with the files and the reference of each job; '' for nothing."""
    for job in (*night.jobs.values(), *night.candidate_jobs.values()):
        from nexmark.expectations.own_results import reference_problem
        from nexmark.inputs.input_files import input_problem

        yield input_problem(job)
        yield reference_problem(job)


def _formulation_problems(night: Night) -> Iterator[str]:
    """Yield the formulations of the workload that a build of the night cannot run."""
    chosen = night.workload.formulations
    for query in filter(chosen.get, night.queries):
        from nexmark_jobs.errors import UsageError
        from nexmark_jobs.queries import QUERIES

        where = f"workload {night.workload.name}: formulations.{query}"
        if query in night.jobs:
            yield f"{where}: a job of your own is computed in one way; remove it"
            continue
        builds = (night.candidate, night.against.get(query))
        versions = (engines.known_version(build) for build in builds if build is not None)
        for version in dict.fromkeys(versions):
            try:
                QUERIES[query].formulation(version or _NEWEST, chosen[query])
            except UsageError as error:
                why = str(error).removeprefix("--formulation: ")
                yield f"{where}: {why}"


def remarks(night: Night, config: Config) -> Iterator[str]:
    """Yield what a person should know of the jobs of their own, though the night can run.

    These are the jobs that cannot be run, and in a night of pairs those that would be over before
    they are warm.
    """
    from nexmark.inputs.steady_rows import warm_up_problem

    for name, problem in config.broken_jobs.items():
        yield f"job {name} cannot be run, and this night does not name it: {problem}"
    jobs = night.jobs.values() if night.mode == Mode.PAIRED else ()
    yield from filter(None, (warm_up_problem(job, night.workload.warmup_batches) for job in jobs))


def _build_problem(source: BuildSource) -> str:
    """Return the problem of a build that shows without fetching it, or ''."""
    path = local_path(source.tarball) if source.tarball else None
    if source.directory:
        path = _directory(source)
    if path is None:
        return ""
    if not path.exists():
        return f"build {source}: {path} does not exist; correct the path"
    try:
        if source.directory:
            return path_problem(engines.find_spark_home(path), f"build {source}")
        if not tarfile.is_tarfile(path):
            return f"build {source}: {path} is not a tarball; give a .tgz of a Spark build"
    except (BuildError, OSError) as error:
        return f"build {source}: {error}"
    return ""


def _directory(source: BuildSource) -> Path:
    return Path(source.directory or "").expanduser()


def java_of(night: Night) -> tuple[int, ...]:
    """Return the versions of the JDK that every build of the night supports."""
    builds = (night.candidate, *night.against.values())
    majors = (set(engines.java_majors(_version(build))) for build in builds)
    return tuple(sorted(set.intersection(*majors)))


def python_of(night: Night) -> tuple[int, ...]:
    """Return the minor version of the Python that drivers of this night run on; () for none."""
    return engines.job_version(*map(_version, (night.candidate, *night.against.values())))


def _spark_problem(source: BuildSource) -> str:
    problem = engines.spark_problem(_version(source))
    return f"build {source}: {problem}" if problem else ""


def _version(source: BuildSource) -> str:
    """Return the version of a build; "4" for a tarball that is still packed and a bad directory."""
    if source.directory:
        with suppress(BuildError, OSError):  # `_build_problem` says it
            return engines.spark_version(engines.find_spark_home(_directory(source)))
    return source.pypi or "4"
