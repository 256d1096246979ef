"""One paired night from log ratios to sides, as arrays: what is judged and what is simulated.

Arrays have the shape (..., queries) or (..., queries, pairs or nights); the leading axes are free,
so that the simulation runs many suites at once through the very code that judges a night.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from nexmark.verdict.drift import Drift, advance
from nexmark.verdict.location import Array, hodges_lehmann
from nexmark.verdict.noise import Noise, learn
from nexmark.verdict.rules import Rules
from nexmark.verdict.stages import First, first_stage, second_stage
from nexmark.verdict.suite import clipped_mean, suite_noise, suite_side

Picked: TypeAlias = tuple[NDArray[np.intp], ...]
"""Positions of the suspects, as ``numpy.nonzero`` gives them, k of them."""

Fresh: TypeAlias = Callable[[Picked], Array]
"""Measures (or reads) the fresh pairs of the suspects and of nobody else: (k, m) log ratios."""


@dataclass(frozen=True)
class History:
    """Earlier nights, oldest first: (..., queries, nights), NaN where there is nothing to learn.

    ``shift``, ``spread`` and ``pairs`` are of the first pairs of each night, ``suite``
    (..., nights) the suite's shifts, ``drift`` the sums after the last of them.
    """

    shift: Array
    spread: Array
    pairs: Array
    suite: Array
    drift: Drift


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
    """What one night came to. ``calibrated`` tells which queries had nights enough to learn from.

    ``confirmed`` is the side of the queries whose change is confirmed, else 0.
    """

    noise: Noise
    calibrated: NDArray[np.bool_]
    first: First
    second: Second
    confirmed: Array
    drift: Drift
    suite_shift: Array
    suite_noise: Array
    suite_side: Array


def learned(history: History, rules: Rules) -> tuple[Noise, NDArray[np.bool_]]:
    """Return the noise of each query and whether it was learned from nights enough."""
    noise = learn(history.shift, history.spread, history.pairs, rules.noise_floor)
    return noise, noise.nights >= rules.calibration_nights


def look(ratios: Array, history: History, rules: Rules) -> tuple[Noise, NDArray[np.bool_], First]:
    """Run the first stage: whom does the gate suspect? Queries still calibrating are not."""
    usual, calibrated = learned(history, rules)
    noise = usual.tonight(ratios)
    first = first_stage(ratios, noise, rules)
    return noise, calibrated, First(first.shift, first.noise, first.side * calibrated)


def decide(ratios: Array, history: History, fresh: Fresh, rules: Rules) -> Decision:
    """Judge a night by the first pairs, (..., queries, n), and fresh ones of suspects only."""
    noise, calibrated, first = look(ratios, history, rules)
    second = _confirm(ratios, first, noise, fresh, rules)
    confirmed = np.zeros_like(first.side)
    confirmed[second.picked] = first.side[second.picked] * second.confirmed
    known = np.where(calibrated, first.shift, np.nan)
    own = np.where(np.isnan(known), np.nan, first.noise)
    shift = clipped_mean(known, own, confirmed != 0)
    deviation = suite_noise(own, history.suite)
    return Decision(
        noise,
        calibrated,
        first,
        second,
        confirmed,
        advance(history.drift, known, first.noise, rules),
        shift,
        deviation,
        suite_side(shift, deviation, rules),
    )


def _confirm(ratios: Array, first: First, noise: Noise, fresh: Fresh, rules: Rules) -> Second:
    picked = np.nonzero(first.side)
    if picked[0].size == 0:
        nothing = np.zeros(0)
        return Second(picked, nothing, nothing, nothing, nothing.astype(np.bool_))
    again = fresh(picked)
    own = Noise(noise.pair[picked], noise.nightly[picked], noise.floor, noise.nights[picked])
    suspected = First(first.shift[picked], first.noise[picked], first.side[picked])
    pairs, count = _count(ratios[picked]), _count(again)
    confirmed = second_stage(suspected, pairs, again, own, rules) > 0
    return Second(picked, hodges_lehmann(again), own.of(np.maximum(count, 1)), count, confirmed)


def _count(ratios: Array) -> Array:
    counts: Array = np.sum(~np.isnan(ratios), axis=-1).astype(np.float64)
    return counts


__all__ = ["Decision", "Fresh", "History", "Picked", "Second", "decide", "learned", "look"]
