"""Change points where the baseline has moved: the ratios of all nights on one scale.

A night tells its candidate / the baseline of that night. Where the baseline has moved from one
build to another, the nights in which the new one was a candidate of the old one link the two. They
are few, and an error in a link would look like a lasting change. So it is believed only where the
nights on both sides do not simply go on at one level; else the level goes on.

What no link leads to (another workload, a build that was never held against the one before) begins
a series of its own, and changes are looked for within each.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise, takewhile
from statistics import fmean, median
from typing import TypeAlias

from nexmark.verdict.change_points import ChangePoint, change_points
from nexmark.verdict.noise import NORMAL

BEYOND = 2.5
"""Levels that differ by less, in deviations of the difference, are one."""

_Level: TypeAlias = tuple[str, float, float | None]
"""Night, level, deviation."""


@dataclass(frozen=True)
class Ratio:
    """One night: the log ratio of ``build`` to ``baseline``, and its deviation if it is known.

    Nights of another ``shape`` (workload and cluster) are of another series.
    """

    night: str
    build: str
    baseline: str
    shift: float
    deviation: float | None = None
    shape: str = ""

    @property
    def scale(self) -> tuple[str, str]:
        """What it is relative to."""
        return self.shape, self.baseline


@dataclass
class _Series:
    """Levels by the index of their night, and where each scale begins among them."""

    levels: dict[int, float] = field(default_factory=dict)
    offsets: dict[tuple[str, str], float] = field(default_factory=dict)


def dated_changes(nights: Sequence[Ratio]) -> list[ChangePoint]:
    """Return the lasting changes in nights, oldest first; ``index`` is into what was given.

    ``before`` and ``after`` are relative to the first baseline of their series. What is not finite
    is left out.
    """
    changes: list[ChangePoint] = []
    for series in _linked(nights):
        indices = list(series.levels)
        found = change_points(
            [(nights[i].night, level, nights[i].deviation) for i, level in series.levels.items()]
        )
        changes += [replace(change, index=indices[change.index]) for change in found]
    return sorted(changes, key=lambda change: change.index)


def _linked(nights: Sequence[Ratio]) -> list[_Series]:
    """Return the nights as series, each on one scale and in the order of its nights."""
    found: list[_Series] = []
    for index, night in enumerate(nights):
        if not math.isfinite(night.shift):
            continue
        series = next((each for each in found if night.scale in each.offsets), None)
        if series is None:
            series = _begun(nights, index, found)
        series.levels[index] = series.offsets[night.scale] + night.shift
    return found


def _begun(nights: Sequence[Ratio], index: int, found: list[_Series]) -> _Series:
    """Return the series that a new baseline is linked to, else a new one; it has its scale then."""
    moved = nights[index]
    for series in reversed(found):
        links = [
            series.offsets[night.scale] + night.shift
            for night in nights
            if (night.shape, night.build) == moved.scale
            and night.scale in series.offsets
            and math.isfinite(night.shift)
        ]
        if links:
            series.offsets[moved.scale] = _offset(nights, index, series, links)
            return series
    found.append(_Series(offsets={moved.scale: 0.0}))
    return found[-1]


def _offset(nights: Sequence[Ratio], index: int, series: _Series, links: Sequence[float]) -> float:
    """Return where the scale of a night begins: as it is linked, or so that the level goes on."""
    before = [(nights[i].night, level, nights[i].deviation) for i, level in series.levels.items()]
    same = takewhile(lambda night: night.scale == nights[index].scale, nights[index:])
    after = [(x.night, x.shift, x.deviation) for x in same if math.isfinite(x.shift)]
    last = [level for _, level, _ in before[_starts(before)[-1] :]]
    first = [level for _, level, _ in after[: [*_starts(after), len(after)][1]]]
    step = fmean(links) + median(first) - median(last)
    # A median of n is as uncertain as a mean of 2 n / pi.
    times = math.sqrt(1 / len(links) + math.pi / 2 * (1 / len(last) + 1 / len(first)))
    believed = abs(step) > BEYOND * times * _noise(before)
    return fmean(links) if believed else fmean(links) - step


def _starts(levels: Sequence[_Level]) -> list[int]:
    """Return where each level begins."""
    return [0, *(change.index for change in change_points(levels))]


def _noise(levels: Sequence[_Level]) -> float:
    """Return the standard deviation of a night."""
    told = [deviation for _, _, deviation in levels if deviation is not None and deviation > 0]
    apart = [abs(after[1] - before[1]) for before, after in pairwise(levels)]
    return max(
        median(told) if told else 0.0,
        NORMAL * median(apart) / math.sqrt(2) if apart else 0.0,
    )


__all__ = ["Ratio", "dated_changes"]
