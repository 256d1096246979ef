"""How much the pairs of one query differ, from few pairs and from what is known of others.

Three pairs say little about their own spread, so what they say is mixed with what is expected of
them: the spread of the query in earlier nights, or, on the first night, of tonight's other queries.
How much the expectation counts is learned from the night as well: if the queries differ by no more
than chance explains, it counts as much as many pairs do; for a query that is far noisier than they
are it counts nothing. Source: Smyth, "Linear models and empirical Bayes methods for assessing
differential expression" (2004), the method of limma. Arrays have the shape (..., queries).
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import digamma, fdtrc, polygamma

from nexmark.config import Gate
from nexmark.verdict.location import Array, count_of, nan_median, spread

FEWEST_QUERIES = 5
"""Fewer queries do not say how much queries differ, nor how noisy tonight is."""
MOST_DEGREES = 60.0
"""No expectation counts for more degrees of freedom than this."""
KNOWN_DEGREES = 12.0
"""What a query's own earlier nights count for where tonight's queries are too few to say."""
QUIETEST = 0.8
"""An expected variance is lowered to this share of it at most, however quiet the night seems."""
CLIPPED = 2.2
"""Values are winsorised this number of standard deviations from their median."""
OWN_SCALE = 0.85
"""A query may be noisier than the others: its own spread times this is never clipped away."""
FEW_PAIRS, AT_MOST = 4, 1.5
"""Fewer pairs than this, one of them hit, look as if all were noisy: they are believed to be at
most this times as noisy as the query's earlier nights."""
_EFFICIENCY = 0.95
"""Degrees of freedom of a winsorised spread, over the degrees of all values."""
_SMALLEST_VARIANCE = 1e-10


@dataclass(frozen=True)
class Moderated:
    """The standard deviation of a pair's log ratio, and the degrees of freedom it is known with."""

    deviation: Array
    degrees: Array

    def at(self, picked: tuple[NDArray[np.intp], ...]) -> "Moderated":
        """Return the deviations of the picked queries."""
        return Moderated(self.deviation[picked], self.degrees[picked])


def moderate(ratios: Array, usual: Array, rules: Gate) -> Moderated:
    """Return how much the pairs of each query differ.

    Args:
        ratios: Tonight's log ratios, (..., queries, n), NaN where a pair is not there.
        usual: The deviation of a pair that earlier nights have shown; NaN where there are none.
        rules: The gate; its prior stands for the other queries where there are too few.

    Returns:
        NaN for a query with fewer than two pairs.
    """
    plain = spread(ratios)
    enough = np.sum(~np.isnan(plain), axis=-1, keepdims=True) >= FEWEST_QUERIES
    suite = np.where(enough, nan_median(plain)[..., None], rules.prior_deviation)
    few = (count_of(ratios) < FEW_PAIRS) & ~np.isnan(usual)
    noisier = np.where(few, np.minimum(OWN_SCALE * plain, AT_MOST * usual), OWN_SCALE * plain)
    scale = np.maximum(np.where(np.isnan(usual), suite, usual), noisier)
    tonights = np.maximum(_winsorised(ratios, scale) ** 2, _SMALLEST_VARIANCE)
    degrees = np.where(np.isnan(plain), np.nan, _EFFICIENCY * (count_of(ratios) - 1))
    typical = np.exp(_log_variance(tonights, degrees, enough))
    typical = np.where(enough, typical, rules.prior_deviation**2)
    expected = np.maximum(np.where(np.isnan(usual), typical, usual**2), _SMALLEST_VARIANCE)
    share, prior = _smyth(tonights / expected, degrees)
    alone = np.where(np.isnan(usual), rules.prior_degrees, KNOWN_DEGREES)
    prior = np.where(enough, np.minimum(prior, MOST_DEGREES), alone)
    prior_variance = expected * np.where(enough, np.maximum(share, QUIETEST), 1.0)
    prior = prior * _believed(tonights / prior_variance, degrees, prior)
    variance = (prior * prior_variance + degrees * tonights) / (prior + degrees)
    return Moderated(np.sqrt(variance), prior + degrees)


def _believed(share: Array, degrees: Array, prior: Array) -> Array:
    """Return how much of the expectation counts for each query, 0 to 1.

    A query that is far noisier tonight than chance would make it is no longer like the others:
    what is expected of them says nothing of it. Source: Phipson et al., "Robust hyperparameter
    estimation protects against hypervariable genes" (2016).
    """
    count = np.sum(~np.isnan(share), axis=-1, keepdims=True)
    chance = fdtrc(degrees, prior, share)
    result: Array = np.minimum(2 * count * chance, 1.0)
    return result


def _winsorised(ratios: Array, scale: Array) -> Array:
    """Return the standard deviation of values that are clipped around their median."""
    middle = nan_median(ratios)[..., None]
    reach = CLIPPED * scale[..., None]
    clipped = middle + np.clip(ratios - middle, -reach, reach)
    count = count_of(ratios)
    mean = np.nansum(clipped, axis=-1) / np.maximum(count, 1)
    squares = np.nansum((clipped - mean[..., None]) ** 2, axis=-1)
    return np.where(count > 1, np.sqrt(squares / np.maximum(count - 1, 1)), np.nan)


def _log_variance(variances: Array, degrees: Array, enough: Array) -> Array:
    """Return the mean logarithm of the variances of a night, without the bias of few degrees."""
    unbiased = np.log(variances) - digamma(degrees / 2) + np.log(degrees / 2)
    return np.where(enough, _robust_mean(unbiased), np.nan)


def _smyth(share: Array, degrees: Array) -> tuple[Array, Array]:
    """Return the common factor of variances over expected ones, and what the prior counts for."""
    unbiased = np.log(share) - digamma(degrees / 2) + np.log(degrees / 2)
    kept = _clipped(unbiased)
    count = np.maximum(np.sum(~np.isnan(kept), axis=-1, keepdims=True), 2)
    mean = np.nansum(kept, axis=-1, keepdims=True) / count
    between = np.nansum((kept - mean) ** 2, axis=-1, keepdims=True) / (count - 1)
    chance = np.nansum(polygamma(1, degrees / 2), axis=-1, keepdims=True) / count
    rest = _CLIPPED_VARIANCE * between - chance
    prior = 2 * _trigamma_inverse(np.maximum(rest, 2 / MOST_DEGREES))
    return np.exp(mean + digamma(prior / 2) - np.log(prior / 2)), prior


_CLIPPED_VARIANCE = 1.16
"""Variance of normal values over their variance once they are clipped at two deviations."""


def _clipped(values: Array) -> Array:
    """Return the values, those beyond two robust deviations at that bound."""
    middle = nan_median(values)[..., None]
    reach = 2 * 1.4826 * nan_median(np.abs(values - middle))[..., None]
    return np.clip(values, middle - reach, middle + reach)


def _robust_mean(values: Array) -> Array:
    kept = _clipped(values)
    count = np.maximum(np.sum(~np.isnan(kept), axis=-1, keepdims=True), 1)
    result: Array = np.nansum(kept, axis=-1, keepdims=True) / count
    return result


def _trigamma_inverse(values: Array) -> Array:
    """Return where the trigamma function has these values (Newton's method, as in Smyth)."""
    result = 0.5 + 1 / values
    for _ in range(30):
        before = result
        trigamma = polygamma(1, result)
        result = result + trigamma * (1 - trigamma / values) / polygamma(2, result)
        if np.array_equal(result, before, equal_nan=True):
            break  # more steps would change nothing
    return result
