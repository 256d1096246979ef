"""The search itself: measure, believe a little more, and measure where it tells most.

What measures is given, so the search knows nothing of nights, stores or Airflow.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from nexmark.bisect.words import percent
from nexmark.errors import NexmarkError

if TYPE_CHECKING:
    from nexmark.verdict.bisection import Bisection
    from nexmark.verdict.pairs_of_builds import Pairs

#: The bad build differs from the good one from so many standard deviations on. Below the first it
#: does not, between them it is measured again, up to so many nights.
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
        """What is believed by now; the bad build must have been measured."""
        from nexmark.verdict.pairs_of_builds import bisection_of

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


__all__ = ["Search", "Unmeasurable"]
