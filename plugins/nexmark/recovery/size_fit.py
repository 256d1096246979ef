"""Restarts at several sizes -> medians with intervals, seconds per MB, and a prediction."""

from __future__ import annotations

from collections.abc import Sequence

from nexmark.model import Spread, grouped
from nexmark.recovery.restore_sizes import Restarted

#: What Oceanus measured with q20: 57 GB in 8 tasks, restored in 10 s, away for 25 s; with state
#: that stays in remote storage, in 1.5 s and for 17 s.
TASK_MB = 57 * 1024 / 8
OCEANUS = (
    ("Flink, RocksDB", "remote", "", "10", "", "25"),
    ("Flink, state in remote storage", "remote", "", "1.5", "", "17"),
)


def cells(found: Sequence[Restarted]) -> list[list[str]]:
    """The rows of the table: mode, place, size, restore, interruption, commit."""
    groups = grouped(found, lambda each: (each.mode, each.place, each.state_mb))
    return [
        [
            *(mode, place, f"{size:.0f}"),
            _told([each.restore_s for each in group]),
            str(Spread.of([each.interruption_s for each in group])),
            str(Spread.of([each.commit_s for each in group])),
        ]
        for (mode, place, size), group in sorted(groups.items())
    ]


def predictions(found: Sequence[Restarted], tasks: int) -> list[list[str]]:
    """The rows of the second table: mode, place, then s/MB and s at `TASK_MB` of restore and
    interruption; Oceanus' rows last.

    All is by task: a restore summed over `tasks` tasks that load at a time takes a part of it.
    """
    rows = []
    for (mode, place), here in sorted(grouped(found, lambda x: (x.mode, x.place)).items()):
        restore = [
            (x.state_mb / tasks, x.restore_s / tasks) for x in here if x.restore_s is not None
        ]
        away = [(each.state_mb / tasks, each.interruption_s) for each in here]
        rows.append([mode, place, *_line(restore), *_line(away)])
    return [*rows, *map(list, OCEANUS)]


def _line(points: Sequence[tuple[float, float]]) -> tuple[str, str]:
    """Seconds per MB with twice the standard error; the prediction, if it grows with the state."""
    from scipy.stats import linregress

    if len({size for size, _ in points}) < 2:
        return "", ""
    line = linregress(*zip(*points, strict=True))
    error = f" +- {2 * line.stderr:.4f}" if len(points) > 2 else ""
    grows = line.slope > 2 * line.stderr
    at = line.intercept + line.slope * TASK_MB
    return f"{line.slope:.4f}{error}", f"{at:.0f}" if grows else "no growth"


def _told(values: Sequence[float | None]) -> str:
    told = [value for value in values if value is not None]
    return str(Spread.of(told)) if told else "not reported"
