"""When did it change: the dates of lasting changes in the nightly shifts of one query and metric.

A historian: it never decides. As a gate, such a detector would raise 0.2 false alarms a night even
on paired ratios (docs/decisions/pairs.md).

Each night costs its squared distance from the level in noise units, but at most ``BOUND`` squared,
and each change costs ``PENALTY``. The cheapest explanation is found exactly, on the levels that the
nights have and on others ``STEP`` noise units apart, in one pass over the nights: P. Fearnhead and
G. Rigaill, "Changepoint detection in the presence of outliers" (2019); B. Jackson et al., "An
algorithm for optimal partitioning of data on an interval" (2005). So one or two wild nights in a
row are no change, however wild: it takes more than ``PENALTY / BOUND**2`` of them, and twice that
if the level comes back.

Where the baseline has moved, the nights in which the new one was a candidate of the old one link
the ratios of both (``dated_changes``). They are few, so a link is believed only where the nights on
both sides do not simply go on at one level. What no link leads to (another workload, a build that
was never held against the one before) begins a series of its own.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise, takewhile
from statistics import fmean, median
from typing import TypeAlias

import numpy as np

from nexmark.verdict.location import Array, ratio_of
from nexmark.verdict.noise import NORMAL

BOUND, PENALTY = 2.8, 16.0
STEP, MOST_LEVELS = 0.1, 2000
RECENT = 100
"""The number of last nights that tell the level from which a new baseline goes on."""
AT_ONCE = 100
"""The number of nights whose costs are in memory at one time."""
NEARER = 1e-3
"""So little decides only whether a wild night at a change is in the level before or after it."""
TINY = 1e-9
"""Shifts that differ by less are equal; no noise is below it."""
ROUNDING = 1 / 12
"""The variance of an even distribution as wide as a step."""
MOST_CHANGES = 0.2
"""If more nights than this share differ from the night before, they differ by noise."""
FEWEST_NIGHTS = 6
"""Fewer do not tell their noise."""
BEYOND = 2.5
"""Levels that differ by less, in deviations of the difference, are one."""
_Level: TypeAlias = tuple[str, float, float | None]
"""Night, level, deviation."""


@dataclass(frozen=True)
class ChangePoint:
    """A lasting change; ``index`` (into what was given) and ``night``: first of the new level.

    ``last`` is the index of the last night before it that is of the same series.

    ``before`` and ``after`` are candidate / baseline on either side, up to the next change: 1.08 is
    8 % slower; ``ratio`` is after / before. ``confidence`` is 1 - the probability that noise alone
    makes such a step at any of these nights (Bonferroni).
    """

    index: int
    last: int
    night: str
    before: float
    after: float
    ratio: float
    confidence: float


def change_points(nights: Sequence[tuple[str, float, float | None]]) -> list[ChangePoint]:
    """Return the changes in (night, shift, deviation), oldest first; [] for fewer than six nights.

    ``shift`` is the log ratio of the night to one and the same baseline, ``deviation`` its standard
    deviation (None: the median of the others'). The noise is at least the usual difference between
    successive nights. Nights whose shift is not finite are left out.
    """
    known, shifts, noise, starts = _explained(nights)
    edges = [0, *starts, len(known)]
    return [
        _describe(known[start], known[start - 1], nights, shifts[a:b], noise[a:b], start - a)
        for a, start, b in zip(edges, starts, edges[2:], strict=False)
    ]


def _explained(nights: Sequence[_Level]) -> tuple[list[int], Array, Array, list[int]]:
    """Return the nights with a shift by their indices, their shifts and noise, and new levels.

    A new level is the place of its first night among these. Fewer than six nights have none.
    """
    known = [i for i, (_, shift, _) in enumerate(nights) if math.isfinite(shift)]
    shifts = np.asarray([nights[i][1] for i in known])
    if len(known) < FEWEST_NIGHTS:
        return known, shifts, np.full(shifts.shape, np.nan), []
    noise = _noise(shifts, [nights[i][2] for i in known])
    return known, shifts, noise, _starts(shifts, noise)


def _noise(shifts: Array, deviations: Sequence[float | None]) -> Array:
    """Return the standard deviation of each night."""
    given = [one if one and 0 < one < math.inf else None for one in deviations]
    usual = median([one for one in given if one is not None] or [math.nan])
    noise = np.asarray([usual if one is None else one for one in given])
    least = _least_noise(shifts)
    # Neighbours differ by the noise alone, but where the level changes: the median passes over it.
    if usual > 0:
        scaled = np.diff(shifts) / np.hypot(noise[1:], noise[:-1])
        larger: Array = noise * max(1.0, NORMAL * median(np.abs(scaled).tolist()))
        return np.maximum(larger, least)
    apart = NORMAL * median(np.abs(np.diff(shifts)).tolist()) / math.sqrt(2)
    return np.full(shifts.shape, max(apart, least))


def _least_noise(shifts: Array) -> float:
    """Return the least noise of successive nights that are often equal: as where they are rounded.

    The smallest difference is a step of the grid, the error of rounding ``ROUNDING`` of its square.
    Where more nights differ than levels change, the share of them is noise: that is its variance.
    """
    apart = np.abs(np.diff(shifts))
    moved = apart[apart > TINY]
    if moved.size == 0:
        return TINY
    share = moved.size / apart.size
    return float(moved.min()) * math.sqrt(share if share > MOST_CHANGES else ROUNDING)


def _starts(shifts: Array, noise: Array) -> list[int]:
    """Return the first nights of new levels: the cheapest explanation of all nights."""
    smallest, low, high = noise.min(), shifts.min(), shifts.max()
    count = min(int((high - low) / (STEP * smallest)) + 2, MOST_LEVELS)
    levels = np.union1d(np.linspace(low, high, count), shifts)
    total = np.zeros(len(levels))
    cheapest = np.zeros(len(shifts), dtype=np.intp)
    begins = np.zeros((len(shifts), len(levels)), dtype=np.bool_)
    for night, cost in enumerate(_costs(shifts, noise, levels)):
        if night:
            best = cheapest[night] = total.argmin()
            changed = total[best] + PENALTY
            begins[night] = total > changed
            np.minimum(total, changed, out=total)
        total += cost
    level = int(np.argmin(total))
    starts = []
    for night in range(len(cheapest) - 1, 0, -1):
        if begins[night, level]:
            starts.append(night)
            level = int(cheapest[night])
    return starts[::-1]


def _costs(shifts: Array, noise: Array, levels: Array) -> Iterator[Array]:
    """Yield what each night costs by level; ``AT_ONCE`` nights are computed in one step."""
    for first in range(0, len(shifts), AT_ONCE):
        nights = slice(first, first + AT_ONCE)
        away = np.abs(np.subtract.outer(shifts[nights], levels)) / noise[nights, None]
        yield from np.minimum(away**2, BOUND**2) + NEARER * np.log1p(away)


def _describe(
    index: int, last: int, nights: Sequence[_Level], shifts: Array, noise: Array, start: int
) -> ChangePoint:
    """Describe the change between two levels.

    Args:
        index: The first night of the new level, in ``nights``.
        last: The last night before it of the same series, in ``nights``.
        nights: What the caller gave.
        shifts: The shifts of the nights of both levels.
        noise: Their standard deviations.
        start: Where the new level begins among ``shifts``.
    """
    before, after = float(np.median(shifts[:start])), float(np.median(shifts[start:]))
    # A median of n is as uncertain as a mean of 2 n / pi.
    sides = (noise[:start], noise[start:])
    variance = math.fsum(float(np.mean(side**2)) * math.pi / 2 / len(side) for side in sides)
    by_chance = math.erfc(abs(after - before) / math.sqrt(2 * variance))
    confidence = max(0.0, 1 - by_chance * (len(shifts) - 1))
    ratio = ratio_of(after - before)
    return ChangePoint(
        index, last, nights[index][0], ratio_of(before), ratio_of(after), ratio, confidence
    )


@dataclass(frozen=True)
class Ratio:
    """A night: the log ratio of ``build`` to ``baseline``; another ``shape`` is another series."""

    night: str
    build: str
    baseline: str
    shift: float
    deviation: float | None = None
    shape: str = ""

    @property
    def scale(self) -> tuple[str, str]:
        """Workload, cluster and baseline: ratios to another baseline are on another scale."""
        return self.shape, self.baseline


@dataclass
class _Series:
    """Levels by the index of their night, and where each scale begins among them."""

    levels: dict[int, float] = field(default_factory=dict)
    offsets: dict[tuple[str, str], float] = field(default_factory=dict)


def dated_changes(nights: Sequence[Ratio]) -> list[ChangePoint]:
    """Return the lasting changes, oldest first, relative to the first baseline of their series."""
    changes: list[ChangePoint] = []
    for series in _linked(nights):
        indices = list(series.levels)
        rows = [(nights[i].night, level, nights[i].deviation) for i, level in series.levels.items()]
        changes += [
            replace(change, index=indices[change.index], last=indices[change.last])
            for change in change_points(rows)
        ]
    return sorted(changes, key=lambda change: change.index)


def _linked(nights: Sequence[Ratio]) -> list[_Series]:
    """Return the nights as series, each on one scale and in the order of its nights."""
    linked: list[_Series] = []
    for index, night in enumerate(nights):
        if not math.isfinite(night.shift):
            continue
        series = next((each for each in linked if night.scale in each.offsets), None)
        if series is None:
            series = _begun(nights, index, linked)
        series.levels[index] = series.offsets[night.scale] + night.shift
    return linked


def _begun(nights: Sequence[Ratio], index: int, linked: list[_Series]) -> _Series:
    """Return the series that a new baseline is linked to, else a new one; it has its scale then."""
    moved = nights[index]
    linking = [
        night
        for night in nights
        if (night.shape, night.build) == moved.scale and math.isfinite(night.shift)
    ]
    for series in reversed(linked):
        links = [
            series.offsets[night.scale] + night.shift
            for night in linking
            if night.scale in series.offsets
        ]
        if links:
            series.offsets[moved.scale] = _offset(nights, index, series, links)
            return series
    linked.append(_Series(offsets={moved.scale: 0.0}))
    return linked[-1]


def _offset(nights: Sequence[Ratio], index: int, series: _Series, links: Sequence[float]) -> float:
    """Return where the scale of a night begins: as it is linked, or so that the level goes on.

    Args:
        nights: All nights.
        index: The first night of the new scale.
        series: The series that it continues.
        links: Where it would begin by each link.
    """
    recent = list(series.levels.items())[-RECENT:]
    before = [(nights[i].night, level, nights[i].deviation) for i, level in recent]
    same = takewhile(lambda night: night.scale == nights[index].scale, nights[index:])
    after = [
        (night.night, night.shift, night.deviation) for night in same if math.isfinite(night.shift)
    ]
    last = [level for _, level, _ in before[_level_starts(before)[-1] :]]
    first = [level for _, level, _ in after[: [*_level_starts(after), len(after)][1]]]
    step = fmean(links) + median(first) - median(last)
    # A median of n is as uncertain as a mean of 2 n / pi.
    times = math.sqrt(1 / len(links) + math.pi / 2 * (1 / len(last) + 1 / len(first)))
    given = [deviation for _, _, deviation in before if deviation is not None and deviation > 0]
    apart = [abs(later - earlier) for (_, earlier, _), (_, later, _) in pairwise(before)]
    usual = max(median(given or [0.0]), NORMAL * median(apart or [0.0]) / math.sqrt(2))
    noise = max(usual, _least_noise(np.asarray([level for _, level, _ in before])))
    believed = abs(step) > BEYOND * times * noise
    return fmean(links) if believed else fmean(links) - step


def _level_starts(levels: Sequence[_Level]) -> list[int]:
    known, _, _, starts = _explained(levels)
    return [0, *(known[start] for start in starts)]
