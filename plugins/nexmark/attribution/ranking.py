"""Rank the parts of a query by their contribution to its change, the largest first.

Operators are aligned by their names in the order of the printed plan, the longest common runs
first; stages follow their operators. The other parts have the same names in both arms.
"""

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from statistics import mean, median

import numpy as np

from nexmark.attribution.explained import CostChange, MetricChange, Observed, PartChange, Wait
from nexmark.measure.executed_plan import OPERATOR, PHASE, STAGE, Part
from nexmark.verdict.location import hodges_lehmann, interval

HARDLY = 0.005
"""A smaller change of the query has no shares."""
_TIME, _CPU, _SPENT = "time of tasks [s]", "CPU of tasks [s]", "time [s]"
_WHOLE = "triggerExecution"
_ESTIMATED = frozenset({OPERATOR, STAGE})
Pairs = Sequence[tuple[Observed, Observed]]


def ratio_of(candidate: Sequence[float], baseline: Sequence[float]) -> CostChange | None:
    """Return the ratio of pairs (Hodges-Lehmann on logs); None if no pair has two figures."""
    logs = [math.log(x / y) for x, y in zip(candidate, baseline, strict=True) if x > 0 and y > 0]
    if not logs:
        return None
    ratios = np.asarray(logs, dtype=np.float64)
    lo, hi = interval(ratios)
    return CostChange(math.exp(float(hodges_lehmann(ratios))), math.exp(lo), math.exp(hi))


def difference_of(ours: Sequence[float], theirs: Sequence[float]) -> tuple[float, float, float]:
    """Return the mean difference of pairs, and its interval."""
    differences = np.asarray(ours, dtype=np.float64) - np.asarray(theirs, dtype=np.float64)
    return float(differences.mean()), *interval(differences)


@dataclass(frozen=True)
class Aligned:
    """A part of each arm; None where an arm has none that matches."""

    candidate: Part | None
    baseline: Part | None

    @property
    def part(self) -> Part:
        """The candidate's part if it has one, else the baseline's."""
        found = self.candidate or self.baseline
        assert found is not None
        return found

    @property
    def match(self) -> str:
        """``both``, ``added`` or ``removed``."""
        if self.baseline is None:
            return "added"
        return "removed" if self.candidate is None else "both"


def names_of(parts: Sequence[Part]) -> list[str]:
    """Return the names of the operators among parts, in order."""
    return [part.name for part in parts if part.kind == OPERATOR]


def align(candidate: Sequence[Part], baseline: Sequence[Part]) -> list[Aligned]:
    """Return all parts of both arms, each once; operators first, in the order of the plans."""
    found = _operators(candidate, baseline)
    stages = _stages(found)
    theirs = {_key(x): x for x in baseline if x.kind != OPERATOR}
    for part in (x for x in candidate if x.kind != OPERATOR):
        key = (STAGE, stages.get(part.stage)) if part.kind == STAGE else _key(part)
        found.append(Aligned(part, theirs.pop(key, None)))
    return found + [Aligned(None, part) for part in theirs.values()]


def _key(part: Part) -> tuple[str, str | int | None]:
    return (part.kind, part.stage if part.kind == STAGE else part.name)


def _operators(candidate: Sequence[Part], baseline: Sequence[Part]) -> list[Aligned]:
    ours, theirs = ([x for x in parts if x.kind == OPERATOR] for parts in (candidate, baseline))
    matcher = SequenceMatcher(None, names_of(theirs), names_of(ours), autojunk=False)
    found: list[Aligned] = []
    for code, i1, i2, j1, j2 in matcher.get_opcodes():
        if code == "equal":
            found += map(Aligned, ours[j1:j2], theirs[i1:i2])
        else:
            found += [Aligned(None, x) for x in theirs[i1:i2]]
            found += [Aligned(x, None) for x in ours[j1:j2]]
    return found


def _stages(operators: Sequence[Aligned]) -> dict[int | None, int | None]:
    """Return the baseline's number of each stage of the candidate, by most of its operators."""
    votes: dict[int | None, Counter[int | None]] = {}
    for x in operators:
        if x.candidate and x.baseline:
            votes.setdefault(x.candidate.stage, Counter())[x.baseline.stage] += 1
    taken: dict[int | None, int | None] = {None: None}
    for number, counter in sorted(votes.items(), key=lambda x: -max(x[1].values())):
        free = [stage for stage, _ in counter.most_common() if stage not in taken.values()]
        if free:
            taken[number] = free[0]
    return taken


def comparable(pairs: Pairs) -> list[tuple[Observed, Observed]]:
    """Return the pairs that have parts and in which each arm ran its most frequent plan."""
    having = [pair for pair in pairs if all(one.parts for one in pair)]
    if not having:
        return []
    plans = [[tuple(names_of(one.parts)) for one in pair] for pair in having]
    usual = [Counter(plan[arm] for plan in plans).most_common(1)[0][0] for arm in (0, 1)]
    return [pair for pair, plan in zip(having, plans, strict=True) if plan == usual]


def rank(pairs: Pairs, *, changed: bool) -> tuple[tuple[PartChange, ...], tuple[Wait, ...]]:
    """Return the parts and waits of comparable pairs, ranked; with shares if it ``changed``."""
    if not pairs:
        return (), ()
    costs = [[pair[arm].cpu_s_per_mevent for pair in pairs] for arm in (0, 1)]
    total, _, _ = difference_of(*costs)
    base = mean(costs[1])
    whole = total if changed and abs(total) > HARDLY * base else None
    aligned = align(pairs[0][0].parts, pairs[0][1].parts)
    parts = [_part(x, pairs, whole) for x in aligned if x.part.kind != PHASE and _known(x, pairs)]
    side = -1 if total < 0 else 1
    parts.sort(key=lambda x: -side * x.contribution if whole else -abs(x.contribution))
    waits = [_wait(x, pairs) for x in aligned if x.part.kind in (PHASE, STAGE)]
    waits.sort(key=lambda x: x.baseline_s - x.candidate_s)
    return tuple(parts), tuple(waits)


def _own(observed: Observed, part: Part | None) -> Part | None:
    """Return a repetition's own copy of a part: operators match by place, others by name."""
    if part is None:
        return None
    if part.kind == OPERATOR:
        return observed.parts[part.place]
    return next((x for x in observed.parts if (x.kind, x.name) == (part.kind, part.name)), None)


def _known(aligned: Aligned, pairs: Pairs) -> bool:
    """Whether a repetition has CPU time of a part, or the part is new or gone."""
    if aligned.match != "both":
        return True
    found = [_own(x, aligned.candidate) for x, _ in pairs]
    found += [_own(x, aligned.baseline) for _, x in pairs]
    return any(part is not None and part.cpu_s is not None for part in found)


def _cost(observed: Observed, part: Part | None) -> float:
    own = _own(observed, part)
    return 0.0 if own is None or own.cpu_s is None else own.cpu_s / observed.events * 1e6


def _part(aligned: Aligned, pairs: Pairs, total: float | None) -> PartChange:
    ours = [_cost(x, aligned.candidate) for x, _ in pairs]
    theirs = [_cost(x, aligned.baseline) for _, x in pairs]
    contribution, lo, hi = difference_of(ours, theirs)
    part, observed = aligned.part, pairs[0][0 if aligned.candidate else 1]
    return PartChange(
        name=part.name,
        kind=part.kind,
        match=aligned.match,
        candidate=mean(ours),
        baseline=mean(theirs),
        contribution=contribution,
        lo=lo,
        hi=hi,
        share=contribution / total if total else None,
        change=ratio_of(ours, theirs),
        estimated=part.kind in _ESTIMATED,
        place=aligned.candidate.place if aligned.candidate else None,
        baseline_place=aligned.baseline.place if aligned.baseline else None,
        depth=part.depth,
        stage=part.stage,
        covers=tuple(observed.parts[place].name for place in part.covers),
        metrics=_metrics(aligned, pairs),
    )


def _metrics(aligned: Aligned, pairs: Pairs) -> tuple[MetricChange, ...]:
    arms = [
        [own.metrics for pair in pairs if (own := _own(pair[arm], part))]
        for arm, part in enumerate((aligned.candidate, aligned.baseline))
    ]
    names = dict.fromkeys(name for arm in arms for metrics in arm for name in metrics)
    found = [
        MetricChange(name, *(median([x.get(name, 0.0) for x in arm] or [0.0]) for arm in arms))
        for name in names
    ]

    def by_how_much(metric: MetricChange) -> float:
        if not metric.candidate or not metric.baseline:
            return -math.inf if metric.candidate != metric.baseline else 0.0
        return -abs(math.log(metric.candidate / metric.baseline))

    return tuple(sorted(found, key=by_how_much))


def _wait(aligned: Aligned, pairs: Pairs) -> Wait:
    ours = [_waited(_own(x, aligned.candidate)) for x, _ in pairs]
    theirs = [_waited(_own(x, aligned.baseline)) for _, x in pairs]
    part = aligned.part
    name = f"driver: {part.name}" if part.kind == PHASE else f"stage {part.stage}: threads waiting"
    if part.name == _WHOLE:
        name = "all batches"
    return Wait(name, median(ours), median(theirs), ratio_of(ours, theirs))


def _waited(part: Part | None) -> float:
    metrics = part.metrics if part else {}
    if part and part.kind == PHASE:
        return metrics.get(_SPENT, 0.0)
    return max(metrics.get(_TIME, 0.0) - metrics.get(_CPU, 0.0), 0.0)
