"""Where a handful of log ratios, ln(candidate / baseline) of a pair, lies and how far they spread.

Arrays of shape (..., n), NaN where a pair is not there; results of shape (...). Sources: Hodges and
Lehmann, "Estimates of location based on rank tests" (1963), for the estimate; Hollander, Wolfe and
Chicken, "Nonparametric Statistical Methods" (2014), 3.3 for its interval; David, "Gini's mean
difference rediscovered" (1968), for the spread.
"""

import math
import sys
from functools import cache
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

Array: TypeAlias = NDArray[np.float64]

EFFICIENCY = 1.08
"""n * variance of the Hodges-Lehmann estimate of n normal values (1.06 to 1.09 for n >= 4)."""

LARGEST = math.log(sys.float_info.max)


def ratio_of(log: float) -> float:
    """Return e to the power of a log ratio; infinite where that is more than a float can hold."""
    return math.inf if log > LARGEST else math.exp(log)


def change_of(log: float) -> float:
    """Return the change of a log ratio, 0.07 for 7 %; infinite as ``ratio_of`` is."""
    return math.inf if log > LARGEST else math.expm1(log)


def nan_median(values: Array) -> Array:
    """Return ``numpy.nanmedian`` over the last axis, but fast on many short rows and silent."""
    if values.shape[-1] == 0:
        return np.full(values.shape[:-1], np.nan)
    ordered = np.sort(values, axis=-1)
    count = np.sum(~np.isnan(ordered), axis=-1)
    low = np.maximum((count - 1) // 2, 0)[..., None]
    high = (count // 2)[..., None]
    low_values = np.take_along_axis(ordered, low, axis=-1)
    return (low_values + np.take_along_axis(ordered, high, axis=-1))[..., 0] / 2


def count_of(ratios: Array) -> Array:
    """Return how many values are there."""
    result: Array = np.sum(~np.isnan(ratios), axis=-1, dtype=np.float64)
    return result


def walsh_averages(ratios: Array) -> Array:
    """Return the means of all pairs of values, each with itself too: (..., n * (n + 1) / 2)."""
    i, j = np.triu_indices(ratios.shape[-1])
    return (ratios[..., i] + ratios[..., j]) / 2


def hodges_lehmann(ratios: Array) -> Array:
    """Return the median of the Walsh averages: 95 % as sharp as a mean, sheds 29 % outliers."""
    return nan_median(walsh_averages(ratios))


def spread(ratios: Array) -> Array:
    """Return the standard deviation of one pair, from the mean difference of all two pairs.

    Unbiased for normal values at every n, and a spike counts once, not squared. NaN below two.
    """
    ordered = np.sort(ratios, axis=-1)
    count = np.sum(~np.isnan(ordered), axis=-1)
    rank = np.arange(1, ratios.shape[-1] + 1)
    weight = 2 * rank - count[..., None] - 1
    total = np.nansum(ordered * weight, axis=-1)
    pairs = np.where(count > 1, count * (count - 1), np.nan)
    result: Array = math.sqrt(math.pi) * total / pairs
    return result


@cache
def _signed_rank_tail(n: int) -> tuple[float, ...]:
    """Return P(W <= w) of Wilcoxon's signed-rank statistic W under no change, w = 0, 1, ..."""
    ways = np.zeros(n * (n + 1) // 2 + 1)
    ways[0] = 1.0
    for rank in range(1, n + 1):
        shifted = np.zeros_like(ways)
        shifted[rank:] = ways[:-rank]
        ways += shifted
    return tuple(np.cumsum(ways) / 2.0**n)


@cache
def depth(n: int, confidence: float) -> int:
    """Return how many Walsh averages lie outside the interval on each side; 0 for too few."""
    outside = (1 - confidence) / 2
    return sum(probability <= outside for probability in _signed_rank_tail(n)[:-1])


def interval(ratios: Array, confidence: float = 0.95) -> tuple[float, float]:
    """Return the exact (signed-rank) confidence interval of the estimate of one row.

    (NaN, NaN) for none; where there are too few values for the confidence (five have 93.75 % at
    the most) it is their range.
    """
    known = ratios[~np.isnan(ratios)]
    if known.size == 0:
        return math.nan, math.nan
    averages = np.sort(walsh_averages(known))
    skipped = max(depth(known.size, confidence) - 1, 0)
    return float(averages[skipped]), float(averages[averages.size - 1 - skipped])


def agree(ratios: Array, side: Array, level: float = 0.1) -> NDArray[np.bool_]:
    """Tell whether the values by themselves lie on a side (+1 above 0, -1 below; shape (...)).

    The one-sided exact signed-rank test at ``level``: a query that is wild tonight only does not
    pass on one half of its pairs.
    """
    averages = walsh_averages(ratios)
    count = np.sum(~np.isnan(ratios), axis=-1)
    against = np.sum(averages * side[..., None] < 0, axis=-1)
    limits = [_limit(n, level) for n in range(ratios.shape[-1] + 1)]
    result: NDArray[np.bool_] = against <= np.asarray(limits)[count]
    return result


@cache
def _limit(n: int, level: float) -> int:
    """Return the largest w with P(W <= w) <= level, -1 where there is none."""
    return sum(probability <= level for probability in _signed_rank_tail(n)) - 1
