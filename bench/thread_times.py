"""The CPU time of the threads of a JVM by what they do, from /proc.

A thread is recognised by its name; Linux keeps 15 characters of it. The time of threads that
ended between two readings is in no thread that is still there; the kernel keeps it in the figure of
the process. It is the class `unseen`, with what a thread used between its last reading and its end.
"""

from __future__ import annotations

import os
from bisect import bisect_right
from dataclasses import dataclass, field
from pathlib import Path

from nexmark.measure.host_samples import MeasurementError

TASKS, COLLECTOR, COMPILER, STREAM, OTHER, UNSEEN = (
    "tasks",
    "gc",
    "jit",
    "stream",
    "other",
    "unseen",
)
CLASSES = (TASKS, COLLECTOR, COMPILER, STREAM, OTHER, UNSEEN)
_BEGINNINGS = {
    "Executor task ": TASKS,
    "GC Thread#": COLLECTOR,
    "G1 ": COLLECTOR,
    "C1 CompilerThre": COMPILER,
    "C2 CompilerThre": COMPILER,
    "stream executio": STREAM,
}
_PROC = Path("/proc")
_END_S = 2.0
"""By how much a period may end after the last reading: a process may end before the next one."""
_TICK_S = 1 / os.sysconf("SC_CLK_TCK")


def class_of(name: str) -> str:
    """Return the class of a thread with this name."""
    for beginning, kind in _BEGINNINGS.items():
        if name.startswith(beginning):
            return kind
    return OTHER


@dataclass(frozen=True)
class ThreadSeries:
    """The CPU-seconds of each class since a process began, at `times` (epoch seconds)."""

    times: tuple[float, ...]
    seconds: dict[str, tuple[float, ...]]

    def between(self, kind: str, start: float, end: float) -> float:
        """Return what a class used from start to end; MeasurementError outside of the readings."""
        return self._at(kind, end) - self._at(kind, start)

    def whole(self) -> dict[str, float]:
        """Return what each class used until the last reading."""
        return {kind: values[-1] for kind, values in self.seconds.items()}

    def _at(self, kind: str, instant: float) -> float:
        """Return the value at an instant: linear between two readings, the last one at the end."""
        known = len(self.times) >= 2 and self.times[0] <= instant <= self.times[-1] + _END_S
        if not known:
            raise MeasurementError(
                f"the readings of the threads do not cover {instant:.1f}; run the application again"
            )
        instant = min(instant, self.times[-1])
        right = min(bisect_right(self.times, instant), len(self.times) - 1)
        before, after = self.times[right - 1], self.times[right]
        values = self.seconds[kind]
        part = (instant - before) / (after - before)
        return values[right - 1] + part * (values[right] - values[right - 1])


@dataclass
class ThreadTimes:
    """Readings of the threads of one process."""

    pid: int
    _ticks: dict[tuple[str, str], int] = field(default_factory=dict)
    _sums: dict[str, int] = field(default_factory=lambda: dict.fromkeys(CLASSES, 0))
    _times: list[float] = field(default_factory=list)
    _rows: list[dict[str, float]] = field(default_factory=list)

    def read(self, now: float) -> bool:
        """Add a reading at `now` (epoch seconds); False if the process has ended."""
        try:
            tasks = list((_PROC / str(self.pid) / "task").iterdir())
            threads = [stat for task in tasks if (stat := _stat(task)) is not None]
            process = _stat(_PROC / str(self.pid))
        except OSError:
            return False
        if process is None or not threads:
            return False
        for name, identity, used in threads:
            self._sums[class_of(name)] += used - self._ticks.get(identity, 0)
            self._ticks[identity] = used
        seen = sum(self._sums[kind] for kind in CLASSES if kind != UNSEEN)
        self._sums[UNSEEN] = max(process[2] - seen, self._sums[UNSEEN])
        self._times.append(now)
        self._rows.append({kind: ticks * _TICK_S for kind, ticks in self._sums.items()})
        return True

    def series(self) -> ThreadSeries:
        """Return all readings."""
        columns = {kind: tuple(row[kind] for row in self._rows) for kind in CLASSES}
        return ThreadSeries(tuple(self._times), columns)


def _stat(directory: Path) -> tuple[str, tuple[str, str], int] | None:
    """Return name, identity (id, start) and clock ticks of a thread or a process.

    None if it has ended.
    """
    try:
        text = (directory / "stat").read_text(errors="replace")
    except OSError:
        return None
    opened, closed = text.index("("), text.rindex(")")
    fields = text[closed + 2 :].split()
    identity = (text[:opened].strip(), fields[19])
    return text[opened + 1 : closed], identity, int(fields[11]) + int(fields[12])
