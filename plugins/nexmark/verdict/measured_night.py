"""The gate's input as data classes."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeGuard

from nexmark.model import Arm, Basis, median_of


def possible(value: float | None) -> TypeGuard[float]:
    """Tell whether a number can be a measurement: finite and above zero."""
    return value is not None and math.isfinite(value) and value > 0


@dataclass(frozen=True)
class Pair:
    """One repetition of each arm, adjacent in time; None where an arm is not there."""

    number: int
    candidate: float | None
    baseline: float | None

    @property
    def arms(self) -> tuple[tuple[Arm, float | None], ...]:
        """Both arms with their figures."""
        return ((Arm.CANDIDATE, self.candidate), (Arm.BASELINE, self.baseline))

    @property
    def gap(self) -> Arm | None:
        """The first arm that is not there."""
        return next((arm for arm, value in self.arms if value is None), None)

    @property
    def complete(self) -> bool:
        """Whether both arms were measured (possible or not)."""
        return self.gap is None

    @property
    def ratio(self) -> float:
        """ln(candidate / baseline); NaN unless both can be measurements."""
        if possible(self.candidate) and possible(self.baseline):
            return math.log(self.candidate) - math.log(self.baseline)
        return math.nan


@dataclass(frozen=True)
class Measured:
    """One metric of one query in one night: its pairs, round by round.

    ``pairs`` is the first round, ``later`` has each round that followed; the gate
    reads a later round only of queries that it would have measured on. ``basis`` is the part of the
    run that the figures cover, where there is a choice. ``before`` are the pairs by which earlier
    nights compared the same two builds, and left the query undecided.
    """

    query: str
    metric: str
    pairs: tuple[Pair, ...]
    later: tuple[tuple[Pair, ...], ...] = ()
    basis: Basis | None = None
    before: tuple[Pair, ...] = ()

    @property
    def all_pairs(self) -> tuple[Pair, ...]:
        """The pairs of all rounds of this night."""
        return tuple(pair for pairs in (self.pairs, *self.later) for pair in pairs)

    @property
    def is_unproven(self) -> bool:
        """Whether a figure is NaN, which marks a result that is not proven to be right."""
        values = (value for pair in self.all_pairs for _, value in pair.arms)
        return any(value is not None and math.isnan(value) for value in values)

    def of_round(self, number: int) -> tuple[Pair, ...]:
        """Return the pairs of a round, from 1; () where the query was not measured in it."""
        return ((self.pairs, *self.later)[number - 1 : number] or ((),))[0]

    def medians(self, rounds: int, whole: bool = True) -> tuple[float | None, float | None]:
        """Return both arms' medians over the first ``rounds``, if ``whole`` of complete pairs.

        With the pairs of ``before``.
        """
        rounds_ = (self.before, self.pairs, *self.later)[: rounds + 1]
        pairs = [pair for each in rounds_ for pair in each]
        used = [pair for pair in pairs if pair.complete or not whole] or pairs
        return median_of(pair.candidate for pair in used), median_of(pair.baseline for pair in used)


Sample = Mapping[str, Any]
"""What the JVMs of a soak repetition hold between two of its batches, as the night writes it."""


@dataclass(frozen=True)
class Aged:
    """The samples of both repetitions of a pair; None where a repetition is not there or wrong."""

    round: int
    number: int
    candidate: Sequence[Sample] | None
    baseline: Sequence[Sample] | None


@dataclass(frozen=True)
class Canary:
    """Readings of one canary metric of one host, before and after a group ("": the whole night)."""

    metric: str
    before: tuple[float, ...]
    after: tuple[float, ...]
    host: str = ""
    group: str = ""


def rounds_of(
    figures: Iterable[tuple[int, int, str, float | None]], arms: Sequence[str]
) -> list[tuple[Pair, ...]]:
    """Return figures (round, number of pair, arm, figure) as pairs, round by round from 1.

    ``arms[0]`` is the candidate. The list is as long as the last round that there is, and has the
    first round in any case.
    """
    by_pair: dict[tuple[int, int], dict[str, float | None]] = {}
    for round_, number, arm, figure in figures:
        by_pair.setdefault((round_, number), {})[arm] = figure
    rounds: list[list[Pair]] = [[]]
    for (round_, number), by_arm in sorted(by_pair.items()):
        rounds += ([] for _ in range(round_ - len(rounds)))
        rounds[round_ - 1].append(Pair(number, *map(by_arm.get, arms)))
    return [tuple(pairs) for pairs in rounds]


def canaries_of(readings: Iterable[tuple[str, str, str, str, float]]) -> tuple[Canary, ...]:
    """Return readings (metric, host, group, moment, value), in the order of time, as canaries."""
    by_series: dict[tuple[str, str, str], dict[str, list[float]]] = {}
    for metric, host, group, moment, value in readings:
        by_series.setdefault((metric, host, group), {}).setdefault(moment, []).append(value)
    return tuple(
        Canary(
            metric,
            tuple(by_moment.get("before", ())),
            tuple(by_moment.get("after", ())),
            host,
            group,
        )
        for (metric, host, group), by_moment in sorted(by_series.items())
    )


@dataclass(frozen=True)
class MeasuredNight:
    """All that the gate may know of a night.

    ``expected`` names the queries that have to be there, ``asked`` how many pairs of each (None: as
    many as there are). ``invalid`` has a reason for queries whose result is not proven right,
    ``missing`` for queries with a repetition that did not run. ``baseline`` has the accepted build,
    ``groups`` the canary group of a query. ``teaches``: whether later nights learn from this one.
    ``candidate`` is the build that is tested, "" where that is not known. ``family`` is how many
    tests share the error of a night, if earlier nights left queries of this one open
    (``left_open.family_of``). A soak night has the samples of each pair in ``aged``, and the number
    of its first batch after the warm-up.
    """

    name: str
    measured: tuple[Measured, ...]
    canary: tuple[Canary, ...] = ()
    expected: tuple[str, ...] = ()
    asked: int | None = None
    invalid: Mapping[str, str] = field(default_factory=dict)
    missing: Mapping[str, str] = field(default_factory=dict)
    baseline: Mapping[str, str] = field(default_factory=dict)
    groups: Mapping[str, str] = field(default_factory=dict)
    teaches: bool = True
    candidate: str = ""
    family: int = 0
    aged: Mapping[str, tuple[Aged, ...]] = field(default_factory=dict)
    warmup: int = 0
