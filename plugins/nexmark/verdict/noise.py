"""How much a query's ratio moves from night to night when nothing has changed.

Two sources, per query: pairs differ within a night (known well, from all pairs of all nights), and
whole nights differ by more than that explains (start-up effects that pairing does not cancel;
known badly per query, so half of it is taken from the suite). Arrays have the shape
(..., queries, nights); research/regression-gates.md section 6, "Statistic".
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nexmark.verdict.location import EFFICIENCY, Array, nan_median, spread

NORMAL = 1.4826
"""Standard deviation of a normal variable / its median absolute deviation."""

OWN_NIGHTS = 60
"""With so many nights a query's own night-to-night spread counts as much as the suite's."""

NOISY_NIGHT = 1.25
"""A night whose pairs spread by more than this times the usual is a noisy one."""

FEWEST_QUERIES = 5
"""Below this the suite does not tell a noisy night from a noisy query."""


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
        """Return the standard deviation of the Hodges-Lehmann estimate of so many pairs."""
        deviation = np.sqrt(self.nightly**2 + EFFICIENCY * self.pair**2 / pairs)
        result: Array = np.maximum(deviation, self.floor)
        return result

    def of_both(self, pairs: Array, fresh: Array) -> Array:
        """Return the standard deviation of the mean, by pairs, of two stages of one night."""
        total = pairs + fresh
        share = (pairs**2 + fresh**2) / total**2
        deviation = np.sqrt(share * self.nightly**2 + EFFICIENCY * self.pair**2 / total)
        result: Array = np.maximum(deviation, self.floor)
        return result

    def tonight(self, ratios: Array) -> Noise:
        """Return the noise scaled up where the pairs of the whole suite spread more than usual."""
        if ratios.shape[-2] < FEWEST_QUERIES:
            return self
        factor = nan_median(spread(ratios) / np.maximum(self.pair, self.floor))
        factor = np.where(factor > NOISY_NIGHT, factor, 1.0)[..., None]
        return Noise(self.pair * factor, self.nightly * factor, self.floor, self.nights)


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
    own = NORMAL * _small_sample(nights) * nan_median(np.abs(shifts - _column(nan_median(shifts))))
    share = np.where(within > 0, own / np.maximum(within, 1e-12), np.nan)
    suite = np.fmax(_column(nan_median(share)), 1.0) * within
    weight = nights / (nights + OWN_NIGHTS)
    total = np.maximum(weight * own + (1 - weight) * suite, floor)
    nightly = np.sqrt(np.maximum(total**2 - within**2, 0.0))
    return Noise(pair, nightly, floor, nights.astype(np.float64))


def _small_sample(nights: Array) -> Array:
    """Correct the median absolute deviation about the median (Croux and Rousseeuw 1992)."""
    result: Array = nights / np.maximum(nights - 0.8, 0.2)
    return result


def _column(values: Array) -> Array:
    return values[..., None]


__all__ = ["Noise", "learn"]
