"""The things that retention decides on, and the decision: what stays, what goes, and why."""

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


class Kind(StrEnum):
    """What nights leave behind."""

    RUNS = "run directories"
    EVENT_LOGS = "event logs"
    RAW_ROWS = "raw rows"
    BUILDS = "builds"
    JOBS = "copies of the jobs"
    ARCHIVES = "class archives"
    LOGS = "logs"


@dataclass(frozen=True)
class Thing:
    """One thing of a kind.

    `key` is what it is known by: the run directory, the name of the night, of the build, of the
    file. The limit counts within a `group`, a DAG say. `moment` is when it was used last, `paths`
    are the files and directories to delete; raw rows have none.
    """

    kind: Kind
    key: str
    group: str
    moment: datetime
    bytes: int
    paths: tuple[Path, ...] = ()


@dataclass(frozen=True)
class ThingDecision:
    """A thing, and the reason why it stays; '' if it goes."""

    thing: Thing
    reason: str

    @property
    def goes(self) -> bool:
        """Whether the thing is deleted."""
        return not self.reason


def decide(
    things: Iterable[Thing],
    limit: int | None,
    needed: Mapping[str, str],
    now: datetime,
) -> list[ThingDecision]:
    """Decide which things go: those beyond the newest of their group, unless they are needed.

    Args:
        things: all things of one kind.
        limit: how many of each group stay; None: all.
        needed: by key the reason why a thing stays, however old it is.
        now: the moment; what was used shortly before it stays.

    Returns:
        The decisions, the newest thing of each group first.
    """
    decisions = []
    for group in grouped(things, lambda thing: thing.group).values():
        newest_first = sorted(group, key=lambda thing: (thing.moment, thing.key), reverse=True)
        for place, thing in enumerate(newest_first):
            if thing.key in needed:
                reason = needed[thing.key]
            elif limit is None:
                reason = "no limit"
            elif place < limit:
                reason = f"newest {limit}"
            else:
                reason = "used lately" if now - thing.moment < SETTLED else ""
            decisions.append(ThingDecision(thing, reason))
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
    """Return the bytes of a file, or of all files below a directory; what vanishes counts as 0."""
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
