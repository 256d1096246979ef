"""Delete what is beyond the limits of `retention.yaml` and is not needed.

A directory is renamed before it is deleted, and the raw rows of a night are deleted in one
transaction, so no artifact is ever half deleted: what a killed `prune` has renamed, the next one
deletes first. Only one `prune` at a time runs in a home. A night that runs meanwhile loses nothing:
its lease names it, its processes use their build, and nothing is deleted that was used within the
last two days.
"""

import shutil
import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

from nexmark.config import Config, paths
from nexmark.engines.build import known_version
from nexmark.engines.cached_builds import PRUNED, CachedBuild, cached_builds, set_build_aside
from nexmark.errors import NexmarkError
from nexmark.evidence.signoffs import is_sealed
from nexmark.model import RunKey
from nexmark.retention import inventory
from nexmark.retention.decision import Artifact, ArtifactKind, PruneDecision, decide, last_change
from nexmark.retention.needed_nights import RUNNING, SIGNED, NeededNights, needed_nights, running
from nexmark.store import Store, StoreError
from nexmark_jobs.host.leases import locked
from nexmark_jobs.host.releases import in_use

Say = Callable[[str], None]


@dataclass(frozen=True)
class Pruned:
    """The decisions, and what became of them.

    Attributes:
        decisions: The decisions on all artifacts.
        problems: A line for each artifact that could not be deleted.
        shrunk: How many bytes smaller the database is.
    """

    decisions: tuple[PruneDecision, ...]
    problems: tuple[str, ...] = ()
    shrunk: int = 0


def plan(config: Config, store: Store, now: datetime) -> list[PruneDecision]:
    """Decide what is deleted at a moment; read the home and the results database, change nothing.

    Raises:
        ClusterError: The lease of a cluster cannot be read.
        StoreError: The results database cannot be read.
    """
    home, rules = paths.home(), config.retention
    needed = needed_nights(store, config.gate, home, now)
    runs = inventory.run_directories(home)
    whole = {str(paths.run_dir(*RunKey.parse(name))): why for name, why in needed.whole.items()}
    sealed = {run.key: SIGNED for run in runs if is_sealed(run.paths[0])}
    of_runs = decide(runs, rules.run_nights, sealed | whole, now)
    staying = [one.artifact for one in of_runs if not one.goes]
    return [
        *of_runs,
        *decide(inventory.event_logs(staying), rules.event_log_nights, sealed | whole, now),
        *_of_rows(store, rules.raw_row_nights, needed, now),
        *_of_builds(config, store, rules.builds, now),
        *decide(inventory.logs(home), rules.run_nights, {}, now),
    ]


def _of_rows(
    store: Store, limit: int | None, needed: NeededNights, now: datetime
) -> list[PruneDecision]:
    """Decide on the raw rows of each night.

    The rows of a night stay, too, if another night that keeps its raw rows was compared with it.

    Args:
        store: The results database.
        limit: How many nights of each DAG keep their raw rows; None for all.
        needed: The nights that stay, and why.
        now: The present moment.
    """
    artifacts = inventory.raw_rows(store)
    first = decide(artifacts, limit, needed.rows, now)
    compared = store.compared_runs({one.artifact.key for one in first if not one.goes})
    return [
        replace(one, reason="compared with") if one.goes and one.artifact.key in compared else one
        for one in first
    ]


def _of_builds(
    config: Config, store: Store, limit: int | None, now: datetime
) -> Iterator[PruneDecision]:
    """Decide on builds and what belongs to them: copies of the jobs and class archives.

    Args:
        config: The configuration, whose engines need builds.
        store: The results database.
        limit: How many builds stay, and how many copies of the jobs; None for all.
        now: The present moment.
    """
    home = paths.home()
    cached = [] if (home / "builds").is_symlink() else cached_builds(home / "builds")
    accepted = [row for row in store.acceptances() if not row.over(now)]
    engines = {str(engine.build): engine.name for engine in config.engines.values()}
    baselines = {row.build_id for row in accepted if row.build_id}
    needed = dict(inventory.needed_builds(cached, engines, baselines))
    busy = {build.name: RUNNING for build in cached if in_use(build.directory)}
    of_builds = decide(inventory.builds(cached), limit, needed | busy, now)
    yield from of_builds
    nights = {row.night_id for row in accepted}
    jobs = {night.jobs: "baseline" for night in store.nights() if night.id in nights}
    copies = inventory.copies_of_jobs(home)
    jobs |= {copy.key: RUNNING for copy in copies if in_use(copy.paths[0])}
    yield from decide(copies, limit, jobs, now)
    staying = {one.artifact.key for one in of_builds if not one.goes}
    versions = {build.version for build in cached if build.name in staying}
    versions |= {known_version(engine.build) for engine in config.engines.values()}
    archives = inventory.class_archives(home)
    yield from decide((one for one in archives if one.group in versions), limit, {}, now)
    of_none = [archive for archive in archives if archive.group not in versions]
    yield from decide(of_none, None if limit is None else 0, {}, now)


def prune(config: Config, store: Store, say: Say) -> Pruned:
    """Delete the artifacts that are beyond their limits and not needed.

    If one of them cannot be deleted, it is among the `problems`, and the others are deleted.

    Raises:
        NexmarkError: Another `prune` runs in this home, or it is not known what has to stay.
    """
    home = paths.home()
    with _alone(home):
        problems = [*_emptied(inventory.trash_cans(home))]
        decisions = plan(config, store, datetime.now(UTC))
        for artifact in [one.artifact for one in decisions if one.goes]:
            try:
                problems += _remove(artifact, store, home)
            except (NexmarkError, OSError) as error:
                problems.append(f"{artifact.kind} {artifact.key}: stay: {error}")
        problems += _emptied(inventory.trash_cans(home))
        _drop_links(home / "event-logs")
        shrunk = _shrunk(store, home, say)
    return Pruned(tuple(decisions), tuple(problems), shrunk)


@contextmanager
def _alone(home: Path) -> Iterator[None]:
    """Keep other processes from pruning this home; NexmarkError if one does already."""
    lock = home / "prune.lock"
    with ExitStack() as held:
        try:
            held.enter_context(locked(lock, wait_s=0))
        except TimeoutError:
            problem = "another prune runs in this home; wait until it has ended"
            raise NexmarkError(f"{lock}: {problem}") from None
        except OSError as error:
            raise NexmarkError(f"{lock}: {error}; see who owns the directory") from None
        yield


def _remove(artifact: Artifact, store: Store, home: Path) -> Iterable[str]:
    """Remove an artifact unless it was used since the decision; return the problems."""
    if artifact.kind == ArtifactKind.RAW_ROWS:
        store.prune_raw_rows(artifact.key)
        return ()
    if artifact.kind == ArtifactKind.BUILDS:
        cached = {build.name: build for build in cached_builds(home / "builds")}
        return _remove_build(cached.get(artifact.key), artifact)
    if _was_used(artifact, home):
        return ()
    aside = _root(artifact.paths[0], home) / PRUNED / uuid.uuid4().hex
    for number, path in enumerate(artifact.paths):
        (aside / str(number)).mkdir(parents=True)
        with suppress(FileNotFoundError):
            path.rename(aside / str(number) / path.name)
    return _emptied([aside])


def _remove_build(build: CachedBuild | None, artifact: Artifact) -> Iterable[str]:
    """Remove a build, unless it was used after the decision."""
    if build is None or build.used > artifact.moment.timestamp() or in_use(build.directory):
        return ()
    aside = set_build_aside(build)
    return _emptied([aside] if aside else [])


def _was_used(artifact: Artifact, home: Path) -> bool:
    """Return whether an artifact was used after the decision."""
    if artifact.kind in (ArtifactKind.RUNS, ArtifactKind.EVENT_LOGS):
        leased = {str(paths.run_dir(*run)) for run in running(home)}
        directory = Path(artifact.key)
        return artifact.key in leased or last_change(directory) > artifact.moment
    return artifact.kind == ArtifactKind.JOBS and in_use(artifact.paths[0])


def _root(path: Path, home: Path) -> Path:
    """Return the directory below the home whose trash takes a path.

    Both are on one file system, so the path can be renamed into the trash.
    """
    below = path.relative_to(home).parts
    return home / below[0] / below[1] if below[0] == "airflow" else home / below[0]


def _emptied(directories: Sequence[Path]) -> Iterator[str]:
    """Delete directories, also where directories in them are read-only; yield the problems."""
    for directory in directories:
        for parent in (directory, *directory.rglob("*")):
            if parent.is_dir() and not parent.is_symlink():
                with suppress(OSError):
                    parent.chmod(0o700)
        try:
            shutil.rmtree(directory)
        except FileNotFoundError:
            continue
        except OSError as error:
            yield f"{directory}: cannot be deleted: {error}; delete it, or see who owns it"


def _drop_links(directory: Path) -> None:
    """Remove the links to event logs that are gone."""
    for link in directory.glob("*"):
        if link.is_symlink() and not link.exists():
            link.unlink(missing_ok=True)


def _shrunk(store: Store, home: Path, say: Say) -> int:
    """Shrink the database, unless a night runs, which would have to wait; return the bytes."""
    store.prune_plans()
    if running(home):
        say("a night has a cluster: the database is not written again now; its free room is used")
        return 0
    try:
        return store.shrink()
    except StoreError as error:
        say(f"the database has not become smaller: {error}")
        return 0
