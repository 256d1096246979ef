"""Restarts at several sizes -> medians with intervals, seconds per MB, and a prediction."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from nexmark.model import Spread
from nexmark.recovery.restore_sizes import Restarted

#: What Oceanus measured with q20: 57 GB in 8 tasks, restored in 10 s, away for 25 s; with state
#: that stays in remote storage, in 1.5 s and for 17 s.
TASK_MB = 57 * 1024 / 8
OCEANUS = (
    ("Flink, RocksDB", "remote", "", "10", "", "25"),
    ("Flink, state in remote storage", "remote", "", "1.5", "", "17"),
)


@dataclass(frozen=True)
class Fit:
    """A line by least squares: seconds of one task = start_s + s_per_mb * MB.

    Attributes:
        start_s: at no state.
        s_per_mb: the slope.
        error: the standard error of the slope; None with two points or less.
    """

    start_s: float
    s_per_mb: float
    error: float | None

    def at(self, megabytes: float) -> float:
        """The prediction for a state."""
        return self.start_s + self.s_per_mb * megabytes


def fit(points: Sequence[tuple[float, float]]) -> Fit | None:
    """The line through points (MB, seconds); None if they have one size only."""
    if len({size for size, _ in points}) < 2:
        return None
    sizes, seconds = zip(*points, strict=True)
    slope, start = statistics.linear_regression(sizes, seconds)
    error = None
    if len(points) > 2:
        squares = sum((y - start - slope * x) ** 2 for x, y in points) / (len(points) - 2)
        mean = statistics.mean(sizes)
        error = (squares / sum((x - mean) ** 2 for x in sizes)) ** 0.5
    return Fit(start, slope, error)


def cells(found: Sequence[Restarted]) -> list[list[str]]:
    """The rows of the table: mode, place, size, restore, interruption, commit."""
    groups: dict[tuple[str, str, float], list[Restarted]] = {}
    for each in found:
        groups.setdefault((each.mode, each.place, each.state_mb), []).append(each)
    return [
        [
            *(mode, place, f"{size:.0f}"),
            _told([each.restore_s for each in group]),
            str(Spread.of([each.interruption_s for each in group])),
            str(Spread.of([each.commit_s for each in group])),
        ]
        for (mode, place, size), group in sorted(groups.items(), key=lambda item: item[0])
    ]


def predictions(found: Sequence[Restarted], tasks: int) -> list[list[str]]:
    """The rows of the second table: mode, place, then s/MB and s at `TASK_MB` of restore and
    interruption; Oceanus' rows last.

    All is by task: a restore summed over `tasks` tasks that load at a time takes a part of it.
    """
    rows = []
    for mode, place in sorted({(each.mode, each.place) for each in found}):
        here = [each for each in found if (each.mode, each.place) == (mode, place)]
        restore = [
            (each.state_mb / tasks, each.restore_s / tasks)
            for each in here
            if each.restore_s is not None
        ]
        away = [(each.state_mb / tasks, each.interruption_s) for each in here]
        rows.append([mode, place, *_line(fit(restore)), *_line(fit(away))])
    return [*rows, *map(list, OCEANUS)]


def _line(line: Fit | None) -> tuple[str, str]:
    """Seconds per MB with twice the standard error; the prediction, if it grows with the state."""
    if line is None:
        return "", ""
    error = "" if line.error is None else f" +- {2 * line.error:.4f}"
    grows = line.s_per_mb > 2 * (line.error or 0.0)
    return f"{line.s_per_mb:.4f}{error}", f"{line.at(TASK_MB):.0f}" if grows else "no growth"


def _told(values: Sequence[float | None]) -> str:
    told = [value for value in values if value is not None]
    return str(Spread.of(told)) if told else "not reported"
