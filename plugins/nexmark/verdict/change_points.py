"""When did it change: the dates of lasting changes in the nightly shifts of one query and metric.

A historian: it dates changes for people and charts, and never decides (as a gate it would raise
0.2 false alarms a night even on paired ratios, research/regression-gates.md section 5.5).

The method is the penalised one for levels that hold between changes, with a bounded loss: each
night costs its squared distance from the level in noise units, but at most ``BOUND`` squared, and
each change costs ``PENALTY``. What is cheapest in all is found exactly, on levels ``STEP`` noise
units apart, in time linear in the nights. P. Fearnhead and G. Rigaill, "Changepoint detection in
the presence of outliers" (2019); B. Jackson et al., "An algorithm for optimal partitioning of data
on an interval" (2005). Nights with wild values, one or two in a row, are thus no change however
wild: it takes more than ``PENALTY / BOUND**2`` of them, and twice that if the level comes back.

Of series of 400 nights of independent noise less than 1 % have a change point; a step of twice the
noise is found 15 nights later at the latest, dated within two nights in 92 % of cases. Noise that
drifts over weeks does have changes: raw times drift with their host, ratios of pairs do not.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from nexmark.verdict.location import Array
from nexmark.verdict.noise import NORMAL

BOUND = 2.8
PENALTY = 16.0
STEP = 0.1
MOST_LEVELS = 2000
FEWEST_NIGHTS = 6
"""Fewer do not tell their noise."""


@dataclass(frozen=True)
class ChangePoint:
    """A lasting change.

    ``index`` (into what was given) and ``night`` are of the first night of the new level.
    ``before`` and ``after`` are candidate / baseline on either side, up to the next change: 1.08 is
    8 % slower; ``ratio`` is after / before. ``confidence``: 1 - the probability of such a step at
    any of the nights concerned by noise alone (Bonferroni, so it is on the safe side).
    """

    index: int
    night: str
    before: float
    after: float
    ratio: float
    confidence: float


def change_points(nights: Sequence[tuple[str, float, float | None]]) -> list[ChangePoint]:
    """Return the changes in (night, shift, deviation) of one query and metric, oldest first.

    ``shift`` is the log ratio of the night to one and the same baseline, ``deviation`` its standard
    deviation (None: that of the others); what is not finite is left out. The noise is never
    believed to be below what the nights differ by from one to the next. [] for fewer than six.
    """
    known = [i for i, (_, shift, _) in enumerate(nights) if math.isfinite(shift)]
    if len(known) < FEWEST_NIGHTS:
        return []
    shifts = np.asarray([nights[i][1] for i in known], dtype=np.float64)
    noise = _noise(shifts, [nights[i][2] for i in known])
    starts = _starts(shifts, noise)
    edges = [0, *starts, len(known)]
    return [
        _describe(known[start], nights[known[start]][0], shifts[a:b], start - a, noise[a:b])
        for a, start, b in zip(edges, starts, edges[2:], strict=False)
    ]


def _noise(shifts: Array, deviations: Sequence[float | None]) -> Array:
    """Return the standard deviation of each night."""
    told = np.asarray([math.nan if x is None else x for x in deviations], dtype=np.float64)
    told[~((told > 0) & np.isfinite(told))] = np.nan
    usual = float(np.nanmedian(told)) if np.any(~np.isnan(told)) else 0.0
    noise = np.where(np.isnan(told), usual, told)
    # Neighbours differ by the noise alone, but where the level changes: the median passes over it.
    if usual > 0:
        scaled = np.diff(shifts) / np.hypot(noise[1:], noise[:-1])
        return noise * max(1.0, NORMAL * float(np.median(np.abs(scaled))))
    apart = NORMAL * float(np.median(np.abs(np.diff(shifts)))) / math.sqrt(2)
    return np.full(shifts.shape, max(apart, 1e-9))


def _starts(shifts: Array, noise: Array) -> list[int]:
    """Return the first nights of new levels: the cheapest explanation of all nights."""
    smallest, low, high = noise.min(), shifts.min(), shifts.max()
    count = min(int((high - low) / (STEP * smallest)) + 2, MOST_LEVELS)
    levels = np.linspace(low, high, count)
    total = np.zeros(count)
    cheapest = np.zeros(len(shifts), dtype=np.intp)
    begins = np.zeros((len(shifts), count), dtype=np.bool_)
    for night, (shift, deviation) in enumerate(zip(shifts, noise, strict=True)):
        if night:
            cheapest[night] = np.argmin(total)
            anew = total[cheapest[night]] + PENALTY
            begins[night] = total > anew
            total = np.minimum(total, anew)
        total = total + np.minimum(((shift - levels) / deviation) ** 2, BOUND**2)
    return _back(int(np.argmin(total)), cheapest, begins)


def _back(level: int, cheapest: NDArray[np.intp], begins: NDArray[np.bool_]) -> list[int]:
    starts = []
    for night in range(len(cheapest) - 1, 0, -1):
        if begins[night, level]:
            starts.append(night)
            level = int(cheapest[night])
    return starts[::-1]


def _describe(index: int, night: str, shifts: Array, start: int, noise: Array) -> ChangePoint:
    """Describe the change at ``start`` within the nights of the levels on both sides."""
    before, after = float(np.median(shifts[:start])), float(np.median(shifts[start:]))
    # A median of n is as uncertain as a mean of 2 n / pi.
    sides = (noise[:start], noise[start:])
    variance = math.fsum(float(np.mean(side**2)) * math.pi / 2 / len(side) for side in sides)
    by_chance = math.erfc(abs(after - before) / math.sqrt(2 * variance))
    confidence = max(0.0, 1 - by_chance * (len(shifts) - 1))
    ratio = math.exp(after - before)
    return ChangePoint(index, night, math.exp(before), math.exp(after), ratio, confidence)


__all__ = ["ChangePoint", "change_points"]
