"""The repetitions of both arms of a query, side by side."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

from nexmark.store import BASELINE, CANDIDATE, FIRST

SAME, DETAILS, CHANGED, UNKNOWN = "same", "details differ", "changed", "–"
NOTABLE = 0.02
"""A smaller difference in state is not shown."""


@dataclass(frozen=True)
class Arms:
    """The first repetitions of one query that count, of the candidate and of what it is against."""

    candidate: tuple[Any, ...] = ()
    baseline: tuple[Any, ...] = ()

    def ratio(self, metric: str) -> float | None:
        """Return the ratio of the medians of a metric."""
        ours, theirs = self.median(metric), self.median(metric, baseline=True)
        return ours / theirs if ours is not None and theirs else None

    def median(self, metric: str, baseline: bool = False) -> float | None:
        """Return the median of a metric in one arm."""
        rows = self.baseline if baseline else self.candidate
        values = [getattr(row, metric) for row in rows if getattr(row, metric) is not None]
        return float(median(values)) if values else None

    @property
    def plan(self) -> str:
        """Whether both arms ran the same plan: by its operators, then by its text."""
        ours, theirs = _plans(self.candidate), _plans(self.baseline)
        if not ours or not theirs:
            return UNKNOWN
        if {x.plan_skeleton_hash for x in ours} != {x.plan_skeleton_hash for x in theirs}:
            return CHANGED
        return SAME if {x.plan_id for x in ours} == {x.plan_id for x in theirs} else DETAILS


def arms_of(
    rows: Iterable[Any], others: Mapping[str, Sequence[Any]] | None = None
) -> dict[str, Arms]:
    """Return the arms by query; ``others`` has the baseline that is of another night."""
    ours: dict[str, list[Any]] = {}
    theirs: dict[str, list[Any]] = {}
    for row in _counting(rows):
        if row.arm == CANDIDATE:
            ours.setdefault(row.query, []).append(row)
        elif row.arm == BASELINE:
            theirs.setdefault(row.query, []).append(row)
    for query, found in (others or {}).items():
        theirs.setdefault(query, [x for x in _counting(found) if x.arm == CANDIDATE])
    return {
        query: Arms(tuple(ours.get(query, ())), tuple(theirs.get(query, ())))
        for query in [*ours, *(theirs.keys() - ours.keys())]
    }


def nearest(rows: Sequence[Any], metric: Callable[[Any], float | None]) -> Any | None:
    """Return the row whose figure is nearest to the median of all."""
    known = [(value, row) for row in rows if (value := metric(row)) is not None]
    if not known:
        return None
    middle = median(value for value, _ in known)
    return min(known, key=lambda one: abs(one[0] - middle))[1]


def _counting(rows: Iterable[Any]) -> list[Any]:
    return [row for row in rows if row.status == "ok" and row.stage == FIRST]


def _plans(rows: Iterable[Any]) -> list[Any]:
    return [row for row in rows if row.plan_skeleton_hash is not None]


__all__ = ["CHANGED", "DETAILS", "NOTABLE", "SAME", "UNKNOWN", "Arms", "arms_of", "nearest"]
