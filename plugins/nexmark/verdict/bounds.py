"""Compare a night with the accepted baseline, query by query.

The figure is the median of ``cpu_s_per_mevent`` over the repetitions, on one basis: the steady
state where every repetition of both sides has it, else the whole application. A wrong, missing or
incomplete query is not green, however fast the others were.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import median
from types import MappingProxyType

from nexmark.config import Gate
from nexmark.model import CPU, Basis, Mode, Value, common_basis
from nexmark.verdict.measured_night import possible
from nexmark.verdict.verdict import Verdict


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
    night: str = "",
    repetitions: int = 1,
    missing: Mapping[str, str] = MappingProxyType({}),
    source_bound: Mapping[str, str] = MappingProxyType({}),
) -> list[Verdict]:
    """Return one verdict per query, those expected first and in their order.

    Args:
        expected_queries: The queries that the night had to measure.
        candidate: The repetitions of the night by query.
        baseline: The repetitions of the accepted run by query.
        invalid: The reason for every query whose result is not proven right.
        gate: The gate.
        workload: The name of the workload, which may have a bound of its own.
        night: The name of the night.
        repetitions: How many repetitions were asked for.
        missing: Why repetitions are not there, by query, where that is known.
        source_bound: Why figures may be the source's, by query.
    """
    others = {*candidate, *invalid}.difference(expected_queries)
    verdicts = []
    for query in (*expected_queries, *sorted(others)):
        ours, theirs = candidate.get(query), baseline.get(query)
        bound = gate.bound(query, workload)
        verdict = Verdict(
            night=night,
            query=query,
            metric=CPU,
            value=Value.INVALID,
            reason=invalid.get(query, ""),
            mode=Mode.BOUNDS,
            gate_version=gate.version,
            repetitions=len(ours.repetitions) if ours else 0,
            bound=bound,
            baseline_run=theirs.run if theirs else None,
        )
        if query not in invalid:
            asked = max(repetitions, 1)
            verdict = _judge_query(verdict, ours, theirs, bound, asked, missing.get(query))
            if query in source_bound and verdict.value is not Value.MISSING:
                reason = source_bound[query]
                verdict = replace(verdict, value=Value.SOURCE_BOUND, reason=reason)
        verdicts.append(verdict)
    return verdicts


def _judge_query(
    verdict: Verdict,
    candidate: BoundsArm | None,
    baseline: BoundsArm | None,
    bound: float,
    asked: int,
    missing: str | None,
) -> Verdict:
    """Return the verdict on a query whose result is right.

    Args:
        verdict: what is known before: query, bound, accepted run, number of repetitions.
        candidate: the repetitions of the night, None where there are none.
        baseline: the repetitions of the accepted run, None where no run is accepted.
        bound: the ratio above which the query is a regression.
        asked: the number of repetitions that the night had to measure.
        missing: why repetitions are not there, where that is known.
    """
    done = verdict.repetitions
    if candidate is None or done < asked:
        reason = f"{done} of {asked} repetitions measured" if done else "not measured"
        reason += f": {missing}" if missing else ""
        return replace(verdict, value=Value.MISSING, reason=reason)
    impossible = _impossible(candidate) or (_impossible(baseline) if baseline else None)
    if impossible:
        return replace(verdict, value=Value.INVALID, reason=impossible)
    if baseline is None or not baseline.repetitions:
        reason = "no accepted baseline"
    elif baseline.shape != candidate.shape:
        reason = f"baseline {baseline.run} was measured on another workload or cluster"
    else:
        return _compare(verdict, bound, candidate, baseline)
    return replace(verdict, value=Value.NO_BASELINE, reason=reason, baseline_run=None)


def _compare(verdict: Verdict, bound: float, candidate: BoundsArm, baseline: BoundsArm) -> Verdict:
    """Return the verdict on a query by the ratio of the medians of both runs.

    Args:
        verdict: what is known before.
        bound: the ratio above which the query is a regression.
        candidate: the repetitions of the night.
        baseline: the repetitions of the accepted run.
    """
    repetitions = (*candidate.repetitions, *baseline.repetitions)
    basis = common_basis(repetition.steady for repetition in repetitions)
    ours, theirs = _figures(candidate, basis), _figures(baseline, basis)
    if not (ours and theirs):
        reason = f"no basis in common with baseline {baseline.run}: steady state and application"
        return replace(verdict, value=Value.INVALID, reason=reason)
    new, old = median(ours), median(theirs)
    ratio = new / old
    if ratio > bound:
        value, side = Value.REGRESSION, f"above the bound of {bound:g}"
    elif ratio < 1 / bound:
        value, side = Value.FASTER, f"below 1/{bound:g}"
    else:
        value, side = Value.OK, f"within {bound:g}"
    reason = f"{old:.4g} -> {new:.4g} CPU-s per million events ({basis}): {ratio:.3f}, {side}"
    verdict = replace(verdict, basis=basis, candidate=new, baseline=old)
    return replace(verdict, value=value, reason=reason, ratio=ratio)


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
