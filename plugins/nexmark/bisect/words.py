"""What a search tells a person: a table after each step, and the answer."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from nexmark.bisect.builds import short

if TYPE_CHECKING:
    from nexmark.bisect.search import Search
    from nexmark.verdict.bisection import Bisection

_INTERVAL = 1.96


def percent(size: float, deviation: float) -> str:
    """A log ratio as a person reads it, with its 95 % interval."""
    low, high = size - _INTERVAL * deviation, size + _INTERVAL * deviation
    way = "slower" if size >= 0 else "faster"
    sign = 1 if size >= 0 else -1
    ends = sorted(sign * 100 * math.expm1(end) for end in (low, high))
    return f"{abs(100 * math.expm1(size)):.1f} % {way} ({ends[0]:.1f} to {ends[1]:.1f} %)"


def table(search: Search, state: Bisection) -> str:
    """Every build: its nights, its ratio to the good one, how probably it is the first bad."""
    from nexmark.verdict.pairs_of_builds import shift_of

    names = [short(build) for build in search.builds]
    width = max(len("build"), *map(len, names))
    lines = [f"{'build':<{width}}  nights   ratio  first bad"]
    for build, name in zip(search.builds, names, strict=True):
        own = [night.ratios for night in search.nights if night.build == build]
        every = [ratio for ratios in own for ratio in ratios]
        ratio = f"{math.exp(shift_of(every)):.3f}" if every else "-"
        chance = f"{100 * state.posterior[build]:.1f} %"
        if build == search.builds[0]:
            ratio, chance = "1", "good"
        if build in search.skipped:
            ratio = "none"
        lines.append(f"{name:<{width}}  {len(own):>6}  {ratio:>6}  {chance:>9}")
    return "\n".join(lines)


def answer(query: str, search: Search, state: Bisection) -> str:
    """The first bad build, or what is known of it."""
    size = f"{query} is {percent(*state.size)} from it on"
    spent = f"{len(search.nights)} nights, {search.pairs} pairs"
    found = state.found
    likely = state.posterior
    if len(found) == 1:
        return f"first bad build: {found[0]}, with {_chance(likely[found[0]])}; {size}; {spent}"
    if found:
        together = sum(likely[build] for build in found)
        return (
            f"first bad build: one of {', '.join(found)}, with {_chance(together)}: those before "
            f"the last could not be measured; {size}; {spent}"
        )
    known = state.credible
    together = sum(likely[build] for build in known)
    return (
        f"first bad build: not found; one of {', '.join(known)}, with {_chance(together)}; "
        f"{size}; {spent}; run it again with more --measurements"
    )


def _chance(probability: float) -> str:
    return f"{min(100 * probability, 99.9):.1f} %"


__all__ = ["answer", "percent", "table"]
