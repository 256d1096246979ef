"""A ratio with its interval as a small drawing, the same scale for all rows of a table."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

WIDTH, HEIGHT = 180, 20
MARGIN = 6
LEAST, MOST = math.log(1.1), math.log(2.0)
"""How far from 1 a scale goes: at least and at most."""


@dataclass(frozen=True)
class Scale:
    """A logarithmic scale with 1 in its middle, so that twice as slow and twice as fast look alike.

    ``reach`` is the log of the greatest ratio on it.
    """

    reach: float

    def x(self, ratio: float) -> float:
        """Return where a ratio is, cut off at the ends."""
        share = max(-1.0, min(1.0, math.log(ratio) / self.reach))
        return round(WIDTH / 2 + share * (WIDTH / 2 - MARGIN), 1)

    @property
    def ends(self) -> tuple[float, float]:
        """The ratios at both ends."""
        return math.exp(-self.reach), math.exp(self.reach)


@dataclass(frozen=True)
class Bar:
    """Places on a drawing of ``WIDTH`` x ``HEIGHT``.

    ``dot`` is the ratio, ``left`` to ``right`` its interval, ``seen_left`` to ``seen_right`` what
    is too small to be seen. ``cut``: the interval goes beyond the scale.
    """

    dot: float
    left: float
    right: float
    seen_left: float
    seen_right: float
    cut_left: bool
    cut_right: bool
    words: str
    middle: float = WIDTH / 2
    width: int = WIDTH
    height: int = HEIGHT


def scale_of(ratios: Iterable[float | None]) -> Scale:
    """Return a common log scale for these ratios, capped at ``MOST``."""
    logs = [abs(math.log(x)) for x in ratios if x is not None and x > 0 and math.isfinite(x)]
    return Scale(min(MOST, max([LEAST, *logs]) * 1.05))


def bar(
    scale: Scale,
    ratio: float | None,
    lo: float | None = None,
    hi: float | None = None,
    mde: float | None = None,
) -> Bar | None:
    """Return the drawing of a ratio; None for none."""
    if not _possible(ratio) or ratio is None:
        return None
    low = lo if lo is not None and _possible(lo) else ratio
    high = hi if hi is not None and _possible(hi) else ratio
    seen = 1 + mde if mde is not None and mde > 0 else 1.0
    words = f"ratio {ratio:.3f}"
    if lo is not None and hi is not None:
        words += f", 95 % interval {lo:.3f} to {hi:.3f}"
    if mde is not None:
        words += f"; a change of {mde:.1%} could have been seen"
    start, end = scale.ends
    return Bar(
        dot=scale.x(ratio),
        left=scale.x(low),
        right=scale.x(high),
        seen_left=scale.x(1 / seen),
        seen_right=scale.x(seen),
        cut_left=low < start,
        cut_right=high > end,
        words=words,
    )


def _possible(value: float | None) -> bool:
    return value is not None and math.isfinite(value) and value > 0
