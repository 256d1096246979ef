"""History mode: one arm against its own past, for those who cannot pay for two.

The log of the candidate's median is taken relative to a canary that is not Spark, and compared
with the nights before by a robust z (research/regression-gates.md section 0, point 3: 5 % more
machine time than no gate, and 5 to 8 times the false alarms of pairs). There is no second arm to
confirm with: what is beyond the bound is a regression at once.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nexmark.verdict.location import Array, nan_median
from nexmark.verdict.noise import NORMAL
from nexmark.verdict.rules import Rules


@dataclass(frozen=True)
class OneArm:
    """``shift`` from the median of the past, its ``noise`` and the ``side``: (..., queries)."""

    shift: Array
    noise: Array
    side: Array
    nights: Array


def decide_one_arm(level: Array, earlier: Array, rules: Rules) -> OneArm:
    """Judge log levels (..., queries) by those of earlier nights (..., queries, nights).

    Half of the noise is the query's own, half the suite's; a median of few nights is uncertain
    itself, which widens it (pi / 2 / nights).
    """
    nights = np.sum(~np.isnan(earlier), axis=-1).astype(np.float64)
    centre = nan_median(earlier)
    own = NORMAL * nan_median(np.abs(earlier - centre[..., None]))
    noise = np.fmax((own + nan_median(own)[..., None]) / 2, rules.noise_floor)
    noise = noise * np.sqrt(1 + np.pi / 2 / np.maximum(nights, 1))
    shift = level - centre
    needed = np.maximum(rules.one_arm_z * noise, np.log1p(rules.one_arm_change))
    side = (shift > needed).astype(np.float64) - (-shift > needed)
    return OneArm(shift, noise, side * (nights >= rules.calibration_nights), nights)


__all__ = ["OneArm", "decide_one_arm"]
