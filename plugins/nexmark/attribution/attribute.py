"""From the pairs of a query to why it changed: its sort, its confs, its plan, its parts."""

import re
from collections import Counter
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
from nexmark.model import Value

CPU_CHANGE = 0.02
"""Without a decision of the gate, the whole interval has to be beyond this."""
WALL_CHANGE = 0.05
MIN_PAIRS = 5
"""With fewer pairs the interval is not 95 %: three pairs without a change agree 1 time in 4."""
_SAME = frozenset({Value.OK, Value.UNCONFIRMED})
_CHANGED = frozenset({Value.REGRESSION, Value.SUSPECT, Value.FASTER})
_WALL_CHANGED = frozenset({Value.WATCH, Value.FASTER})
_PARTITIONS = re.compile(r"(numPartitions = |partitioning\(.*, )\d+")


def _side(
    change: CostChange | None, verdict: Value | None, pairs: int, changed: Set[Value], bound: float
) -> int:
    """Return 1 for more, -1 for less, 0 for neither; a decision of the gate comes first."""
    if change is None or verdict in _SAME:
        return 0
    if verdict in changed:
        return 1 if change.ratio > 1 else -1
    if pairs < MIN_PAIRS or change.lo is None or change.hi is None:
        return 0
    if change.lo > 1 + bound:
        return 1
    return -1 if change.hi < 1 / (1 + bound) else 0


def kind_of(cpu: int, wall: int, plan_changed: bool) -> ChangeKind:
    """Return the class of a change from its sides."""
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
    return usual(x.plan for x in arm)


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

    Two repetitions are a pair if they have the same stage and number. ``stated`` is the ratio that
    the gate gave with its ``verdict``; both override the ratio and the verdict of the pairs. If no
    pair is on one basis, only a stated ratio is explained, by confs and plans.
    """
    those = {(x.stage, x.number): x for x in baseline}
    every = [(x, those[key]) for x in candidate if (key := (x.stage, x.number)) in those]
    alike = _on_one_basis(every)
    pairs = alike or (every if stated else [])
    if not pairs:
        return None
    ours, theirs = (list(x) for x in zip(*pairs, strict=True))
    costs = [[x.cpu_s_per_mevent for x in arm] for arm in (ours, theirs)]
    cpu = stated or ratio_of(*costs)
    if cpu is None:
        return None
    wall = ratio_of([x.wall_s for x in ours], [x.wall_s for x in theirs])
    plans = usual_plan(candidate), usual_plan(baseline)
    change = plan_change(*plans)
    compared = comparable(alike)
    count = len(pairs)
    cpu_side = _side(cpu, verdict, count, _CHANGED, CPU_CHANGE)
    wall_side = _side(wall, wall_verdict, count, _WALL_CHANGED, WALL_CHANGE)
    parts, waits = rank(compared, changed=cpu_side != 0)
    used = compared or pairs
    basis = " against ".join(dict.fromkeys((ours[0].basis, theirs[0].basis)))
    if mixed := len(every) - len(pairs):
        notes = [f"{mixed} pairs were left out: not both were measured on {basis}"]
    elif alike:
        notes = []
    else:
        notes = [f"operators cannot be compared: measured {basis}"]
    return Attribution(
        query=query,
        kind=kind_of(cpu_side, wall_side, change.changed),
        cpu=cpu,
        wall=wall,
        candidate=mean(x.cpu_s_per_mevent for x, _ in used),
        baseline=mean(x.cpu_s_per_mevent for _, x in used),
        basis=basis,
        pairs=len(used),
        paired=paired,
        confs=conf_differences([x.confs for x in candidate], [x.confs for x in baseline]),
        plan=change,
        parts=parts,
        waits=waits,
        notes=(*notes, *_unread(alike, compared), *_unlike(ours[0], theirs[0], plans, change)),
    )


def _on_one_basis(pairs: Pairs) -> list[tuple[Observed, Observed]]:
    """Return the pairs whose repetitions both have the most frequent basis."""
    bases = Counter(ours.basis for ours, theirs in pairs if ours.basis == theirs.basis)
    usual = max(bases, key=lambda basis: bases[basis], default=None)
    return [pair for pair in pairs if {x.basis for x in pair} == {usual}]


def _unread(pairs: Pairs, compared: Pairs) -> list[str]:
    if len(compared) == len(pairs):
        return []
    problems = [x.problem for pair in pairs for x in pair if x.problem]
    why = problems[0] if problems else "another plan than the others, or no event log was read"
    return [f"operators of {len(compared)} of {len(pairs)} pairs are known: {why}"]


def _unlike(
    ours: Observed, theirs: Observed, plans: tuple[Plan | None, Plan | None], change: PlanChange
) -> list[str]:
    if ours.formulation != theirs.formulation:
        return [f"the arms ran other formulations: {ours.formulation} and {theirs.formulation}"]
    candidate, baseline = plans
    if candidate is None or baseline is None:
        return ["the plan of an arm is not known"]
    texts = [_PARTITIONS.sub(r"\1", plan.text) for plan in (candidate, baseline)]
    if change.changed or texts[0] == texts[1]:
        return []
    return ["the operators are the same, their expressions differ: see the diff"]
