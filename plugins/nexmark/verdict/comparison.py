"""Compare a night with the accepted baseline, query by query.

The figure compared is the median over the repetitions of ``cpu_s_per_mevent``, the executors'
CPU-seconds per million events. It is taken on one basis for both sides: the steady state where
every repetition of both has it, else the whole application. Figures of different bases are never
compared. A night is only ever as good as its worst query: a wrong, missing or incomplete one is
not green, however fast the others were.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from statistics import median
from types import MappingProxyType
from typing import Protocol

BASES = ("steady", "application")


class Value(StrEnum):
    """What the gate says of one query."""

    OK = "OK"
    """Within the bound of the baseline."""
    FASTER = "FASTER"
    """Better than the baseline by more than the bound (the same test, the other way round)."""
    REGRESSION = "REGRESSION"
    """Worse than the baseline by more than the bound. Fails the night."""
    INVALID = "INVALID"
    """The result is wrong, or the numbers give no ground for a verdict. Fails the night."""
    MISSING = "MISSING"
    """Not measured, or not as often as asked. Fails the night."""
    CALIBRATING = "CALIBRATING"
    """Right and measured, but there is nothing yet to compare with. Passes, and says so."""
    SUSPECT = "SUSPECT"
    """Looks changed, and the confirmation did not run or is not complete. Never green."""
    UNCONFIRMED = "UNCONFIRMED"
    """Looked changed, and the fresh pairs of the same night did not confirm it."""
    WATCH = "WATCH"
    """A slow drift, or a metric that informs has changed: for people to look at, not red."""


FAILING = frozenset({Value.REGRESSION, Value.INVALID, Value.MISSING})


class Gate(Protocol):
    """The user's settings of the gate (``include/conf/gate.yaml``)."""

    @property
    def version(self) -> int:
        """Goes into every verdict."""

    @property
    def metric(self) -> str:
        """What is compared."""

    def bound(self, query: str, workload: str) -> float:
        """Return the ratio, above 1, from which on a change counts."""


@dataclass(frozen=True)
class Repetition:
    """CPU-seconds per million events of one repetition, on each basis it was measured on."""

    number: int
    steady: float | None
    application: float | None

    def on(self, basis: str) -> float | None:
        """Return the figure on a basis."""
        return self.steady if basis == "steady" else self.application


@dataclass(frozen=True)
class Arm:
    """The repetitions of one query in one run.

    ``shape`` names everything that must be the same for two runs to be compared (workload,
    cluster).
    """

    run: str
    shape: str
    repetitions: tuple[Repetition, ...]


@dataclass(frozen=True)
class Verdict:
    """The verdict on one query.

    ``candidate`` and ``baseline`` are the medians in the unit of ``metric`` on ``basis``, ``ratio``
    is candidate / baseline; all None where they were not compared. ``reason`` is one line.
    """

    query: str
    value: Value
    metric: str
    reason: str
    gate_version: int
    bound: float
    ratio: float | None = None
    candidate: float | None = None
    baseline: float | None = None
    basis: str | None = None
    baseline_run: str | None = None
    repetitions: int = 0


def judge(
    expected_queries: Sequence[str],
    candidate: Mapping[str, Arm],
    baseline: Mapping[str, Arm],
    invalid: Mapping[str, str],
    gate: Gate,
    *,
    workload: str,
    repetitions: int = 1,
    missing: Mapping[str, str] = MappingProxyType({}),
) -> list[Verdict]:
    """Return one verdict per query, in the order expected.

    ``candidate`` and ``baseline`` are by query; ``invalid`` has the reason for every query whose
    result is not proven right, ``missing`` the reason where one is known for repetitions that are
    not there; ``repetitions`` is how many were asked for. A query that was not expected but is
    there is judged too, after the others.
    """
    others = {*candidate, *invalid}.difference(expected_queries)
    return [
        _judge_query(
            query,
            candidate.get(query),
            baseline.get(query),
            invalid.get(query),
            _Maker(query, gate, workload),
            max(repetitions, 1),
            missing.get(query),
        )
        for query in (*expected_queries, *sorted(others))
    ]


def night_failed(verdicts: Iterable[Verdict]) -> bool:
    """Tell whether the night is red; a night without any verdict is."""
    values = [verdict.value for verdict in verdicts]
    return not values or any(value in FAILING for value in values)


class _Maker:
    """Makes the verdict of one query under one gate."""

    def __init__(self, query: str, gate: Gate, workload: str) -> None:
        self._query = query
        self._gate = gate
        self.bound = gate.bound(query, workload)

    def __call__(
        self,
        value: Value,
        reason: str,
        *,
        numbers: tuple[float, float] | None = None,
        basis: str | None = None,
        baseline: Arm | None = None,
        candidate: Arm | None = None,
    ) -> Verdict:
        return Verdict(
            query=self._query,
            value=value,
            metric=self._gate.metric,
            reason=reason,
            gate_version=self._gate.version,
            bound=self.bound,
            ratio=numbers[0] / numbers[1] if numbers else None,
            candidate=numbers[0] if numbers else None,
            baseline=numbers[1] if numbers else None,
            basis=basis,
            baseline_run=baseline.run if baseline else None,
            repetitions=len(candidate.repetitions) if candidate else 0,
        )


def _judge_query(
    query: str,
    candidate: Arm | None,
    baseline: Arm | None,
    invalid: str | None,
    make: _Maker,
    repetitions: int,
    missing: str | None,
) -> Verdict:
    if invalid is not None:
        return make(Value.INVALID, invalid, candidate=candidate, baseline=baseline)
    done = len(candidate.repetitions) if candidate else 0
    if candidate is None or done < repetitions:
        reason = f"{done} of {repetitions} repetitions measured" if done else "not measured"
        reason += f": {missing}" if missing else ""
        return make(Value.MISSING, reason, candidate=candidate, baseline=baseline)
    impossible = _impossible(candidate) or (_impossible(baseline) if baseline else None)
    if impossible:
        return make(Value.INVALID, impossible, candidate=candidate, baseline=baseline)
    if baseline is None or not baseline.repetitions:
        return make(Value.CALIBRATING, "no accepted baseline", candidate=candidate)
    if baseline.shape != candidate.shape:
        reason = f"baseline {baseline.run} was measured on another workload or cluster"
        return make(Value.CALIBRATING, reason, candidate=candidate)
    return _compare(candidate, baseline, make)


def _compare(candidate: Arm, baseline: Arm, make: _Maker) -> Verdict:
    for basis in BASES:
        ours, theirs = _figures(candidate, basis), _figures(baseline, basis)
        if ours and theirs:
            break
    else:
        reason = f"no basis in common with baseline {baseline.run}: steady state and application"
        return make(Value.INVALID, reason, candidate=candidate, baseline=baseline)
    new, old = median(ours), median(theirs)
    ratio = new / old
    if ratio > make.bound:
        value, side = Value.REGRESSION, f"above the bound of {make.bound:g}"
    elif ratio < 1 / make.bound:
        value, side = Value.FASTER, f"below 1/{make.bound:g}"
    else:
        value, side = Value.OK, f"within {make.bound:g}"
    reason = f"{old:.4g} -> {new:.4g} CPU-s per million events ({basis}): {ratio:.3f}, {side}"
    return make(
        value, reason, numbers=(new, old), basis=basis, baseline=baseline, candidate=candidate
    )


def _figures(arm: Arm, basis: str) -> list[float]:
    """Return the figures on a basis, none unless every repetition has one."""
    figures = [repetition.on(basis) for repetition in arm.repetitions]
    known = [figure for figure in figures if figure is not None]
    return known if len(known) == len(figures) else []


def _impossible(arm: Arm) -> str | None:
    """Return why the numbers of an arm cannot be CPU times, None when they can."""
    for repetition in arm.repetitions:
        for basis in BASES:
            figure = repetition.on(basis)
            if figure is not None and not (math.isfinite(figure) and figure > 0):
                place = f"repetition {repetition.number} of {arm.run}"
                return f"{place}: {figure} CPU-s per million events is no measurement"
    return None
