"""How much a query's ratio moves from night to night when nothing has changed.

Two sources, per query: pairs differ within a night (known well, from all pairs of all nights), and
whole nights differ by more than that explains (start-up effects that pairing does not cancel;
known badly per query, so half of it is taken from the suite). Arrays have the shape
(..., queries, nights).

A shift is relative to the accepted build, so it jumps where another build is accepted. Such a jump
is no noise: each stretch of nights with one baseline is taken about its own level. Nights without
ground for a verdict teach nothing, nor do confirmed changes; what was only suspected stays in.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nexmark.model import CONFIRMED, SUITE, Mode, grouped
from nexmark.verdict.location import EFFICIENCY, Array, nan_median, spread
from nexmark.verdict.verdict import Verdict

NORMAL = 1.4826
"""Standard deviation of a normal variable / its median absolute deviation."""
OWN_NIGHTS = 60
"""After this many nights a query's own night-to-night spread counts as much as the suite's."""
NOISY_NIGHT = 1.25
"""A night whose pairs spread by more than this times the usual is a noisy one."""
FEWEST_QUERIES = 5
"""Below this the suite does not tell a noisy night from a noisy query."""
SHORTEST = 3
"""Fewer nights with a baseline have no level of their own. They are taken about 0, where a build is
in the moment in which it is accepted."""
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

    def of(self, pairs: Array) -> Array:
        """Return the standard deviation of the Hodges-Lehmann estimate of ``pairs`` pairs."""
        deviation = np.sqrt(self.nightly**2 + EFFICIENCY * self.pair**2 / pairs)
        return np.maximum(deviation, self.floor)

    def of_both(self, pairs: Array, fresh: Array) -> Array:
        """Return the standard deviation of the mean, by pairs, of two stages of one night."""
        total = pairs + fresh
        share = (pairs**2 + fresh**2) / total**2
        deviation = np.sqrt(share * self.nightly**2 + EFFICIENCY * self.pair**2 / total)
        return np.maximum(deviation, self.floor)

    def widened(self, deviation: Array) -> "Noise":
        """Return the noise of a night in which the hosts add this deviation to each query."""
        return replace(self, nightly=np.sqrt(self.nightly**2 + deviation**2))

    def tonight(self, ratios: Array) -> "Noise":
        """Return the noise scaled up where the pairs of the whole suite spread more than usual."""
        if ratios.shape[-2] < FEWEST_QUERIES:
            return self
        factor = nan_median(spread(ratios) / np.maximum(self.pair, self.floor))
        factor = np.where(factor > NOISY_NIGHT, factor, 1.0)[..., None]
        return replace(self, pair=self.pair * factor, nightly=self.nightly * factor)


def learn(shifts: Array, spreads: Array, pairs: Array, floor: float) -> Noise:
    """Learn from the shifts, spreads and numbers of pairs of earlier nights (..., queries, nights).

    NaN in ``shifts`` where a query has no such night. Shifts are taken about their own median, so
    that a change that stays is no noise.
    """
    nights = np.sum(~np.isnan(shifts), axis=-1)
    # The mean difference of few pairs is skewed: its median is a little below its mean.
    pair = nan_median(spreads / (1 - 0.105 / np.maximum(pairs - 1, 1)))
    usual = nan_median(pairs)
    within = np.sqrt(EFFICIENCY / usual) * pair
    # The correction for few nights: Croux and Rousseeuw (1992).
    few = nights / (nights - 0.8)
    own = NORMAL * few * nan_median(np.abs(shifts - nan_median(shifts)[..., None]))
    share = np.where(within > 0, own / np.maximum(within, 1e-12), np.nan)
    suite = np.fmax(nan_median(share)[..., None], 1.0) * within
    weight = nights / (nights + OWN_NIGHTS)
    total = np.maximum(weight * own + (1 - weight) * suite, floor)
    nightly = np.sqrt(np.maximum(total**2 - within**2, 0.0))
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
    """Return the suite's shift of each night; NaN if less than ``SHARE`` of the queries has one."""
    count = np.sum(~np.isnan(shifts), axis=-2)
    total = np.nansum(shifts, axis=-2)
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
    """Earlier verdicts on one metric in one mode, by query and oldest first."""

    def __init__(self, earlier: Earlier, metric: str, mode: Mode) -> None:
        """Keep what was measured; verdicts without numbers teach nothing."""
        rows = [x for night in earlier for x in night if (x.metric, x.mode) == (metric, mode)]
        self._suite_changed = {x.night for x in rows if x.query == SUITE and _changed(x)}
        known = (x for x in rows if x.query != SUITE and x.shift is not None)
        self._rows = grouped(known, lambda row: row.query)
        names = dict.fromkeys(night[0].night for night in earlier if night)
        self._places = {name: place for place, name in enumerate(names)}

    def history(self, queries: Sequence[str], baseline: Mapping[str, str], nights: int) -> Learned:
        """Return the last ``nights`` nights of each query, (queries, nights), NaN in front."""
        same = ([x for x in self._rows.get(query, ()) if not _changed(x)] for query in queries)
        series = [rows[-nights:] for rows in same]
        slower, faster = zip(*(self._drift(x, baseline.get(x, "")) for x in queries), strict=True)
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
        found = [float(value) for value in suite_shifts(table) if not np.isnan(value)]
        return np.ravel(_table([found[-nights:]], nights))

    def _drift(self, query: str, baseline: str) -> tuple[float, float]:
        """Return the sums after the last night; 0 where another build was accepted since."""
        rows = self._rows.get(query)
        if not rows or rows[-1].baseline_build != baseline:
            return 0.0, 0.0
        return rows[-1].drift_slower, rows[-1].drift_faster


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
