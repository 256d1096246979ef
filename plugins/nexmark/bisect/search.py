"""The search: measure, believe a little more, and measure where it tells most; and its words.

The caller passes the function that measures: the search knows no nights, stores or Airflow.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from nexmark.bisect.builds import short
from nexmark.errors import NexmarkError

if TYPE_CHECKING:
    from nexmark.verdict.bisection import Bisection, Pairs

#: Below NOTHING standard deviations the bad build does not differ from the good one; from DIFFERENT
#: on it does. Between the two the search measures it again, until it has had ENOUGH nights.
NOTHING, DIFFERENT, ENOUGH = 1.0, 2.0, 3


class Unmeasurable(NexmarkError):
    """A build that cannot be measured; the search goes on without it."""


@dataclass
class Search:
    """A search among `builds` (good first, bad last), as far as it has come.

    Attributes:
        nights: the pairs that are known, in the order they were measured.
        skipped: builds that could not be measured.
        floor: the noise of a shift is never believed to be below it.
    """

    builds: Sequence[str]
    nights: list[Pairs]
    floor: float
    skipped: list[str] = field(default_factory=list)

    def state(self) -> Bisection:
        """Return the present probabilities; the bad build must have been measured."""
        from nexmark.verdict.bisection import bisection_of

        return bisection_of(self.builds, self.nights, self.skipped, self.floor)

    @property
    def pairs(self) -> int:
        """How many pairs were spent."""
        return sum(len(night.ratios) for night in self.nights)

    def run(
        self,
        measure: Callable[[str], Pairs],
        most: int,
        show: Callable[[Search, Bisection], None],
        say: Callable[[str], None],
    ) -> Bisection:
        """Measure until a build has 95 %, nothing more can be told, or there are `most` nights.

        Raises NexmarkError where the bad build does not differ from the good one, or cannot be
        measured; builds between that cannot be measured are left out.
        """
        bad = self.builds[-1]
        if all(night.build != bad for night in self.nights):
            say(f"measuring the bad build, {bad}")
            self.nights.append(measure(bad))
        while True:
            state = self.state()
            self._check_difference(state)
            show(self, state)
            build = state.next()
            if build is None or len(self.nights) >= most:
                return state
            say(f"measuring {build}")
            try:
                self.nights.append(measure(build))
            except Unmeasurable as error:
                if build == bad:
                    raise
                say(f"left out: {error}")
                self.skipped.append(build)

    def _check_difference(self, state: Bisection) -> None:
        size, deviation = state.size
        nights = sum(night.build == self.builds[-1] for night in self.nights)
        if abs(size) < (DIFFERENT if nights >= ENOUGH else NOTHING) * deviation:
            raise NexmarkError(
                f"the bad build does not differ from the good one: {percent(size, deviation)} in "
                f"{self.pairs} pairs; check GOOD and BAD, or give more REPETITIONS"
            )


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
    from nexmark.verdict.bisection import shift_of

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
