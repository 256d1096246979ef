"""The gate's input and its verdicts, as data classes."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median

from nexmark.model import Arm, QueryKey, Value, is_red


def possible(value: float | None) -> bool:
    """Tell whether a number can be a measurement: finite and above zero."""
    return value is not None and math.isfinite(value) and value > 0


def _median(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return median(known) if known else None


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
        if self.candidate is None or self.baseline is None:
            return math.nan
        if not (possible(self.candidate) and possible(self.baseline)):
            return math.nan
        return math.log(self.candidate) - math.log(self.baseline)


@dataclass(frozen=True)
class Measured:
    """One metric of one query in one night; the lower the better.

    ``pairs`` are the first pairs, ``fresh`` the pairs of the confirmation, which are read only when
    the gate suspects the query. ``basis`` is the part of the run that the figures cover, where
    there is a choice (the steady state, the whole application); figures of different bases are
    never compared.
    """

    query: str
    metric: str
    pairs: tuple[Pair, ...]
    fresh: tuple[Pair, ...] = ()
    basis: str = ""

    def medians(self, fresh: bool) -> tuple[float | None, float | None]:
        """Return the medians of both arms over the fresh pairs, or over the first ones.

        Of the complete pairs, where there are some.
        """
        pairs = self.fresh if fresh else self.pairs
        whole = [pair for pair in pairs if pair.complete] or pairs
        return _median(x.candidate for x in whole), _median(x.baseline for x in whole)


@dataclass(frozen=True)
class Canary:
    """Readings of one canary metric of one host, before and after a group of queries.

    ``group`` is "" for the whole night. Timings are compared before with after; levels (steal,
    PSI, load, ...) with the limits of the gate.
    """

    metric: str
    before: tuple[float, ...]
    after: tuple[float, ...]
    host: str = ""
    group: str = ""


def pairs_of(
    figures: Iterable[tuple[int, str, float | None]], arms: Sequence[str]
) -> tuple[Pair, ...]:
    """Return figures (number of pair, arm, figure) as pairs; ``arms[0]`` is the candidate."""
    found: dict[int, dict[str, float | None]] = {}
    for number, arm, figure in figures:
        found.setdefault(number, {})[arm] = figure
    return tuple(Pair(number, *map(own.get, arms)) for number, own in sorted(found.items()))


def canaries_of(readings: Iterable[tuple[str, str, str, str, float]]) -> tuple[Canary, ...]:
    """Return readings (metric, host, group, moment, value), in the order of time, as canaries."""
    found: dict[tuple[str, str, str], dict[str, list[float]]] = {}
    for metric, host, group, moment, value in readings:
        found.setdefault((metric, host, group), {}).setdefault(moment, []).append(value)
    return tuple(
        Canary(metric, tuple(own.get("before", ())), tuple(own.get("after", ())), host, group)
        for (metric, host, group), own in sorted(found.items())
    )


@dataclass(frozen=True)
class MeasuredNight:
    """All that the gate may know of a night.

    ``expected`` names the queries that have to be there, ``asked`` how many pairs of each the night
    had to measure (None: as many as there are). ``invalid`` has a reason for queries whose result
    is not proven right, ``missing`` for queries with a repetition that did not run. ``baseline``
    has the accepted build by query: when it changes, drift and location are reset. ``groups`` has
    the canary group of a query. ``teaches``: whether later nights learn from this one.
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


@dataclass(frozen=True)
class QueryVerdict:
    """The verdict on one metric of one query in one night.

    ``ratio`` (candidate / baseline) has the 95 % interval ``lo``, ``hi``. For a suspect that was
    measured again, all three come from the fresh pairs, which were not chosen for being extreme.
    ``mde`` is the smallest slowdown this night could have seen, as a fraction (0.07 is 7 %).
    ``decides`` tells whether the verdict may turn the night red. Later nights learn from the rest:
    ``shift`` and ``spread`` of the first ``pairs`` (log), their ``noise``, and the sums of the
    drift.
    """

    night: str
    query: str
    metric: str
    value: Value
    reason: str
    mode: str
    gate_version: int
    decides: bool = True
    ratio: float | None = None
    lo: float | None = None
    hi: float | None = None
    mde: float | None = None
    shift: float | None = None
    spread: float | None = None
    pairs: int = 0
    fresh_pairs: int = 0
    noise: float | None = None
    drift_slower: float = 0.0
    drift_faster: float = 0.0
    baseline: str = ""

    @property
    def red(self) -> bool:
        """Whether this fails the night. A suspect of being faster does not, though not green."""
        return is_red(self.value, self.ratio, decides=self.decides)

    @property
    def key(self) -> QueryKey:
        """Query and metric."""
        return QueryKey(self.query, self.metric)
