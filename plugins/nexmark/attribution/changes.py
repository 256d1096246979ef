"""Ratios and differences of pairs, with their intervals."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from nexmark.attribution.explained import Change
from nexmark.verdict.location import hodges_lehmann, interval


def ratio_of(candidate: Sequence[float], baseline: Sequence[float]) -> Change | None:
    """Return the ratio of pairs (Hodges-Lehmann on logs); None where no pair has two figures."""
    logs = [math.log(x / y) for x, y in zip(candidate, baseline, strict=True) if x > 0 and y > 0]
    if not logs:
        return None
    ratios = np.asarray(logs, dtype=np.float64)
    lo, hi = interval(ratios)
    return Change(math.exp(float(hodges_lehmann(ratios))), math.exp(lo), math.exp(hi))


def difference_of(
    candidate: Sequence[float], baseline: Sequence[float]
) -> tuple[float, float, float]:
    """Return the mean difference of pairs, and its interval."""
    differences = np.asarray(candidate, dtype=np.float64) - np.asarray(baseline, dtype=np.float64)
    return float(differences.mean()), *interval(differences)


__all__ = ["difference_of", "ratio_of"]
