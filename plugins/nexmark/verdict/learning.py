"""Learns from earlier verdicts: the series of shifts and spreads of each query.

A night is left out where it had no ground for a verdict, and where its change was confirmed: that
was a change and no noise. What was only suspected stays in.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from nexmark.model import CONFIRMED, SUITE
from nexmark.verdict.decision import Drift, Learned
from nexmark.verdict.location import Array
from nexmark.verdict.measured_night import QueryVerdict
from nexmark.verdict.noise import about_own_level, suite_shifts

Earlier = Sequence[Sequence[QueryVerdict]]
"""The verdicts of earlier nights, oldest first."""


class Past:
    """Earlier verdicts on one metric in one mode, by query and oldest first."""

    def __init__(self, earlier: Earlier, metric: str, mode: str) -> None:
        """Keep what was measured; verdicts without numbers teach nothing."""
        self._rows: dict[str, list[QueryVerdict]] = {}
        self._suite_changed: set[str] = set()
        for night in earlier:
            for row in night:
                if row.metric != metric or row.mode != mode:
                    continue
                if row.query == SUITE and _changed(row):
                    self._suite_changed.add(row.night)
                if row.shift is not None and row.query != SUITE:
                    self._rows.setdefault(row.query, []).append(row)
        names = dict.fromkeys(night[0].night for night in earlier if night)
        self._places = {name: place for place, name in enumerate(names)}

    def history(self, queries: Sequence[str], baseline: Mapping[str, str], nights: int) -> Learned:
        """Return the last ``nights`` nights of each query, (queries, nights), NaN in front."""
        series = [
            [row for row in self._rows.get(query, ()) if not _changed(row)][-nights:]
            for query in queries
        ]
        slower, faster = zip(
            *(self._drift(query, baseline.get(query, "")) for query in queries), strict=True
        )
        shifts = [_about_own_level(rows) for rows in series]
        return Learned(
            _table(shifts, nights),
            _table([[row.spread for row in rows] for rows in series], nights),
            _table([[row.pairs for row in rows] for rows in series], nights),
            self._suite(series, shifts, nights),
            Drift(np.asarray(slower), np.asarray(faster)),
        )

    def _suite(
        self,
        series: Sequence[Sequence[QueryVerdict]],
        shifts: Sequence[Sequence[float]],
        nights: int,
    ) -> Array:
        """Return the last shifts of the suite, of the queries asked for, night by night.

        Without the nights in which the suite itself had changed.
        """
        table = np.full((len(series), len(self._places)), np.nan)
        for place, (rows, values) in enumerate(zip(series, shifts, strict=True)):
            for row, value in zip(rows, values, strict=True):
                if row.night not in self._suite_changed:
                    table[place, self._places[row.night]] = value
        found = [float(value) for value in suite_shifts(table) if not np.isnan(value)]
        return np.ravel(_table([found[-nights:]], nights))

    def _drift(self, query: str, baseline: str) -> tuple[float, float]:
        """Return the sums after the last night; 0 where another build was accepted since.

        They are of the distance from the accepted build, so they begin again with another one.
        """
        rows = self._rows.get(query, [])
        if not rows or rows[-1].baseline != baseline:
            return 0.0, 0.0
        return rows[-1].drift_slower, rows[-1].drift_faster


def _changed(verdict: QueryVerdict) -> bool:
    return verdict.decides and verdict.value in CONFIRMED


def _about_own_level(rows: Sequence[QueryVerdict]) -> list[float]:
    shifts = np.asarray([row.shift for row in rows], dtype=np.float64)
    numbers = {name: number for number, name in enumerate(dict.fromkeys(x.baseline for x in rows))}
    stretches = np.asarray([numbers[row.baseline] for row in rows], dtype=np.int_)
    return [float(value) for value in about_own_level(shifts, stretches)]


def _table(rows: Sequence[Sequence[float | None]], width: int) -> Array:
    """Return rows of numbers as an array, aligned at the end."""
    padded: list[Any] = [[None] * (width - len(row)) + [*row] for row in rows]
    return np.asarray(padded, dtype=np.float64)
