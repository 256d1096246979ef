"""What earlier verdicts teach: the series of shifts and spreads of each query.

A night is left out where it had no ground for a verdict, and where its change was confirmed: that
was a change and no noise. What was only suspected stays in.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from statistics import mean, median

import numpy as np

from nexmark.verdict.comparison import Value
from nexmark.verdict.decision import History
from nexmark.verdict.drift import Drift
from nexmark.verdict.location import Array
from nexmark.verdict.nights import SUITE, QueryVerdict

Earlier = Sequence[Sequence[QueryVerdict]]
"""The verdicts of earlier nights, oldest first."""

_CONFIRMED = frozenset({Value.REGRESSION, Value.FASTER})


class Past:
    """Earlier verdicts on one metric in one mode, by query and oldest first."""

    def __init__(self, earlier: Earlier, metric: str, mode: str) -> None:
        """Keep what was measured; verdicts without numbers teach nothing."""
        self._rows: dict[str, list[QueryVerdict]] = {}
        self._suite: list[float] = []
        for night in earlier:
            rows = [x for x in night if x.metric == metric and x.mode == mode and _teaches(x)]
            for row in rows:
                self._rows.setdefault(row.query, []).append(row)
            shifts = [_number(row.shift) for row in rows if not _changed(row)]
            if shifts:
                self._suite.append(mean(shifts))

    def history(self, queries: Sequence[str], baseline: Mapping[str, str], nights: int) -> History:
        """Return the last ``nights`` nights of each query, (queries, nights), NaN in front."""
        series = [self._learnable(query, nights) for query in queries]
        slower, faster = zip(
            *(self._drift(query, baseline.get(query, "")) for query in queries), strict=True
        )
        return History(
            _table([_about_own_level(rows) for rows in series], nights),
            _table([[_number(row.spread) for row in rows] for rows in series], nights),
            _table([[float(row.pairs) for row in rows] for rows in series], nights),
            _table([self._suite[-nights:]], nights)[0],
            Drift(np.asarray(slower), np.asarray(faster)),
        )

    def levels(self, query: str, common: str, nights: int) -> list[float]:
        """Return the last levels of a query (history mode) that have `common` for a baseline."""
        rows = [row for row in self._learnable(query, None) if row.baseline == common]
        return [_number(row.shift) for row in rows[-nights:]]

    def _learnable(self, query: str, nights: int | None) -> list[QueryVerdict]:
        rows = self._rows.get(query, [])
        kept = [row for row in rows if not _changed(row)]
        return kept[-nights:] if nights else kept

    def _drift(self, query: str, baseline: str) -> tuple[float, float]:
        rows = self._rows.get(query, [])
        if not rows or rows[-1].baseline != baseline:
            return 0.0, 0.0
        return rows[-1].drift_slower, rows[-1].drift_faster


def _teaches(verdict: QueryVerdict) -> bool:
    return verdict.shift is not None and verdict.query != SUITE


def _changed(verdict: QueryVerdict) -> bool:
    return verdict.decides and verdict.value in _CONFIRMED


def _about_own_level(rows: Sequence[QueryVerdict]) -> list[float]:
    """Return the shifts; where the baseline has moved, each stretch about its own median."""
    stretches: dict[str, list[float]] = {}
    for row in rows:
        stretches.setdefault(row.baseline, []).append(_number(row.shift))
    if len(stretches) < 2:
        return [_number(row.shift) for row in rows]
    middles = {baseline: median(shifts) for baseline, shifts in stretches.items()}
    return [_number(row.shift) - middles[row.baseline] for row in rows]


def _number(value: float | None) -> float:
    return np.nan if value is None else value


def _table(rows: Sequence[Sequence[float]], width: int) -> Array:
    """Return rows of numbers as an array, aligned at the end."""
    return np.asarray([list(_padded(row, width)) for row in rows], dtype=np.float64)


def _padded(row: Sequence[float], width: int) -> Iterator[float]:
    yield from [np.nan] * (width - len(row))
    yield from row


__all__ = ["Earlier", "Past"]
