"""Which build brought the regression: bisection with pairs of runs as a noisy oracle.

Every build has a probability of being the first bad one, every measurement moves all of them by as
much as it is worth, and the search ends when one has 95 % (M. Horstein, "Sequential transmission
using noiseless feedback", 1963). The build at the median is measured, where an answer tells most
(R. Waeber, P. Frazier and S. Henderson, "Bisection search with noisy responses", 2013).

A measurement is the Hodges-Lehmann log ratio of a build to the good one, with a deviation that is
estimated from all pairs so far. One change is looked for: where a slowdown came in two steps,
the search does not end, so the caller bounds the number of measurements.
"""

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import softmax, stdtrit

from nexmark.verdict.location import EFFICIENCY, Array, hodges_lehmann, spread

CONFIDENCE = 0.95
"""With this probability the search ends."""
OUTLIERS = 0.01
"""Share of measurements that mean nothing: no single one can count for more than about 100 to 1."""
KNOWN = 3.0
"""The bad build is measured until size / standard deviation reaches this value."""
WIDER = 1.1
"""Factor on every deviation: noise is learned without the spikes that pairs have."""
_UPPER, _NORMAL = 0.975, 1.96


class Bisection:
    """The search for the first bad of ``builds``: the first is known to be good, the last bad.

    ``size``: log ratio of the last to the first, below 0 for a speed-up, ``noise`` its deviation;
    pairs that raised the alarm are too large for it on average.
    """

    def __init__(self, builds: Sequence[str], size: float, noise: float) -> None:
        """Begin with all builds but the first equally probable."""
        self._builds = tuple(builds)
        self._place = {build: place for place, build in enumerate(builds)}
        hypotheses = len(builds)
        self._log = np.zeros(hypotheses)
        self._log[0] = -np.inf
        # the size under each hypothesis: all its bad builds have the same one
        self._mean = np.full(hypotheses, float(size))
        self._variance = np.full(hypotheses, noise**2)
        self._counts = np.zeros(hypotheses)
        self._skipped = np.zeros(hypotheses, dtype=np.bool_)

    @property
    def posterior(self) -> dict[str, float]:
        """The probability of each build to be the first bad one; their sum is 1."""
        return dict(zip(self._builds, self._probabilities().tolist(), strict=True))

    @property
    def measurements(self) -> int:
        """How many observations there were."""
        return int(self._counts.sum())

    @property
    def found(self) -> tuple[str, ...]:
        """The first bad build, once it has 95 %; or it and those before it that were skipped."""
        # Runs that no measurement tells apart: skipped builds and the next.
        told_apart = ~self._skipped | (self._counts > 0)
        told_apart[[0, -1]] = False, True
        ends = np.nonzero(told_apart)[0] + 1
        starts = np.concatenate(([1], ends[:-1]))
        likely = np.add.reduceat(self._probabilities(), starts)
        best = int(np.argmax(likely))
        if likely[best] >= CONFIDENCE:
            return self._builds[starts[best] : ends[best]]
        return ()

    @property
    def credible(self) -> tuple[str, ...]:
        """The shortest run of builds that has 95 % by now."""
        total = np.concatenate(([0.0], np.cumsum(self._probabilities())))
        ends = np.searchsorted(total, total[:-1] + CONFIDENCE - 1e-9)
        starts = np.nonzero(ends < len(total))[0]
        start = starts[np.argmin(ends[starts] - starts)]
        return self._builds[start : ends[start]]

    def next(self) -> str | None:
        """Return the build to measure next, against the good one; None when that would not help.

        The bad one while its size is too vague, then the one nearest to equally good and bad.
        """
        if self.found:
            return None
        mean, deviation = self.size
        if deviation > abs(mean) / KNOWN:
            return self._builds[-1]
        bad = np.cumsum(self._probabilities())
        open_ = ~self._skipped
        open_[[0, -1]] = False  # they are known
        if not open_.any():
            return None
        away = np.where(open_, np.abs(bad - 0.5), np.inf)
        return self._builds[int(np.argmin(away))]

    def observe(self, build: str, shift: float, deviation: float) -> None:
        """Take in a log ratio of a build to the good one, and its deviation."""
        place = self._place[build]
        self._counts[place] += 1
        bad = np.arange(len(self._builds)) <= place
        mean = np.where(bad, self._mean, 0.0)
        deviation *= WIDER
        variance = np.where(bad, self._variance, 0.0) + deviation**2
        plain = (1 - OUTLIERS) * _normal(shift, mean, variance)
        wild = OUTLIERS * _normal(0.0, np.zeros(1), np.asarray([deviation**2]))
        self._log += np.log(plain + wild)
        self._log -= self._log.max()
        trusted = plain / (plain + wild)
        # What the hypotheses that hold the build for bad believe of the size (Kalman).
        gain = np.where(bad, self._variance / variance, 0.0)
        step = gain * (shift - self._mean)
        self._mean += trusted * step
        self._variance = (1 - trusted * gain) * self._variance + trusted * (1 - trusted) * step**2

    def skip(self, build: str) -> None:
        """Leave a build out that cannot be measured (not there, does not start)."""
        self._skipped[self._place[build]] = True

    @property
    def size(self) -> tuple[float, float]:
        """The current estimate of the size (log), and its standard deviation."""
        weights = self._probabilities()
        mean = float(weights @ self._mean)
        variance = float(weights @ (self._variance + (self._mean - mean) ** 2))
        return mean, math.sqrt(variance)

    def _probabilities(self) -> Array:
        result: Array = softmax(self._log)
        return result


def _normal(value: float, mean: Array, variance: Array) -> Array:
    return np.exp(-((value - mean) ** 2) / (2 * variance)) / np.sqrt(variance)


@dataclass(frozen=True)
class Pairs:
    """The pairs of one night of a build with the good one: two or more log ratios."""

    build: str
    ratios: tuple[float, ...]


def shift_of(ratios: Sequence[float]) -> float:
    """Return the log ratio of a build to the good one."""
    return float(hodges_lehmann(np.asarray(ratios)))


def deviation_of(count: int, nights: Sequence[Pairs], floor: float) -> float:
    """Return the deviation of the shift of `count` pairs: wider for few, and at least `floor`."""
    spreads = [float(spread(np.asarray(night.ratios))) for night in nights]
    freedom = [len(night.ratios) - 1 for night in nights]
    one = math.sqrt(np.average(np.square(spreads), weights=freedom))
    wider = float(stdtrit(sum(freedom), _UPPER)) / _NORMAL
    return max(wider * one * math.sqrt(EFFICIENCY / count), floor)


def bisection_of(
    builds: Sequence[str], nights: Sequence[Pairs], skipped: Collection[str], floor: float
) -> Bisection:
    """Return the search after some nights; the first one of the bad build gives the size.

    Args:
        builds: The builds in their order; the first is known to be good, the last one bad.
        nights: The pairs of each night so far, at least one of the bad build.
        skipped: Builds that cannot be measured.
        floor: No shift is believed to be more exact than this.
    """
    first = next(place for place, night in enumerate(nights) if night.build == builds[-1])
    ends = nights[first].ratios
    search = Bisection(builds, shift_of(ends), deviation_of(len(ends), nights, floor))
    for place, night in enumerate(nights):
        if place != first:
            deviation = deviation_of(len(night.ratios), nights, floor)
            search.observe(night.build, shift_of(night.ratios), deviation)
    for build in skipped:
        search.skip(build)
    return search
