"""What happened within repetitions: CPU over time, batches, state."""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from statistics import median
from typing import Any

from nexmark.measure.cpu import CpuSeries
from nexmark.store import BASELINE, CANDIDATE, Store
from nexmark.store.series import unpack
from nexmark.web.views.arms import Arms, nearest

MOST_POINTS = 240
"""Of one line of a chart."""
AROUND_S = 10.0
"""Of the readings before and after a run that are shown: start-up, and the end."""
_MEGA = 1e6

Point = dict[str, Any]


def cpu_points(store: Store, arms: Arms) -> dict[str, list[Point]]:
    """Return cores over time by host, of the repetition of each arm nearest to the median."""
    found: dict[str, list[Point]] = {}
    for arm, rows in ((CANDIDATE, arms.candidate), (BASELINE, arms.baseline)):
        row = nearest(rows, lambda one: one.cpu_s_per_mevent)
        for series in store.sample_series(row.id) if row is not None else ():
            points = cores(unpack(series.series), row.start or 0.0, row.end) if row else []
            found.setdefault(series.host, []).extend({"arm": arm, **one} for one in points)
    return {host: points for host, points in sorted(found.items()) if points}


def cores(series: CpuSeries, start: float, end: float | None = None) -> list[Point]:
    """Return the cores that were used between readings, at most ``MOST_POINTS`` of them.

    The samplers run for all repetitions: only the readings around the run are shown.
    """
    used = [a + b for a, b in zip(series.executors, series.python, strict=True)]
    last = bisect_right(series.times, math.inf if end is None else end + AROUND_S)
    first = max(0, bisect_left(series.times, start - AROUND_S) - 1)
    step = max(1, -(-(last - 1 - first) // MOST_POINTS))
    points = []
    for left in range(first, last - 1, step):
        right = min(left + step, last - 1)
        seconds = series.times[right] - series.times[left]
        if seconds > 0:
            points.append(
                {
                    "seconds": round(series.times[right] - start, 2),
                    "cores": round((used[right] - used[left]) / seconds, 3),
                }
            )
    return points


def batch_points(rows: Iterable[Any]) -> list[Point]:
    """Return the medians over the repetitions of each arm, batch by batch."""
    found: dict[tuple[str, int], list[dict[str, Any]]] = {}
    for row in rows:
        if row.arm in (CANDIDATE, BASELINE):
            for batch in row.batch_list or ():
                found.setdefault((row.arm, int(batch["id"])), []).append(batch)
    order = {CANDIDATE: 0, BASELINE: 1}
    return [
        {
            "arm": arm,
            "batch": number,
            "seconds": _middle(own, "duration_ms", 1000),
            "rows": _middle(own, "state_rows", 1),
            "megabytes": _middle(own, "state_bytes", _MEGA),
        }
        for (arm, number), own in sorted(
            found.items(), key=lambda one: (order[one[0][0]], one[0][1])
        )
    ]


def _middle(batches: Sequence[dict[str, Any]], name: str, unit: float) -> float | None:
    values = [x[name] for x in batches if isinstance(x.get(name), (int, float))]
    return round(median(values) / unit, 4) if values else None


__all__ = ["batch_points", "cores", "cpu_points"]
