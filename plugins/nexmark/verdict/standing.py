"""Where a query stands while its pairs are measured: no verdict, for the person who waits."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from nexmark.config import Gate
from nexmark.verdict.decision import estimate
from nexmark.verdict.moderation import moderate
from nexmark.verdict.noise import Noise

FEWEST_PAIRS = 2
"""One pair says nothing of how much pairs differ."""


@dataclass(frozen=True)
class Standing:
    """The ratio of a query so far, with its 95 % interval, from a number of pairs."""

    ratio: float
    lo: float
    hi: float
    pairs: int

    def __str__(self) -> str:
        """Return it as ``1.043 (0.981 to 1.109) after 4 pairs``."""
        return f"{self.ratio:.3f} ({self.lo:.3f} to {self.hi:.3f}) after {self.pairs} pairs"


def standing_of(ratios: Sequence[float], rules: Gate) -> Standing | None:
    """Return where a query stands by its own pairs alone; None for fewer than two of them.

    The verdict knows more: earlier nights, tonight's other queries, and the hosts.

    Args:
        ratios: The ratio candidate / baseline of each pair.
        rules: The gate.
    """
    if len(ratios) < FEWEST_PAIRS:
        return None
    logs = np.log(np.asarray([ratios], dtype=np.float64))
    unknown = np.asarray([math.nan])
    usual = Noise(unknown, unknown, rules.noise_floor, np.zeros(1))
    seen = estimate(logs, moderate(logs, unknown, rules), usual, np.zeros(1))
    shift, half = float(seen.shift[0]), float(seen.half[0])
    return Standing(
        ratio=math.exp(shift),
        lo=math.exp(shift - half),
        hi=math.exp(shift + half),
        pairs=len(ratios),
    )
