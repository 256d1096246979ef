"""What the gate is given of a night, and what it says: data classes without behaviour of note."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

from nexmark.verdict.comparison import Value

SUITE = "suite"
"""The query under which the suite as a whole has its verdict."""


def possible(value: float | None) -> bool:
    """Tell whether a number can be a measurement: finite and above zero."""
    return value is not None and math.isfinite(value) and value > 0


@dataclass(frozen=True)
class Pair:
    """One repetition of each arm, adjacent in time; None where an arm is not there."""

    number: int
    candidate: float | None
    baseline: float | None

    @property
    def complete(self) -> bool:
        """Whether both arms were measured (possible or not)."""
        return self.candidate is not None and self.baseline is not None

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

    ``pairs`` are the first ones, ``fresh`` those of the confirmation: they are read only when the
    gate suspects the query. ``basis`` is what the figures are of, where there is a choice (the
    steady state, the whole application): those of different bases are never compared.
    """

    query: str
    metric: str
    pairs: tuple[Pair, ...]
    fresh: tuple[Pair, ...] = ()
    basis: str = ""


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


@dataclass(frozen=True)
class Night:
    """All of a night that the gate may know.

    ``expected`` names queries that have to be there, ``asked`` how many pairs of each (None: as
    many as there are). ``invalid`` and ``missing`` have a reason for queries whose result is not
    proven right or that did not run. ``baseline`` names the accepted build by query: drift and
    location start anew where it changes. ``groups`` has the canary group of a query.
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


@dataclass(frozen=True)
class QueryVerdict:
    """The verdict on one metric of one query in one night.

    ``ratio`` (candidate / baseline) and its 95 % interval ``lo``, ``hi`` are those of the fresh
    pairs where a suspicion was looked into: they were not chosen for being extreme. ``mde`` is the
    smallest slowdown this night could have seen, as a fraction (0.07 is 7 %). ``decides`` tells
    whether the verdict may turn the night red. The rest is what later nights learn from: ``shift``
    and ``spread`` of the first ``pairs`` (log), their ``noise``, and the sums of the drift.
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
        if self.value is Value.SUSPECT:
            return self.decides and (self.ratio is None or self.ratio > 1)
        return self.decides and self.value in (Value.REGRESSION, Value.INVALID, Value.MISSING)


__all__ = ["SUITE", "Canary", "Measured", "Night", "Pair", "QueryVerdict", "possible"]
