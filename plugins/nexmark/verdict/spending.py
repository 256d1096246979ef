"""Bounds for a test that looks at its data several times, and the error that each look may spend.

Every look at the pairs is a chance to be wrong. The bounds share one error among all looks: after a
share t of the pairs, t squared of the error is spent, so early looks need strong evidence and the
last one hardly pays for them. A query that looks unchanged is not measured on, and what is not
measured on cannot be wrong later: the bounds count with it, so the error is spent, not wasted.

Sources: Lan and DeMets, "Discrete sequential boundaries for clinical trials" (1983); Kim and DeMets
(1987) for the power family. The recursion over the density of the statistic is in Armitage,
McPherson and Rowe (1969), with a lower boundary as in Jennison and Turnbull, "Group Sequential
Methods with Applications to Clinical Trials" (2000), chapter 19.
"""

import math
from functools import cache

import numpy as np
from numpy.typing import NDArray

POWER = 2.0
"""After a share t of the pairs, t to this power of the error is spent."""
_REACH = 8.5
"""Standard deviations on each side of zero that the density is followed over."""
_POINTS = 601


@cache
def spending_bounds(
    counts: tuple[int, ...], error: float, goes_on: tuple[float, ...] = ()
) -> tuple[float, ...]:
    """Return for each look the z value beyond which a change is real, one-sided.

    Args:
        counts: The pairs at each look, growing; the last is all that there can be.
        error: The chance that an unchanged query is beyond the bound at any look.
        goes_on: The z value after each look but the last above which the query is measured on; a
            query goes on in any case where nothing is said.
    """
    shares = [count / counts[-1] for count in counts]
    bounds = list[float]()
    places: NDArray[np.float64] | None = None
    weights = np.zeros(0)
    spent = before = 0.0
    for look, share in enumerate(shares):
        now = error * share**POWER
        grid = np.linspace(-_REACH, _REACH, _POINTS) * math.sqrt(share)
        if places is None:
            density = _normal(grid, share)
        else:
            density = _normal(grid[:, None] - places[None, :], share - before) @ weights
        step = float(grid[1] - grid[0])
        bound = _upper_bound(grid, density * step, now - spent)
        bounds.append(bound / math.sqrt(share))
        least = goes_on[look] * math.sqrt(share) if look < len(goes_on) else -math.inf
        inside = (grid < bound) & (grid > least)
        places, weights = grid[inside], density[inside] * step
        spent, before = now, share
    return tuple(bounds)


def _normal(values: NDArray[np.float64], variance: float) -> NDArray[np.float64]:
    result: NDArray[np.float64] = np.exp(-(values**2) / (2 * variance))
    return result / math.sqrt(2 * math.pi * variance)


def _upper_bound(grid: NDArray[np.float64], mass: NDArray[np.float64], wanted: float) -> float:
    """Return the value beyond which the mass is ``wanted``, between two points of the grid."""
    beyond = np.cumsum(mass[::-1])[::-1]
    place = int(np.argmax(beyond <= wanted))
    if beyond[0] <= wanted:
        return 0.0
    inner, outer = math.log(beyond[place - 1]), math.log(max(beyond[place], 1e-300))
    part = (inner - math.log(wanted)) / (inner - outer)
    step = float(grid[1] - grid[0])
    return float(grid[place - 1]) + (part - 0.5) * step  # each point stands for a step around it
