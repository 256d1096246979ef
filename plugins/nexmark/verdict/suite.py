"""The suite as a whole: the geometric mean ratio of the queries.

It sees what is too small in every query: by 23 queries noise shrinks nearly five times
(research/regression-gates.md 5.4). Queries that are judged by themselves tonight are left out, so
that one cause does not alarm twice, unless they are half the suite.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from nexmark.verdict.location import Array, nan_median
from nexmark.verdict.noise import NORMAL
from nexmark.verdict.rules import Rules

CLIP = 3.0
"""No query counts for more of its noise units than this: a spiked one is not the suite."""


def clipped_mean(shift: Array, noise: Array, judged: NDArray[np.bool_]) -> Array:
    """Return the mean shift of the queries with each kept within ``CLIP`` noise units."""
    return mean_shift(np.clip(shift, -CLIP * noise, CLIP * noise), judged)


def mean_shift(shift: Array, judged: NDArray[np.bool_]) -> Array:
    """Return the mean log ratio over the last axis (queries) without those already judged.

    Its exponential is the geometric mean ratio.
    """
    known = ~np.isnan(shift)
    rest = known & ~judged
    enough = 2 * rest.sum(axis=-1) > known.sum(axis=-1)
    used = np.where(enough[..., None], rest, known)
    count = used.sum(axis=-1)
    total = np.where(used, shift, 0.0).sum(axis=-1)
    result: Array = np.where(count > 0, total / np.maximum(count, 1), np.nan)
    return result


def suite_noise(noise: Array, earlier: Array) -> Array:
    """Return the deviation of the suite's mean: of independent queries, or as learned if more.

    ``noise`` (..., queries) is that of each query's shift, ``earlier`` (..., nights) the suite's
    own shifts of earlier nights.
    """
    count = np.sum(~np.isnan(noise), axis=-1)
    squares = np.nansum(noise**2, axis=-1)
    independent = np.where(count > 0, np.sqrt(squares) / np.maximum(count, 1), np.nan)
    centre = nan_median(earlier)[..., None]
    result: Array = np.fmax(independent, NORMAL * nan_median(np.abs(earlier - centre)))
    return result


def suite_side(shift: Array, noise: Array, rules: Rules) -> Array:
    """Return +1 for a slower suite, -1 for a faster one, else 0; there is no smallest size."""
    z = shift / noise
    result: Array = (z > rules.suite_z).astype(np.float64) - (z < -rules.suite_z)
    return result


__all__ = ["clipped_mean", "mean_shift", "suite_noise", "suite_side"]
