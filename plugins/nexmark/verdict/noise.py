"""How much a query's ratio moves from night to night when nothing has changed.

Two sources, per query: pairs differ within a night (known well, from all pairs of all nights), and
whole nights differ by more than that explains (start-up effects that pairing does not cancel;
known well of the suite, badly of one query). Arrays have the shape
(..., queries, nights).

A shift is relative to the accepted build, so it jumps where another build is accepted. Such a jump
is no noise: each stretch of nights with one baseline is taken about its own level. Nights without
ground for a verdict teach nothing, nor do confirmed changes; what was only suspected stays in.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nexmark.model import CONFIRMED, FALLS_BACK, SUITE, Mode, grouped
from nexmark.verdict.location import EFFICIENCY, Array, nan_median
from nexmark.verdict.verdict import Verdict

NORMAL = 1.4826
"""Standard deviation of a normal variable / its median absolute deviation."""
OWN_NIGHTS = 60
"""After this many nights half of what a query's nights vary by beyond the suite's is believed."""
CHANCE = 4.5
"""Nights have something of their own where the variance between them is more than what their pairs
explain by this over the root of the number of shifts: some two standard errors of the variance, so
that chance is not taken for it. 60 nights of 23 queries show 12 %."""
OWN_INDISTINCT = 2.5
"""One query has more than the others where its variance is this times what else explains it."""
SHORTEST = 3
"""Fewer nights with a baseline have no level of their own. They are taken about 0, where a build is
in the moment in which it is accepted."""
FAR = 3.0
"""Robust standard deviations of the queries of a night from their median."""
SHARE = 0.5
"""A night with a smaller share of the queries says nothing of the suite."""
Earlier = Sequence[Sequence[Verdict]]
"""The verdicts of earlier nights, oldest first."""


@dataclass(frozen=True)
class Noise:
    """Learned noise of each query, shape (..., queries); NaN where nothing was learned.

    ``pair`` is the standard deviation of the log ratio of one pair, ``nightly`` of what all pairs
    of one night have in common, ``floor`` the least that is believed, ``nights`` how many nights
    it was learned from.
    """

    pair: Array
    nightly: Array
    floor: float
    nights: Array

    def at(self, picked: tuple[NDArray[np.intp], ...]) -> "Noise":
        """Return the noise of the picked queries."""
        return Noise(self.pair[picked], self.nightly[picked], self.floor, self.nights[picked])


def learn(shifts: Array, spreads: Array, pairs: Array, floor: float) -> Noise:
    """Return the noise of queries, learned from earlier nights (..., queries, nights).

    Shifts are taken about their own median, so that a change that stays is no noise.

    Args:
        shifts: The log ratio of each night; NaN where a query has no such night.
        spreads: How much the pairs of each night differ.
        pairs: The number of pairs of each night.
        floor: The least noise that is believed.
    """
    nights = np.sum(~np.isnan(shifts), axis=-1)
    # The mean difference of few pairs is skewed: its median is a little below its mean.
    pair = nan_median(spreads / (1 - 0.105 / np.maximum(pairs - 1, 1)))
    usual = nan_median(pairs)
    within = np.sqrt(EFFICIENCY / usual) * pair
    # The correction for few nights: Croux and Rousseeuw (1992).
    few = nights / (nights - 0.8)
    of_query = NORMAL * few * nan_median(np.abs(shifts - nan_median(shifts)[..., None]))
    share = np.where(within > 0, of_query / np.maximum(within, 1e-12), np.nan)
    suite = nan_median(share)[..., None] * within
    count = np.maximum(np.sum(nights, axis=-1), 1)[..., None]
    indistinct = 1 + CHANCE / np.sqrt(count)
    of_suite = np.maximum(suite**2 - indistinct * within**2, 0.0)
    beyond = np.maximum(of_query**2 - OWN_INDISTINCT * (within**2 + of_suite), 0.0)
    weight = nights / (nights + OWN_NIGHTS)
    nightly = np.sqrt(of_suite + weight * beyond)
    return Noise(pair, nightly, floor, nights.astype(np.float64))


def about_own_level(shifts: Array, stretches: NDArray[np.int_]) -> Array:
    """Return the shifts, each stretch of nights with the same baseline about its own median.

    ``stretches`` (..., nights) numbers the baselines. A median of few nights is close to each of
    them: where there are several stretches, the rest is widened by as much.
    """
    known = ~np.isnan(shifts)
    result = shifts.copy()
    numbers = np.unique(stretches)
    parts = [known & (stretches == number) for number in numbers]
    several = sum(part.any(axis=-1).astype(int) for part in parts) > 1
    for part in parts:
        count = part.sum(axis=-1)[..., None]
        level = nan_median(np.where(part, shifts, np.nan))[..., None]
        widened = np.sqrt(count / np.maximum(count - 1, 1))
        centred = (shifts - level) * np.where(several[..., None], widened, 1.0)
        result = np.where(part & (count >= SHORTEST), centred, result)
    return result


def suite_shifts(shifts: Array) -> Array:
    """Return the suite's shift of each night; NaN if less than ``SHARE`` of the queries has one.

    A query that a spike moved away from the others counts as one that is ``FAR`` from their median.
    """
    count = np.sum(~np.isnan(shifts), axis=-2)
    turned = np.swapaxes(shifts, -1, -2)
    middle = nan_median(turned)[..., None]
    reach = FAR * NORMAL * nan_median(np.abs(turned - middle))[..., None]
    kept = np.swapaxes(np.clip(turned, middle - reach, middle + reach), -1, -2)
    total = np.nansum(kept, axis=-2)
    enough = count >= np.maximum(SHARE * shifts.shape[-2], 1)
    return np.where(enough, total / np.maximum(count, 1), np.nan)


@dataclass(frozen=True)
class Drift:
    """The sums upwards (slower) and downwards (faster), in noise units."""

    slower: Array
    faster: Array


@dataclass(frozen=True)
class Learned:
    """Earlier nights, oldest first: (..., queries, nights), NaN where there is nothing to learn.

    Of the first pairs of each; ``suite`` has shape (..., nights), ``drift`` is after the last one.
    """

    shift: Array
    spread: Array
    pairs: Array
    suite: Array
    drift: Drift


class Past:
    """Earlier verdicts on one metric of each query in one mode, oldest first."""

    def __init__(self, earlier: Earlier, metrics: Mapping[str, str], mode: Mode) -> None:
        """Keep what was measured; verdicts without numbers teach nothing.

        Args:
            earlier: The verdicts of earlier nights.
            metrics: The metric of each query.
            mode: How the nights were judged.
        """
        of_mode = [verdict for night in earlier for verdict in night if verdict.mode == mode]
        changed = {
            (verdict.night, verdict.query): verdict.metric
            for verdict in of_mode
            if _changed(verdict)
        }
        self._suite_changed = {night for night, query in changed if query == SUITE}
        self._changed = {
            of_night
            for of_night, metric in changed.items()
            if metric in _alike(metrics.get(of_night[1], ""))
        }
        known = (
            verdict
            for verdict in of_mode
            if verdict.shift is not None and metrics.get(verdict.query) == verdict.metric
        )
        self._rows = grouped(known, lambda row: row.query)
        names = dict.fromkeys(night[0].night for night in earlier if night)
        self._places = {name: place for place, name in enumerate(names)}

    def history(self, queries: Sequence[str], baseline: Mapping[str, str], nights: int) -> Learned:
        """Return the last ``nights`` nights of each query, (queries, nights), NaN in front."""
        same = (
            [
                row
                for row in self._rows.get(query, ())
                if (row.night, row.query) not in self._changed
            ]
            for query in queries
        )
        series = [rows[-nights:] for rows in same]
        slower, faster = zip(
            *(self._drift(query, baseline.get(query, "")) for query in queries), strict=True
        )
        shifts = [_about_own_level(rows) for rows in series]
        spreads = _table([[row.spread for row in rows] for rows in series], nights)
        pairs = _table([[row.pairs for row in rows] for rows in series], nights)
        drift = Drift(np.asarray(slower), np.asarray(faster))
        suite = self._suite(series, shifts, nights)
        return Learned(_table(shifts, nights), spreads, pairs, suite, drift)

    def _suite(self, series: list[list[Verdict]], shifts: list[list[float]], nights: int) -> Array:
        """Return the last shifts of the suite, but for nights in which it had itself changed."""
        table = np.full((len(series), len(self._places)), np.nan)
        for place, (rows, values) in enumerate(zip(series, shifts, strict=True)):
            for row, value in zip(rows, values, strict=True):
                if row.night not in self._suite_changed:
                    table[place, self._places[row.night]] = value
        suite = [float(value) for value in suite_shifts(table) if not np.isnan(value)]
        return np.ravel(_table([suite[-nights:]], nights))

    def _drift(self, query: str, baseline: str) -> tuple[float, float]:
        """Return the sums after the last night; 0 where another build was accepted since."""
        rows = self._rows.get(query)
        if not rows or rows[-1].baseline_build != baseline:
            return 0.0, 0.0
        return rows[-1].drift_slower, rows[-1].drift_faster


def _alike(metric: str) -> tuple[str, ...]:
    """Return the metrics by which a change of a query is a change by this one, too."""
    both = next((each for each in FALLS_BACK.items() if metric in each), ())
    return (metric, *both)


def _changed(verdict: Verdict) -> bool:
    return verdict.decides and verdict.value in CONFIRMED


def _about_own_level(rows: Sequence[Verdict]) -> list[float]:
    shifts = np.asarray([row.shift for row in rows])
    _, stretches = np.unique([row.baseline_build for row in rows], return_inverse=True)
    return [float(value) for value in about_own_level(shifts, stretches)]


def _table(rows: Sequence[Sequence[float | None]], width: int) -> Array:
    """Return rows of numbers as an array, aligned at the end."""
    padded: list[Any] = [[None] * (width - len(row)) + [*row] for row in rows]
    return np.asarray(padded, dtype=np.float64)
