"""From the pairs of a query to why it changed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from statistics import mean

from nexmark.attribution.changes import ratio_of
from nexmark.attribution.classes import cpu_side, kind_of, wall_side
from nexmark.attribution.differences import conf_differences, plan_change, same_expressions
from nexmark.attribution.explained import Attribution, Change, PlanChange
from nexmark.attribution.observed import Observed, Plan
from nexmark.attribution.ranking import comparable, rank
from nexmark.verdict import Value


def attribute(
    query: str,
    candidate: Sequence[Observed],
    baseline: Sequence[Observed],
    *,
    stated: Change | None = None,
    verdict: Value | None = None,
    wall_verdict: Value | None = None,
    paired: bool = True,
) -> Attribution | None:
    """Return why a query changed, from the repetitions of both arms; None without a pair.

    Pairs are those of the same stage and number. ``stated`` is the ratio that the gate gave with
    its ``verdict``; both go before what the pairs say by themselves.
    """
    pairs, mixed = _pairs(candidate, baseline)
    if not pairs:
        return None
    ours, theirs = (list(x) for x in zip(*pairs, strict=True))
    costs = [[x.cpu_s_per_mevent for x in arm] for arm in (ours, theirs)]
    cpu = stated or ratio_of(*costs)
    if cpu is None:
        return None
    wall = ratio_of([x.wall_s for x in ours], [x.wall_s for x in theirs])
    plans = _plan(ours), _plan(theirs)
    change = plan_change(*plans)
    compared = comparable(pairs)
    count = len(pairs)
    sides = cpu_side(cpu, verdict, count), wall_side(wall, wall_verdict, count)
    parts, waits = rank(compared, changed=sides[0] != 0)
    used = compared or pairs
    return Attribution(
        query=query,
        kind=kind_of(*sides, change.changed),
        cpu=cpu,
        wall=wall,
        candidate=mean(x.cpu_s_per_mevent for x, _ in used),
        baseline=mean(x.cpu_s_per_mevent for _, x in used),
        basis=ours[0].basis,
        pairs=len(used),
        paired=paired,
        confs=conf_differences(ours, theirs),
        plan=change,
        parts=parts,
        waits=waits,
        notes=(
            *_mixed(mixed, ours[0].basis),
            *_unread(pairs, compared),
            *_unlike(ours[0], theirs[0], plans, change),
        ),
    )


def _pairs(
    candidate: Iterable[Observed], baseline: Iterable[Observed]
) -> tuple[list[tuple[Observed, Observed]], int]:
    """Return the pairs on the basis that most have, and how many there are on another."""
    theirs = {(x.stage, x.number): x for x in baseline}
    pairs = [(x, theirs[key]) for x in candidate if (key := (x.stage, x.number)) in theirs]
    same = [pair for pair in pairs if pair[0].basis == pair[1].basis]
    if not same:
        return [], len(pairs)
    ((basis, _),) = Counter(x.basis for x, _ in same).most_common(1)
    kept = [pair for pair in same if pair[0].basis == basis]
    return kept, len(pairs) - len(kept)


def _plan(arm: Iterable[Observed]) -> Plan | None:
    """Return the plan that most repetitions of an arm had."""
    plans = [x.plan for x in arm if x.plan is not None]
    return Counter(plans).most_common(1)[0][0] if plans else None


def _mixed(count: int, basis: str) -> list[str]:
    return [f"{count} pairs were left out: not both were measured on {basis}"] if count else []


def _unread(
    pairs: Sequence[tuple[Observed, Observed]], compared: Sequence[tuple[Observed, Observed]]
) -> list[str]:
    if len(compared) == len(pairs):
        return []
    problems = [x.problem for pair in pairs for x in pair if x.problem]
    why = problems[0] if problems else "another plan than the others, or no event log was read"
    return [f"operators of {len(compared)} of {len(pairs)} pairs are known: {why}"]


def _unlike(
    ours: Observed,
    theirs: Observed,
    plans: tuple[Plan | None, Plan | None],
    change: PlanChange,
) -> list[str]:
    if ours.formulation != theirs.formulation:
        return [f"the arms ran other formulations: {ours.formulation} and {theirs.formulation}"]
    candidate, baseline = plans
    if candidate is None or baseline is None:
        return ["the plan of an arm is not known"]
    if change.changed or same_expressions(candidate, baseline):
        return []
    return ["the operators are the same, their expressions differ: see the diff"]


__all__ = ["attribute"]
