"""Suspicion on the first pairs of a night, confirmation on fresh ones, and what could be seen.

Research/regression-gates.md section 6, stages 1 and 2. Arrays of shape (..., queries) unless said
otherwise; sides are +1 (slower), -1 (faster) and 0. The rule of confirmation is the same on both
sides; only the suspicion may be set apart, because it decides what machine time is spent on.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

from nexmark.verdict.location import Array, agree, hodges_lehmann
from nexmark.verdict.noise import Noise
from nexmark.verdict.rules import MIN_FRESH_PAIRS, Rules

POWER = 0.8
"""``mde`` is the change that both stages together see this often."""


@dataclass(frozen=True)
class First:
    """The first stage: ``shift`` is the Hodges-Lehmann log ratio, ``noise`` its deviation."""

    shift: Array
    noise: Array
    side: Array


def first_stage(ratios: Array, noise: Noise, rules: Rules) -> First:
    """Look at the log ratios of the first pairs (..., queries, n); NaN noise suspects nobody."""
    shift = hodges_lehmann(ratios)
    deviation = noise.of(np.sum(~np.isnan(ratios), axis=-1).astype(np.float64))
    smallest = np.log1p(rules.suspect_change)
    slower: NDArray[np.bool_] = shift > np.maximum(rules.suspect_z * deviation, smallest)
    faster: NDArray[np.bool_] = -shift > np.maximum(rules.suspect_faster_z * deviation, smallest)
    return First(shift, deviation, slower.astype(np.float64) - faster)


def second_stage(first: First, pairs: Array, fresh: Array, noise: Noise, rules: Rules) -> Array:
    """Tell which suspicions the fresh pairs (..., queries, m) confirm, as 1 or 0.

    All must hold, on the suspected side: the fresh pairs alone, which nobody has chosen, are beyond
    the noise learned and beyond the smallest change that matters, and agree among themselves; and
    the first ``pairs`` and the fresh ones together are beyond a bound that allows for the first
    having been chosen.
    """
    count = np.sum(~np.isnan(fresh), axis=-1).astype(np.float64)
    deviation = noise.of(np.maximum(count, 1))
    shift = hodges_lehmann(fresh)
    needed = np.maximum(rules.confirm_z * deviation, np.log1p(rules.confirm_change))
    together = (pairs * first.shift + count * shift) / (pairs + count)
    alone: NDArray[np.bool_] = first.side * shift > needed
    both = first.side * together > rules.together_z * noise.of_both(pairs, count)
    result: Array = (alone & both & agree(fresh, first.side) & (first.side != 0)).astype(np.float64)
    return result


SEEN = 0.84
"""Deviations beyond the bound of a single stage at which ``POWER`` is reached."""


def smallest_seen(noise: Noise, pairs: Array, rules: Rules) -> Array:
    """Return the smallest slowdown both stages would have found with a probability of 80 %.

    As a fraction: 0.07 is 7 %. Assumes that as many fresh pairs could be had as the rules ask for;
    of the two bounds on these the one that is harder to pass counts.
    """
    fresh = np.maximum(pairs * rules.confirmation, MIN_FRESH_PAIRS)
    one, two, both = noise.of(pairs), noise.of(fresh), noise.of_both(pairs, fresh)
    first = np.maximum(rules.suspect_z * one, np.log1p(rules.suspect_change))
    second = np.maximum(rules.confirm_z * two, np.log1p(rules.confirm_change))
    third = rules.together_z * both
    low, high = np.zeros_like(one), first + second + third + 4 * one
    for _ in range(40):
        middle = (low + high) / 2
        power = ndtr((middle - first) / one) * ndtr(
            np.minimum((middle - second) / two, (middle - third) / both)
        )
        seen = power >= POWER
        low, high = np.where(seen, low, middle), np.where(seen, middle, high)
    result: Array = np.expm1(high)
    return result


__all__ = ["SEEN", "First", "first_stage", "second_stage", "smallest_seen"]
