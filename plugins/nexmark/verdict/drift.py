"""Changes too small for one night: a two-sided CUSUM of the nightly shifts.

E. S. Page, "Continuous inspection schemes" (1954); research/regression-gates.md section 6, "Slow
drift". It finds in a week what no night shows, and never turns a night red.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nexmark.verdict.location import Array
from nexmark.verdict.rules import Rules

CLIP = 4.0
"""No single night counts for more noise units than this."""


@dataclass(frozen=True)
class Drift:
    """The sums upwards (slower) and downwards (faster), in noise units."""

    slower: Array
    faster: Array


def advance(drift: Drift, shift: Array, noise: Array, rules: Rules) -> Drift:
    """Add a night; where shift or noise is NaN the sums stay as they are."""
    step = np.nan_to_num(np.clip(shift / noise, -CLIP, CLIP), nan=0.0)
    known = ~np.isnan(shift / noise)
    allowance = rules.drift_allowance
    up = np.where(known, np.maximum(drift.slower + step - allowance, 0.0), drift.slower)
    down = np.where(known, np.maximum(drift.faster - step - allowance, 0.0), drift.faster)
    return Drift(up, down)


def side(drift: Drift, rules: Rules) -> Array:
    """Return +1 where a drift to slower is over the bound, -1 to faster, else 0."""
    slower, faster = drift.slower > rules.drift_bound, drift.faster > rules.drift_bound
    result: Array = slower.astype(np.float64) - (faster & ~slower)
    return result


__all__ = ["Drift", "advance", "side"]
