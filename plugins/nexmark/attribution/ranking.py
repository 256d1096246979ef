"""Rank the parts of a query by their contribution to its change, the largest first.

The operators of both arms are aligned by their names in the order of the printed plan, the longest
common sequences first. Stages are aligned by their operators, all other parts by their names.
"""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from statistics import mean, median

import numpy as np

from nexmark.attribution.explained import CostChange, MetricChange, Observed, PartChange, Wait
from nexmark.measure.executed_plan import OPERATOR, PHASE, STAGE, Part
from nexmark.verdict.location import hodges_lehmann, interval

LEAST_CHANGE = 0.005
"""A query that changed by less (0.5 %) has no shares: they would be quotients of noise."""
_TIME, _CPU, _SPENT = "time of tasks [s]", "CPU of tasks [s]", "time [s]"
_WHOLE = "triggerExecution"
_ESTIMATED = frozenset({OPERATOR, STAGE})
Pairs = Sequence[tuple[Observed, Observed]]


def ratio_of(candidate: Sequence[float], baseline: Sequence[float]) -> CostChange | None:
    """Return the ratio of pairs (Hodges-Lehmann on logs); None if no pair has two figures."""
    pairs = zip(candidate, baseline, strict=True)
    logs = [math.log(ours / theirs) for ours, theirs in pairs if ours > 0 and theirs > 0]
    if not logs:
        return None
    ratios = np.asarray(logs, dtype=np.float64)
    lo, hi = interval(ratios)
    return CostChange(math.exp(float(hodges_lehmann(ratios))), math.exp(lo), math.exp(hi))


def difference_of(ours: Sequence[float], theirs: Sequence[float]) -> tuple[float, float, float]:
    """Return the mean difference of pairs, and the two ends of its interval."""
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
        part = self.candidate or self.baseline
        assert part is not None
        return part

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
    aligned = _operators(candidate, baseline)
    stages = _stages(aligned)
    theirs = {_key(part): part for part in baseline if part.kind != OPERATOR}
    for part in candidate:
        if part.kind != OPERATOR:
            key = (STAGE, stages.get(part.stage)) if part.kind == STAGE else _key(part)
            aligned.append(Aligned(part, theirs.pop(key, None)))
    return aligned + [Aligned(None, part) for part in theirs.values()]


def _key(part: Part) -> tuple[str, str | int | None]:
    return (part.kind, part.stage if part.kind == STAGE else part.name)


def _operators(candidate: Sequence[Part], baseline: Sequence[Part]) -> list[Aligned]:
    ours = [part for part in candidate if part.kind == OPERATOR]
    theirs = [part for part in baseline if part.kind == OPERATOR]
    matcher = SequenceMatcher(None, names_of(theirs), names_of(ours), autojunk=False)
    aligned: list[Aligned] = []
    for code, i1, i2, j1, j2 in matcher.get_opcodes():
        if code == "equal":
            aligned += map(Aligned, ours[j1:j2], theirs[i1:i2])
        else:
            aligned += [Aligned(None, removed) for removed in theirs[i1:i2]]
            aligned += [Aligned(added, None) for added in ours[j1:j2]]
    return aligned


def _stages(operators: Sequence[Aligned]) -> dict[int | None, int | None]:
    """Return for each stage of the candidate the baseline's stage that has most of its operators.

    No stage of the baseline is given twice.
    """
    votes: dict[int | None, Counter[int | None]] = {}
    for operator in operators:
        if operator.candidate and operator.baseline:
            counter = votes.setdefault(operator.candidate.stage, Counter())
            counter[operator.baseline.stage] += 1
    taken: dict[int | None, int | None] = {None: None}
    for number, counter in sorted(votes.items(), key=lambda vote: -max(vote[1].values())):
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
    """Return the parts and waits of comparable pairs, the largest contribution first.

    The parts have shares only if the query ``changed``.
    """
    if not pairs:
        return (), ()
    costs = [[pair[arm].cpu_s_per_mevent for pair in pairs] for arm in (0, 1)]
    total, _, _ = difference_of(*costs)
    base = mean(costs[1])
    whole = total if changed and abs(total) > LEAST_CHANGE * base else None
    aligned = align(pairs[0][0].parts, pairs[0][1].parts)
    parts = [
        _part(each, pairs, whole)
        for each in aligned
        if each.part.kind != PHASE and _known(each, pairs)
    ]
    side = -1 if total < 0 else 1
    parts.sort(key=lambda part: -side * part.contribution if whole else -abs(part.contribution))
    waits = [_wait(each, pairs) for each in aligned if each.part.kind in (PHASE, STAGE)]
    waits.sort(key=lambda wait: -wait.longer_s)
    return tuple(parts), tuple(waits)


def _part_of(observed: Observed, part: Part | None) -> Part | None:
    """Return a part as one repetition has it: operators match by place, other parts by name."""
    if part is None:
        return None
    if part.kind == OPERATOR:
        return observed.parts[part.place]
    same = (each for each in observed.parts if (each.kind, each.name) == (part.kind, part.name))
    return next(same, None)


def _parts_of_arms(aligned: Aligned, pairs: Pairs) -> tuple[list[Part | None], list[Part | None]]:
    """Return a part as each repetition of the candidate and of the baseline has it."""
    return (
        [_part_of(ours, aligned.candidate) for ours, _ in pairs],
        [_part_of(theirs, aligned.baseline) for _, theirs in pairs],
    )


def _known(aligned: Aligned, pairs: Pairs) -> bool:
    """Return whether a repetition has CPU time of a part, or the part is new or gone."""
    if aligned.match != "both":
        return True
    candidate, baseline = _parts_of_arms(aligned, pairs)
    return any(part is not None and part.cpu_s is not None for part in candidate + baseline)


def _cost(observed: Observed, part: Part | None) -> float:
    """Return the CPU-seconds per million events of a part in a repetition; 0 if not known."""
    copy = _part_of(observed, part)
    return 0.0 if copy is None or copy.cpu_s is None else copy.cpu_s / observed.events * 1e6


def _part(aligned: Aligned, pairs: Pairs, total: float | None) -> PartChange:
    ours = [_cost(one, aligned.candidate) for one, _ in pairs]
    theirs = [_cost(one, aligned.baseline) for _, one in pairs]
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
    """Return the metrics of a part in both arms, those that changed most first."""
    candidate, baseline = (
        [part.metrics for part in parts if part is not None]
        for parts in _parts_of_arms(aligned, pairs)
    )
    names = dict.fromkeys(name for metrics in candidate + baseline for name in metrics)
    changes = [
        MetricChange(name, _median_of(name, candidate), _median_of(name, baseline))
        for name in names
    ]

    def by_how_much(metric: MetricChange) -> float:
        if not metric.candidate or not metric.baseline:
            return -math.inf if metric.candidate != metric.baseline else 0.0
        return -abs(math.log(metric.candidate / metric.baseline))

    return tuple(sorted(changes, key=by_how_much))


def _median_of(name: str, repetitions: Sequence[Mapping[str, float]]) -> float:
    """Return the median of a metric over repetitions; a repetition without it counts as 0."""
    return median([metrics.get(name, 0.0) for metrics in repetitions] or [0.0])


def _wait(aligned: Aligned, pairs: Pairs) -> Wait:
    ours, theirs = (list(map(_waited, parts)) for parts in _parts_of_arms(aligned, pairs))
    part = aligned.part
    name = f"driver: {part.name}" if part.kind == PHASE else f"stage {part.stage}: threads waiting"
    if part.name == _WHOLE:
        name = "all batches"
    return Wait(name, median(ours), median(theirs), ratio_of(ours, theirs))


def _waited(part: Part | None) -> float:
    """Return the seconds of a step of the driver, or those in which a stage's threads waited."""
    metrics = part.metrics if part else {}
    if part and part.kind == PHASE:
        return metrics.get(_SPENT, 0.0)
    return max(metrics.get(_TIME, 0.0) - metrics.get(_CPU, 0.0), 0.0)
