"""The history of the ratio of a query: what each night said, and when it changed."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from nexmark.report.plain import moment
from nexmark.store import Store
from nexmark.store.history import Point, trail
from nexmark.store.models import Night
from nexmark.verdict.change_points import ChangePoint

NIGHTS = 100
"""So far back the evidence of an alarm goes."""


def history_json(store: Store, night: Night, query: str, metric: str) -> dict[str, Any]:
    """Return what comparable nights up to one said of a query, oldest first; and the changes."""
    points = trail(store, night, query, metric, NIGHTS)
    return {
        "history": [asdict(point) | {"started": moment(point.started)} for point in points],
        "changes": [
            asdict(change) | {"build": point.build} for point, change in lasting_changes(points)
        ],
    }


def lasting_changes(points: Sequence[Point]) -> list[tuple[Point, ChangePoint]]:
    """Return the lasting changes, across baselines that moved, each with its first night."""
    from nexmark.verdict.chained import Ratio, dated_changes

    ratios = [
        Ratio(point.night, point.build, point.baseline, _shift(point), point.noise)
        for point in points
    ]
    return [(points[change.index], change) for change in dated_changes(ratios)]


def _shift(point: Point) -> float:
    if point.shift is not None:
        return point.shift
    return math.log(point.ratio) if point.ratio else math.nan


__all__ = ["NIGHTS", "history_json", "lasting_changes"]
