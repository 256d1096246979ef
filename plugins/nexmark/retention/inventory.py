"""List what the home and the results database have that retention decides on.

Builds and class archives that are a link are left alone: they belong to another home.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path

from nexmark.engines.cached_builds import PRUNED, CachedBuild
from nexmark.model import RunKey
from nexmark.night.run_directory import RunDirectory
from nexmark.retention.decision import Artifact, ArtifactKind, bytes_of, last_change
from nexmark.store import Store

#: The group of experiments that a command measured; the DAG's are in the group of that DAG.
EXPERIMENTS = "experiments"

_RUN = re.compile(r"run_id=.+")


def directories(parent: Path) -> list[Path]:
    """Return the directories in a directory, without links and hidden ones."""
    if not parent.is_dir():
        return []
    visible = (path for path in parent.iterdir() if not path.name.startswith("."))
    return sorted(path for path in visible if path.is_dir() and not path.is_symlink())


def trash_cans(home: Path) -> list[Path]:
    """Return the directories in which an interrupted `prune` may have left something to delete."""
    return sorted(path / PRUNED for path in _roots(home) if (path / PRUNED).is_dir())


def _roots(home: Path) -> list[Path]:
    """Return the directories that artifacts are deleted from, each a part of one file system."""
    unshared = ("runs", EXPERIMENTS, "jobs", "logs", "airflow/logs")
    shared = (name for name in ("builds", "archives") if not (home / name).is_symlink())
    return [home / name for name in (*unshared, *shared)]


def run_directories(home: Path) -> list[Artifact]:
    """Return the run directories of all DAGs, and of experiments that a command measured."""
    runs = [(dag.name, run) for dag in directories(home / "runs") for run in directories(dag)]
    runs += [(EXPERIMENTS, run) for run in directories(home / EXPERIMENTS)]
    return [
        Artifact(ArtifactKind.RUNS, str(run), dag, last_change(run), bytes_of(run), (run,))
        for dag, run in runs
    ]


def event_logs(runs: Iterable[Artifact]) -> list[Artifact]:
    """Return Spark's event logs of each run directory that has some."""
    artifacts = []
    for run in runs:
        logs_of_run = tuple(RunDirectory(run.paths[0]).event_logs())
        if logs_of_run:
            size = sum(map(bytes_of, logs_of_run))
            artifacts.append(
                Artifact(ArtifactKind.EVENT_LOGS, run.key, run.group, run.moment, size, logs_of_run)
            )
    return artifacts


def raw_rows(store: Store) -> list[Artifact]:
    """Return the raw rows of each night that has some."""
    started = {night.id: night.started for night in store.nights()}
    return [
        Artifact(ArtifactKind.RAW_ROWS, run, RunKey.parse(run).dag_id, started[run], size.bytes)
        for run, size in store.raw_sizes().items()
    ]


def builds(cached: Iterable[CachedBuild]) -> list[Artifact]:
    """Return the builds that were fetched."""
    return [
        Artifact(
            ArtifactKind.BUILDS,
            build.name,
            "",
            _moment(build.used),
            bytes_of(build.directory),
            (build.directory,),
        )
        for build in cached
    ]


def copies_of_jobs(home: Path) -> list[Artifact]:
    """Return the copies of the jobs that nights have run."""
    return [
        Artifact(
            ArtifactKind.JOBS, path.name, "", _moment(path.stat().st_mtime), bytes_of(path), (path,)
        )
        for path in directories(home / "jobs")
    ]


def class_archives(home: Path) -> list[Artifact]:
    """Return the class archives by the version of Spark that they are for."""
    if (home / "no-spark-conf").is_symlink() or (home / "archives").is_symlink():
        return []
    return [
        Artifact(
            ArtifactKind.ARCHIVES,
            path.name,
            path.name.rpartition("-")[0],
            _moment(path.stat().st_mtime),
            path.stat().st_size,
            (path,),
        )
        for path in sorted((home / "archives").glob("*-*.*"))
        if path.is_file()
    ]


def logs(home: Path) -> list[Artifact]:
    """Return the logs of commands, and what the private Airflow has logged of DAG runs and days."""
    commands = [("commands", path) for path in sorted((home / "logs").glob("run-*.log"))]
    runs = [
        (group.name, path)
        for group in directories(home / "airflow" / "logs")
        for path in directories(group)
        if _RUN.fullmatch(path.name) or group.name == "dag_processor"
    ]
    return [
        Artifact(ArtifactKind.LOGS, str(path), group, last_change(path), bytes_of(path), (path,))
        for group, path in commands + runs
    ]


def needed_builds(
    cached: Iterable[CachedBuild], engines: Mapping[str, str], baselines: Iterable[str]
) -> Iterator[tuple[str, str]]:
    """Yield the names of builds that stay, and why.

    Args:
        cached: The builds in the cache.
        engines: By the source of a build, the name of the engine that is configured with it.
        baselines: The ids of the builds that were accepted.
    """
    accepted = frozenset(baselines)
    for build in cached:
        if any(source in engines for source in build.sources):
            yield build.name, "of an engine"
        elif build.id in accepted:
            yield build.name, "baseline"


def _moment(seconds: float) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)
