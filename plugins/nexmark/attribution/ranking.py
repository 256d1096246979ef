"""What each part contributes to the change of a query, the largest contribution first."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from statistics import mean, median

from nexmark.attribution.alignment import Aligned, align, names_of
from nexmark.attribution.changes import difference_of, ratio_of
from nexmark.attribution.explained import MetricChange, PartChange, Wait
from nexmark.attribution.observed import Observed
from nexmark.measure.operator_times import OPERATOR, PHASE, STAGE, Part

HARDLY = 0.005
"""A change of the query by less than this has no shares."""
_TIME, _CPU, _SPENT = "time of tasks [s]", "CPU of tasks [s]", "time [s]"
_WHOLE = "triggerExecution"
_ESTIMATED = frozenset({OPERATOR, STAGE})

Pairs = Sequence[tuple[Observed, Observed]]


def comparable(pairs: Pairs) -> list[tuple[Observed, Observed]]:
    """Return the pairs that have parts, and those of the same plan as most others of their arm."""
    having = [pair for pair in pairs if all(one.parts for one in pair)]
    plans = [[tuple(names_of(one.parts)) for one in pair] for pair in having]
    usual = [_usual([plan[arm] for plan in plans]) for arm in (0, 1)]
    return [pair for pair, plan in zip(having, plans, strict=True) if plan == usual]


def _usual(plans: Sequence[tuple[str, ...]]) -> tuple[str, ...]:
    return Counter(plans).most_common(1)[0][0] if plans else ()


def rank(pairs: Pairs, *, changed: bool) -> tuple[tuple[PartChange, ...], tuple[Wait, ...]]:
    """Return the parts and the waits of comparable pairs, ranked.

    ``changed``: whether the query as a whole is slower or faster, so that there is a change to have
    a share of.
    """
    if not pairs:
        return (), ()
    total, _, _ = difference_of(*_costs(pairs))
    base = mean(theirs.cpu_s_per_mevent for _, theirs in pairs)
    whole = total if changed and abs(total) > HARDLY * base else None
    aligned = align(pairs[0][0].parts, pairs[0][1].parts)
    parts = [_part(x, pairs, whole) for x in aligned if x.part.kind != PHASE and _known(x, pairs)]
    side = -1 if total < 0 else 1
    parts.sort(key=lambda x: -side * x.contribution if whole else -abs(x.contribution))
    waits = [_wait(x, pairs) for x in aligned if x.part.kind in (PHASE, STAGE)]
    waits.sort(key=lambda x: x.baseline_s - x.candidate_s)
    return tuple(parts), tuple(waits)


def _costs(pairs: Pairs) -> tuple[list[float], list[float]]:
    ours, theirs = zip(*pairs, strict=True)
    return [x.cpu_s_per_mevent for x in ours], [x.cpu_s_per_mevent for x in theirs]


def _own(observed: Observed, part: Part | None) -> Part | None:
    """Return what a repetition has of a part of its arm: operators by place, others by name."""
    if part is None:
        return None
    if part.kind == OPERATOR:
        return observed.parts[part.place]
    return next((x for x in observed.parts if (x.kind, x.name) == (part.kind, part.name)), None)


def _known(aligned: Aligned, pairs: Pairs) -> bool:
    """Tell whether any repetition has CPU time of a part, or whether it is new or gone."""
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
    return tuple(sorted(found, key=_by_how_much))


def _by_how_much(metric: MetricChange) -> float:
    if not metric.candidate or not metric.baseline:
        return -math.inf if metric.candidate != metric.baseline else 0.0
    return -abs(math.log(metric.candidate / metric.baseline))


def _wait(aligned: Aligned, pairs: Pairs) -> Wait:
    ours = [_waited(_own(x, aligned.candidate)) for x, _ in pairs]
    theirs = [_waited(_own(x, aligned.baseline)) for _, x in pairs]
    part = aligned.part
    name = f"driver: {part.name}" if part.kind == PHASE else f"stage {part.stage}: threads waiting"
    if part.name == _WHOLE:
        name = "all batches"
    return Wait(name, median(ours), median(theirs), ratio_of(ours, theirs))


def _waited(part: Part | None) -> float:
    if part is None:
        return 0.0
    if part.kind == PHASE:
        return part.metrics.get(_SPENT, 0.0)
    return max(part.metrics.get(_TIME, 0.0) - part.metrics.get(_CPU, 0.0), 0.0)


__all__ = ["comparable", "rank"]
