"""One paired night from log ratios to sides, as arrays; nights and simulations both run it.

Suspicion on the first pairs of a night, confirmation on fresh ones (docs/decisions/pairs.md).
Changes too small for one night add up in a two-sided CUSUM (E. S. Page, "Continuous inspection
schemes", 1954), which never turns a night red. The suite, the geometric mean ratio of the queries,
shows what is too small in every query, without those that are judged by themselves tonight, so that
one cause does not alarm twice, unless they are half of it.

Arrays have the shape (..., queries) or (..., queries, pairs or nights); the leading axes are free,
so that the simulation runs many suites at once through the code that judges a night. Sides are +1
(slower), -1 (faster) and 0. Only the suspicion may be set apart for the two sides.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

from nexmark.config import Gate
from nexmark.verdict.location import Array, agree, count_of, hodges_lehmann, spread
from nexmark.verdict.noise import Drift, Learned, Noise, learn
from nexmark.verdict.order import MIN_FRESH_PAIRS

POWER = 0.8
"""``mde`` is the change that both stages together see this often."""
SEEN = 0.84
"""Deviations beyond the bound of a single stage at which ``POWER`` is reached."""
DRIFT_CLIP = 4.0
"""No single night counts for more noise units than this."""
SUITE_CLIP = 3.0
"""No query counts for more of its noise units than this: a spiked one is not the suite."""
Picked: TypeAlias = tuple[NDArray[np.intp], ...]
"""Positions of the suspects, as ``numpy.nonzero`` gives them, k of them."""
Fresh: TypeAlias = Callable[[Picked], Array]
"""Measures (or reads) the fresh pairs of the suspects and of nobody else: (k, m) log ratios."""


@dataclass(frozen=True)
class First:
    """The first stage: ``shift`` is the Hodges-Lehmann log ratio, ``noise`` its deviation."""

    shift: Array
    noise: Array
    side: Array


def second_stage(first: First, pairs: Array, fresh: Array, noise: Noise, rules: Gate) -> Array:
    """Tell which suspicions the fresh pairs (..., queries, m) confirm, as 1 or 0.

    All must hold, on the suspected side: the fresh pairs alone are beyond the noise learned and the
    smallest change that matters, and agree among themselves; and the first ``pairs`` with the fresh
    ones are beyond a bound that allows for the first having been chosen.
    """
    count = count_of(fresh)
    deviation = noise.of(np.maximum(count, 1))
    shift = hodges_lehmann(fresh)
    needed = np.maximum(rules.confirm_z * deviation, np.log1p(rules.confirm_change))
    together = (pairs * first.shift + count * shift) / (pairs + count)
    alone: NDArray[np.bool_] = first.side * shift > needed
    both = first.side * together > rules.together_z * noise.of_both(pairs, count)
    result: Array = (alone & both & agree(fresh, first.side) & (first.side != 0)).astype(np.float64)
    return result


def smallest_seen(noise: Noise, pairs: Array, rules: Gate) -> Array:
    """Return the smallest slowdown (0.07: 7 %) that both stages would have found 4 times in 5."""
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
    with np.errstate(over="ignore"):  # beyond what a float has is infinite
        return np.expm1(high)


def advance(drift: Drift, shift: Array, noise: Array, rules: Gate) -> Drift:
    """Add a night; where shift or noise is NaN the sums stay as they are."""
    step = np.clip(shift / noise, -DRIFT_CLIP, DRIFT_CLIP)
    known = ~np.isnan(step)
    allowance = rules.drift_allowance
    up = np.where(known, np.maximum(drift.slower + step - allowance, 0.0), drift.slower)
    down = np.where(known, np.maximum(drift.faster - step - allowance, 0.0), drift.faster)
    return Drift(up, down)


def drift_side(drift: Drift, rules: Gate) -> Array:
    """Return +1 where a drift to slower is over the bound, -1 to faster, else 0."""
    slower, faster = drift.slower > rules.drift_bound, drift.faster > rules.drift_bound
    return slower.astype(np.float64) - (faster & ~slower)


def mean_shift(shift: Array, judged: NDArray[np.bool_]) -> Array:
    """Return the mean log ratio (log of the geometric mean) over queries not judged already."""
    known = ~np.isnan(shift)
    rest = known & ~judged
    enough = 2 * rest.sum(axis=-1) > known.sum(axis=-1)
    used = np.where(enough[..., None], rest, known)
    count = used.sum(axis=-1)
    total = np.where(used, shift, 0.0).sum(axis=-1)
    return np.where(count > 0, total / np.maximum(count, 1), np.nan)


def suite_noise(noise: Array, earlier: Array) -> Array:
    """Return the deviation of the suite's mean: of independent queries, or as learned if more.

    ``noise`` (..., queries) is the deviation of each query's shift, ``earlier`` (..., nights) has
    the suite's own shifts of earlier nights in which it had not changed.
    """
    count = count_of(noise)
    squares = np.nansum(noise**2, axis=-1)
    independent = np.where(count > 0, np.sqrt(squares) / np.maximum(count, 1), np.nan)
    return np.fmax(independent, spread(earlier))


def suite_side(shift: Array, noise: Array, rules: Gate) -> Array:
    """Return +1 for a slower suite, -1 for a faster one, else 0; there is no smallest size."""
    z = shift / noise
    return (z > rules.suite_z).astype(np.float64) - (z < -rules.suite_z)


@dataclass(frozen=True)
class Second:
    """The second stage of the suspects: k each. ``count`` is how many fresh pairs there were."""

    picked: Picked
    shift: Array
    noise: Array
    count: Array
    confirmed: NDArray[np.bool_]


@dataclass(frozen=True)
class Decision:
    """The result of one night; ``calibrated``: which queries had enough nights to learn from."""

    noise: Noise
    calibrated: NDArray[np.bool_]
    first: First
    second: Second
    confirmed: Array
    """The side of the queries whose change is confirmed, else 0."""
    drift: Drift
    suite_shift: Array
    suite_noise: Array
    drift_side: Array
    suite_side: Array


def look(
    ratios: Array, history: Learned, rules: Gate, widening: Array
) -> tuple[Noise, NDArray[np.bool_], First]:
    """Run the first stage: look at the log ratios of the first pairs, (..., queries, n).

    ``widening`` (..., queries) is the deviation that hosts add tonight. NaN noise suspects nobody.
    """
    usual = learn(history.shift, history.spread, history.pairs, rules.noise_floor)
    calibrated = usual.nights >= rules.calibration_nights
    noise = usual.tonight(ratios).widened(widening)
    shift = hodges_lehmann(ratios)
    deviation = noise.of(np.maximum(count_of(ratios), 1))
    smallest = np.log1p(rules.suspect_change)
    slower: NDArray[np.bool_] = shift > np.maximum(rules.suspect_z * deviation, smallest)
    faster: NDArray[np.bool_] = -shift > np.maximum(rules.suspect_faster_z * deviation, smallest)
    side = (slower.astype(np.float64) - faster) * calibrated
    return noise, calibrated, First(shift, deviation, side)


def decide(
    ratios: Array,
    history: Learned,
    fresh: Fresh,
    rules: Gate,
    widening: Array,
    again: Array | None = None,
) -> Decision:
    """Judge a night by the first pairs, (..., queries, n), and fresh ones of suspects only.

    ``again`` (..., queries): the deviation, at least ``widening``, that hosts add to fresh pairs.
    """
    noise, calibrated, first = look(ratios, history, rules, widening)
    more = 0.0 * widening if again is None else np.sqrt(again**2 - widening**2)
    second = _confirm(ratios, first, noise.widened(more), fresh, rules)
    confirmed = np.zeros_like(first.side)
    confirmed[second.picked] = first.side[second.picked] * second.confirmed
    known = np.where(calibrated, first.shift, np.nan)
    own = np.where(np.isnan(known), np.nan, first.noise)
    shift = mean_shift(np.clip(known, -SUITE_CLIP * own, SUITE_CLIP * own), confirmed != 0)
    deviation = suite_noise(own, history.suite)
    drift = advance(history.drift, known, first.noise, rules)
    sides = drift_side(drift, rules), suite_side(shift, deviation, rules)
    return Decision(noise, calibrated, first, second, confirmed, drift, shift, deviation, *sides)


def _confirm(ratios: Array, first: First, noise: Noise, fresh: Fresh, rules: Gate) -> Second:
    picked = np.nonzero(first.side)
    if picked[0].size == 0:
        nothing = np.zeros(0)
        return Second(picked, nothing, nothing, nothing, nothing.astype(np.bool_))
    again = fresh(picked)
    own = Noise(noise.pair[picked], noise.nightly[picked], noise.floor, noise.nights[picked])
    suspected = First(first.shift[picked], first.noise[picked], first.side[picked])
    pairs, count = count_of(ratios[picked]), count_of(again)
    confirmed = second_stage(suspected, pairs, again, own, rules) > 0
    return Second(picked, hodges_lehmann(again), own.of(np.maximum(count, 1)), count, confirmed)
