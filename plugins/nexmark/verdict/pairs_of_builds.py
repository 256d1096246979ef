"""From the pairs of builds with a good one to a bisection: nothing is kept but the pairs.

The noise of a pair is taken from all pairs of the search, so it is known the better the longer the
search lasts; every step begins anew with what is known by then.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import stdtrit

from nexmark.verdict.bisection import Bisection
from nexmark.verdict.location import EFFICIENCY, hodges_lehmann, spread

_UPPER = 0.975
_NORMAL = 1.96


@dataclass(frozen=True)
class Pairs:
    """The pairs of one night of a build with the good one: two or more log ratios."""

    build: str
    ratios: tuple[float, ...]


def shift_of(ratios: Sequence[float]) -> float:
    """The log ratio of a build to the good one."""
    return float(hodges_lehmann(np.asarray(ratios)))


def deviation_of(count: int, nights: Sequence[Pairs], floor: float) -> float:
    """The standard deviation of the shift of so many pairs, at least `floor`.

    It is wider where few pairs tell what the noise is, as in a t test.
    """
    spreads = [float(spread(np.asarray(night.ratios))) for night in nights]
    freedom = [len(night.ratios) - 1 for night in nights]
    one = math.sqrt(np.average(np.square(spreads), weights=freedom))
    wider = float(stdtrit(sum(freedom), _UPPER)) / _NORMAL
    return max(wider * one * math.sqrt(EFFICIENCY / count), floor)


def bisection_of(
    builds: Sequence[str], nights: Sequence[Pairs], skipped: Collection[str], floor: float
) -> Bisection:
    """The search as it stands after `nights`; the bad build must be among them.

    Its first night says how large the change is, the others are observations.
    """
    first = next(place for place, night in enumerate(nights) if night.build == builds[-1])
    ends = nights[first].ratios
    search = Bisection(builds, shift_of(ends), deviation_of(len(ends), nights, floor))
    for place, night in enumerate(nights):
        if place != first:
            deviation = deviation_of(len(night.ratios), nights, floor)
            search.observe(night.build, shift_of(night.ratios), deviation)
    for build in skipped:
        search.skip(build)
    return search


__all__ = ["Pairs", "bisection_of", "deviation_of", "shift_of"]
