"""Explain from the pairs of a query why it changed: the kind of change, confs, plan and parts."""

import re
from collections.abc import Iterable, Sequence, Set
from statistics import mean

from nexmark.attribution.differences import conf_differences, plan_change, usual
from nexmark.attribution.explained import (
    Attribution,
    ChangeKind,
    CostChange,
    Observed,
    Plan,
    PlanChange,
)
from nexmark.attribution.ranking import Pairs, comparable, rank, ratio_of
from nexmark.model import Basis, Value, common_basis

CPU_CHANGE = 0.02
"""A change of CPU time is real without the gate if its whole interval is beyond this (2 %)."""
WALL_CHANGE = 0.05
"""The same bound for wall-clock time (5 %)."""
MIN_PAIRS = 5
"""With fewer pairs the interval is not of 95 %, so only the gate decides.

Of three pairs without a real change, all point in one direction 1 time in 4.
"""
_SAME = frozenset({Value.OK})
_CHANGED = frozenset({Value.REGRESSION, Value.SUSPECT, Value.FASTER})
_WALL_CHANGED = frozenset({Value.WATCH, Value.FASTER})
_PARTITIONS = re.compile(r"(numPartitions = |partitioning\(.*, )\d+")


def _side(
    change: CostChange | None, verdict: Value | None, pairs: int, changed: Set[Value], bound: float
) -> int:
    """Return 1 if the candidate needs more, -1 if it needs less, 0 if neither is sure.

    Args:
        change: The ratio of the arms; None where it is not known.
        verdict: The gate's verdict on the metric, which comes first; None where it gave none.
        pairs: How many pairs the ratio is from.
        changed: The verdicts that say that the metric changed.
        bound: Without a verdict, the whole interval has to be beyond this change (a fraction).
    """
    if change is None or verdict in _SAME:
        return 0
    if verdict in changed:
        return 1 if change.ratio > 1 else -1
    if pairs < MIN_PAIRS or change.lo is None or change.hi is None:
        return 0
    if change.lo > 1 + bound:
        return 1
    return -1 if change.hi < 1 / (1 + bound) else 0


def kind_of(cpu: int, wall: int, plan_changed: bool, plans_known: bool = True) -> ChangeKind:
    """Return the kind of a change.

    ``cpu`` and ``wall`` are 1 where the candidate needs more of that time, -1 for less, else 0.
    ``plans_known``: the plans of both arms are known.
    """
    if cpu and not plans_known:
        return ChangeKind.SLOWER_PLAN_NOT_KNOWN if cpu > 0 else ChangeKind.FASTER_PLAN_NOT_KNOWN
    if cpu > 0:
        return ChangeKind.SLOWER_PLAN_CHANGED if plan_changed else ChangeKind.SLOWER
    if cpu < 0:
        return ChangeKind.FASTER_PLAN_CHANGED if plan_changed else ChangeKind.FASTER
    if wall > 0:
        return ChangeKind.WAITING
    if plan_changed:
        return ChangeKind.PLAN_CHANGED
    return ChangeKind.WAITING_LESS if wall else ChangeKind.NOTHING


def usual_plan(arm: Iterable[Observed]) -> Plan | None:
    """Return the plan that most repetitions of an arm had."""
    return usual(repetition.plan for repetition in arm)


def attribute(
    query: str,
    candidate: Sequence[Observed],
    baseline: Sequence[Observed],
    *,
    stated: CostChange | None = None,
    verdict: Value | None = None,
    wall_verdict: Value | None = None,
    paired: bool = True,
) -> Attribution | None:
    """Return the explanation of a change from the repetitions of both arms; None without a pair.

    Two repetitions are a pair if they have the same stage and number. The pairs that were measured
    on the common basis of all repetitions are compared, as the gate compares them. If there is none
    of these, only a stated ratio is explained, by confs and plans.

    Args:
        query: The query that changed.
        candidate: The repetitions of the candidate that count.
        baseline: The repetitions of the baseline that count.
        stated: The ratio that the gate gave; None: the ratio of the pairs.
        verdict: The gate's verdict on CPU time; None: the interval of the pairs decides.
        wall_verdict: The gate's verdict on wall-clock time; None as for ``verdict``.
        paired: Whether the baseline was measured in the same night.
    """
    every = _pairs(candidate, baseline)
    alike = _on_the_common_basis(every, [*candidate, *baseline])
    pairs = alike or (every if stated else [])
    if not pairs:
        return None
    ours, theirs = (list(arm) for arm in zip(*pairs, strict=True))
    cpu = stated or ratio_of(*([one.cpu_s_per_mevent for one in arm] for arm in (ours, theirs)))
    if cpu is None:
        return None
    wall = ratio_of([one.wall_s for one in ours], [one.wall_s for one in theirs])
    plans = usual_plan(candidate), usual_plan(baseline)
    change = plan_change(*plans)
    compared = comparable(alike)
    count = len(pairs)
    cpu_side = _side(cpu, verdict, count, _CHANGED, CPU_CHANGE)
    wall_side = _side(wall, wall_verdict, count, _WALL_CHANGED, WALL_CHANGE)
    parts, waits = rank(compared, changed=cpu_side != 0)
    used = compared or pairs
    basis = " against ".join(dict.fromkeys((_bases(ours), _bases(theirs))))
    return Attribution(
        query=query,
        kind=kind_of(cpu_side, wall_side, change.changed, None not in plans),
        cpu=cpu,
        wall=wall,
        candidate=mean(ours.cpu_s_per_mevent for ours, _ in used),
        baseline=mean(theirs.cpu_s_per_mevent for _, theirs in used),
        basis=basis,
        pairs=len(used),
        paired=paired,
        confs=conf_differences([one.confs for one in candidate], [one.confs for one in baseline]),
        plan=change,
        parts=parts,
        waits=waits,
        notes=(
            *_left_out(every, alike, basis),
            *_unread(alike, compared),
            *_unlike(ours[0], theirs[0], plans, change),
        ),
    )


def _pairs(candidate: Sequence[Observed], baseline: Sequence[Observed]) -> Pairs:
    """Return the repetitions of both arms that have the same stage and number."""
    partners = {(one.stage, one.number): one for one in baseline}
    return [
        (one, partners[key]) for one in candidate if (key := (one.stage, one.number)) in partners
    ]


def _on_the_common_basis(pairs: Pairs, repetitions: Iterable[Observed]) -> Pairs:
    """Return the pairs whose repetitions both have the basis on which all are compared."""
    steady = (one.cpu_s_per_mevent if one.basis == Basis.STEADY else None for one in repetitions)
    basis = common_basis(steady)
    return [pair for pair in pairs if all(one.basis == basis for one in pair)]


def _bases(arm: Iterable[Observed]) -> str:
    """Return the names of the bases on which the repetitions of an arm were measured."""
    return " and ".join(dict.fromkeys(one.basis for one in arm))


def _left_out(every: Pairs, alike: Pairs, basis: str) -> list[str]:
    """Return a note on the pairs that are not on the common basis, if there are any."""
    if not alike:
        return [f"operators cannot be compared: no pair was measured on one basis ({basis})"]
    if mixed := len(every) - len(alike):
        return [f"{mixed} pairs were left out: not both were measured on {basis}"]
    return []


def _unread(pairs: Pairs, compared: Pairs) -> list[str]:
    """Return a note on the pairs whose operators are not known, if there are any."""
    if len(compared) == len(pairs):
        return []
    problems = [one.problem for pair in pairs for one in pair if one.problem]
    why = problems[0] if problems else "another plan than the others, or no event log was read"
    return [f"operators of {len(compared)} of {len(pairs)} pairs are known: {why}"]


def _unlike(
    ours: Observed, theirs: Observed, plans: tuple[Plan | None, Plan | None], change: PlanChange
) -> list[str]:
    """Return a note on what the arms did not have in common, beside their confs and operators.

    Args:
        ours: A repetition of the candidate.
        theirs: A repetition of the baseline.
        plans: The usual plan of the candidate, and the usual plan of the baseline.
        change: The difference of these plans.
    """
    if ours.formulation != theirs.formulation:
        return [f"the arms ran other formulations: {ours.formulation} and {theirs.formulation}"]
    candidate, baseline = plans
    if candidate is None or baseline is None:
        return ["the plan of an arm is not known"]
    texts = [_PARTITIONS.sub(r"\1", plan.text) for plan in (candidate, baseline)]
    if change.changed or texts[0] == texts[1]:
        return []
    return ["the operators are the same, their expressions differ: see the diff"]
