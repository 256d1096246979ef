"""Compare a night with the accepted baseline, query by query.

The figure is the median of ``cpu_s_per_mevent`` over the repetitions, on one basis: the steady
state where every repetition of both sides has it, else the whole application. A wrong, missing or
incomplete query is not green, however fast the others were.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import median
from types import MappingProxyType

from nexmark.config import Gate
from nexmark.model import Basis, Value, is_red


@dataclass(frozen=True)
class BoundsRepetition:
    """CPU-seconds per million events of one repetition, on each basis it was measured on."""

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


@dataclass(frozen=True)
class Verdict:
    """The verdict on one query; ``reason`` is one line.

    ``candidate`` and ``baseline`` are medians in the unit of ``metric`` on ``basis``; None, as
    their ``ratio``, where they were not compared.
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

    @property
    def red(self) -> bool:
        """Whether this fails the night."""
        return is_red(self.value, self.ratio)


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
) -> list[Verdict]:
    """Return one verdict per query, those expected first and in their order.

    ``invalid`` has the reason for every query whose result is not proven right, ``missing`` why
    repetitions are not there, where that is known, ``source_bound`` why figures may be the
    source's; ``repetitions`` is how many were asked for.
    """
    others = {*candidate, *invalid}.difference(expected_queries)
    verdicts = []
    for query in (*expected_queries, *sorted(others)):
        ours, theirs = candidate.get(query), baseline.get(query)
        blank = Verdict(
            *(query, Value.OK, gate.metric, "", gate.version, gate.bound(query, workload)),
            baseline_run=theirs.run if theirs else None,
            repetitions=len(ours.repetitions) if ours else 0,
        )
        if query in invalid:
            verdicts.append(replace(blank, value=Value.INVALID, reason=invalid[query]))
        else:
            made = _judge_query(blank, ours, theirs, max(repetitions, 1), missing.get(query))
            if query in source_bound and made.value is not Value.MISSING:
                made = replace(made, value=Value.SOURCE_BOUND, reason=source_bound[query])
            verdicts.append(made)
    return verdicts


def _judge_query(
    blank: Verdict,
    candidate: BoundsArm | None,
    baseline: BoundsArm | None,
    asked: int,
    missing: str | None,
) -> Verdict:
    done = blank.repetitions
    if candidate is None or done < asked:
        reason = f"{done} of {asked} repetitions measured" if done else "not measured"
        reason += f": {missing}" if missing else ""
        return replace(blank, value=Value.MISSING, reason=reason)
    impossible = _impossible(candidate) or (_impossible(baseline) if baseline else None)
    if impossible:
        return replace(blank, value=Value.INVALID, reason=impossible)
    if baseline is None or not baseline.repetitions:
        reason = "no accepted baseline"
    elif baseline.shape != candidate.shape:
        reason = f"baseline {baseline.run} was measured on another workload or cluster"
    else:
        return _compare(blank, candidate, baseline)
    return replace(blank, value=Value.CALIBRATING, reason=reason, baseline_run=None)


def _compare(blank: Verdict, candidate: BoundsArm, baseline: BoundsArm) -> Verdict:
    for basis in Basis:
        ours, theirs = _figures(candidate, basis), _figures(baseline, basis)
        if ours and theirs:
            break
    else:
        reason = f"no basis in common with baseline {baseline.run}: steady state and application"
        return replace(blank, value=Value.INVALID, reason=reason)
    new, old = median(ours), median(theirs)
    ratio = new / old
    if ratio > blank.bound:
        value, side = Value.REGRESSION, f"above the bound of {blank.bound:g}"
    elif ratio < 1 / blank.bound:
        value, side = Value.FASTER, f"below 1/{blank.bound:g}"
    else:
        value, side = Value.OK, f"within {blank.bound:g}"
    reason = f"{old:.4g} -> {new:.4g} CPU-s per million events ({basis}): {ratio:.3f}, {side}"
    said = replace(blank, value=value, reason=reason, basis=basis)
    return replace(said, ratio=ratio, candidate=new, baseline=old)


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
            if figure is not None and not (math.isfinite(figure) and figure > 0):
                place = f"repetition {repetition.number} of {arm.run}"
                return f"{place}: {figure} CPU-s per million events is not a measurement"
    return None
