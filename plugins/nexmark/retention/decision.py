"""The artifacts that retention decides on, and the decision: what stays, what goes, and why."""

import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from pathlib import Path

from nexmark.model import grouped

#: What was used within this time stays: a night that is just beginning may need it.
SETTLED = timedelta(days=2)


class ArtifactKind(StrEnum):
    """What nights leave behind."""

    RUNS = "run directories"
    EVENT_LOGS = "event logs"
    RAW_ROWS = "raw rows"
    BUILDS = "builds"
    JOBS = "copies of the jobs"
    ARCHIVES = "class archives"
    LOGS = "logs"


@dataclass(frozen=True)
class Artifact:
    """One thing that nights have left behind.

    Attributes:
        kind: What it is.
        key: The run directory, or the name of the night, of the build or of the file.
        group: The limit counts within a group: a DAG, or all builds.
        moment: When it was used last.
        bytes: Its size.
        paths: The files and directories to delete; raw rows have none.
    """

    kind: ArtifactKind
    key: str
    group: str
    moment: datetime
    bytes: int
    paths: tuple[Path, ...] = ()


@dataclass(frozen=True)
class PruneDecision:
    """An artifact, and the reason why it stays; '' if it goes."""

    artifact: Artifact
    reason: str

    @property
    def goes(self) -> bool:
        """Whether the artifact is deleted."""
        return not self.reason


def decide(
    artifacts: Iterable[Artifact],
    limit: int | None,
    needed: Mapping[str, str],
    now: datetime,
) -> list[PruneDecision]:
    """Decide which artifacts go: those beyond the newest of their group, unless they are needed.

    Args:
        artifacts: All artifacts of one kind.
        limit: How many of each group stay; None for all.
        needed: The reason by key why an artifact stays, however old it is.
        now: The present moment; an artifact that was used shortly before it stays.

    Returns:
        The decisions, the newest artifact of each group first.
    """
    decisions = []
    for group in grouped(artifacts, lambda artifact: artifact.group).values():
        newest_first = sorted(
            group, key=lambda artifact: (artifact.moment, artifact.key), reverse=True
        )
        for rank, artifact in enumerate(newest_first):
            if artifact.key in needed:
                reason = needed[artifact.key]
            elif limit is None:
                reason = "no limit"
            elif rank < limit:
                reason = f"newest {limit}"
            else:
                reason = "used lately" if now - artifact.moment < SETTLED else ""
            decisions.append(PruneDecision(artifact, reason))
    return decisions


def last_change(directory: Path) -> datetime:
    """Return when a directory, or a file directly in it, was changed last."""
    times = [0.0]
    with suppress(OSError):
        times.append(directory.stat().st_mtime)
        for path in directory.iterdir():
            with suppress(OSError):
                times.append(path.lstat().st_mtime)
    return datetime.fromtimestamp(max(times), UTC)


def bytes_of(path: Path) -> int:
    """Return the size in bytes of a file, or of all files below a directory.

    A file that is deleted meanwhile counts as 0.
    """
    if not path.is_dir():
        with suppress(OSError):
            return path.lstat().st_size
        return 0
    return sum(_sizes(path))


def _sizes(directory: Path) -> Iterator[int]:
    for parent, _, names in os.walk(directory):
        for name in names:
            with suppress(OSError):
                yield Path(parent, name).lstat().st_size
