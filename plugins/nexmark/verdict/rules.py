"""What the statistics need of the user's settings (`include/conf/gate.yaml` has the words)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

MIN_PAIRS = 3
"""Below this no estimate sheds a single spike: no verdict."""

MIN_FRESH_PAIRS = 4
"""Below this nothing is confirmed: 3 that agree are chance once in 8 (``location.agree``)."""


class Rules(Protocol):
    """The settings of the gate. Changes are fractions (0.03 is 3 %), ``*_z`` count noise units."""

    version: int
    pairs: int
    confirmation: int
    calibration_nights: int
    history_nights: int
    noise_floor: float
    suspect_z: float
    suspect_faster_z: float
    suspect_change: float
    confirm_z: float
    confirm_change: float
    together_z: float
    suite_z: float
    suite_queries: int
    inform_z: float
    inform_change: float
    drift_allowance: float
    drift_bound: float
    canary_bound: float
    canary_memory_bound: float
    canary_unsteady: float
    canary_limits: Mapping[str, float]
    one_arm_z: float
    one_arm_change: float
    one_arm_nights: int

    @property
    def metric(self) -> str:
        """The metric that decides."""

    @property
    def mode(self) -> str:
        """``paired``, or ``history`` (one arm)."""


def fresh_pairs(pairs: int, rules: Rules) -> int:
    """Return in how many fresh pairs a suspect with so many first pairs is measured again."""
    return max(pairs * rules.confirmation, MIN_FRESH_PAIRS)


__all__ = ["MIN_FRESH_PAIRS", "MIN_PAIRS", "Rules", "fresh_pairs"]
