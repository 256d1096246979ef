"""Compare a night with the accepted baseline, query by query.

The figure is the median of ``cpu_s_per_mevent`` over the repetitions, on one basis: the steady
state where every repetition of both sides has it, else the whole application. A wrong, missing or
incomplete query is not green, however fast the others were.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import median
from types import MappingProxyType
from typing import TypeAlias

from nexmark.config import Gate
from nexmark.model import Basis, Mode, Value
from nexmark.verdict.measured_night import BoundsFigures, QueryVerdict, possible


@dataclass(frozen=True)
class BoundsRepetition:
    """CPU-seconds per million events of one repetition, on each ``Basis`` it was measured on."""

    number: int
    steady: float | None
    application: float | None

    def on(self, basis: str) -> float | None:
        """Return the figure on a basis."""
        return self.steady if basis == Basis.STEADY else self.application


@dataclass(frozen=True)
class BoundsArm:
    """The repetitions of one query in one run; ``shape``: only runs with the same are compared."""

    run: str
    shape: str
    repetitions: tuple[BoundsRepetition, ...]


def judge(
    expected_queries: Sequence[str],
    candidate: Mapping[str, BoundsArm],
    baseline: Mapping[str, BoundsArm],
    invalid: Mapping[str, str],
    gate: Gate,
    *,
    workload: str,
    repetitions: int = 1,
    missing: Mapping[str, str] = MappingProxyType({}),
    source_bound: Mapping[str, str] = MappingProxyType({}),
) -> list[QueryVerdict]:
    """Return one verdict per query, those expected first and in their order.

    ``invalid`` has the reason for every query whose result is not proven right, ``missing`` why
    repetitions are not there, where that is known, ``source_bound`` why figures may be the
    source's; ``repetitions`` is how many were asked for.
    """
    others = {*candidate, *invalid}.difference(expected_queries)
    verdicts = []
    for query in (*expected_queries, *sorted(others)):
        ours, theirs = candidate.get(query), baseline.get(query)
        figures = BoundsFigures(
            gate.bound(query, workload),
            baseline_run=theirs.run if theirs else None,
            repetitions=len(ours.repetitions) if ours else 0,
        )
        ratio = None
        if query in invalid:
            value, reason = Value.INVALID, invalid[query]
        else:
            asked, why = max(repetitions, 1), missing.get(query)
            value, reason, ratio, figures = _judge_query(figures, ours, theirs, asked, why)
            if query in source_bound and value is not Value.MISSING:
                value, reason = Value.SOURCE_BOUND, source_bound[query]
        said = (query, gate.metric, value, reason, Mode.BOUNDS, gate.version)
        verdicts.append(QueryVerdict("", *said, ratio=ratio, figures=figures))
    return verdicts


_Judged: TypeAlias = tuple[Value, str, float | None, BoundsFigures]
"""Value, reason, ratio, and what they rest on."""


def _judge_query(
    figures: BoundsFigures,
    candidate: BoundsArm | None,
    baseline: BoundsArm | None,
    asked: int,
    missing: str | None,
) -> _Judged:
    done = figures.repetitions
    if candidate is None or done < asked:
        reason = f"{done} of {asked} repetitions measured" if done else "not measured"
        return Value.MISSING, reason + (f": {missing}" if missing else ""), None, figures
    impossible = _impossible(candidate) or (_impossible(baseline) if baseline else None)
    if impossible:
        return Value.INVALID, impossible, None, figures
    if baseline is None or not baseline.repetitions:
        reason = "no accepted baseline"
    elif baseline.shape != candidate.shape:
        reason = f"baseline {baseline.run} was measured on another workload or cluster"
    else:
        return _compare(figures, candidate, baseline)
    return Value.CALIBRATING, reason, None, replace(figures, baseline_run=None)


def _compare(figures: BoundsFigures, candidate: BoundsArm, baseline: BoundsArm) -> _Judged:
    for basis in Basis:
        ours, theirs = _figures(candidate, basis), _figures(baseline, basis)
        if ours and theirs:
            break
    else:
        reason = f"no basis in common with baseline {baseline.run}: steady state and application"
        return Value.INVALID, reason, None, figures
    new, old, bound = median(ours), median(theirs), figures.bound
    ratio = new / old
    if ratio > bound:
        value, side = Value.REGRESSION, f"above the bound of {bound:g}"
    elif ratio < 1 / bound:
        value, side = Value.FASTER, f"below 1/{bound:g}"
    else:
        value, side = Value.OK, f"within {bound:g}"
    reason = f"{old:.4g} -> {new:.4g} CPU-s per million events ({basis}): {ratio:.3f}, {side}"
    return value, reason, ratio, replace(figures, basis=basis, candidate=new, baseline=old)


def _figures(arm: BoundsArm, basis: str) -> list[float]:
    """Return the figures on a basis, none unless every repetition has one."""
    figures = [repetition.on(basis) for repetition in arm.repetitions]
    known = [figure for figure in figures if figure is not None]
    return known if len(known) == len(figures) else []


def _impossible(arm: BoundsArm) -> str | None:
    """Return why the numbers of an arm cannot be CPU times, None when they can."""
    for repetition in arm.repetitions:
        for basis in Basis:
            figure = repetition.on(basis)
            if figure is not None and not possible(figure):
                place = f"repetition {repetition.number} of {arm.run}"
                return f"{place}: {figure} CPU-s per million events is not a measurement"
    return None
