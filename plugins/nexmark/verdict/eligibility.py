"""Finds out whether a verdict has any ground, and gives figures to queries without a noise.

The canary, a fixed workload that is not Spark, tells how far the host can be trusted tonight: its
readings around a query, and around each later round for what its pairs say. And a query that waits
for its broker says nothing of its build: it has no verdict unless a consumer that does nothing else
reads the same topic several times as fast (``source_headroom`` of the gate).
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from enum import IntEnum
from statistics import median
from typing import Any

import numpy as np
from scipy.special import stdtrit

from nexmark.config import Gate
from nexmark.model import (
    FALLS_BACK,
    MIN_PAIRS,
    READ_RATE,
    SOURCE_RATE,
    Value,
    metric_of,
    round_group,
)
from nexmark.verdict.location import (
    EFFICIENCY,
    change_of,
    hodges_lehmann,
    interval,
    ratio_of,
    spread,
)
from nexmark.verdict.measured_night import Canary, Measured, MeasuredNight, possible
from nexmark.verdict.verdict import Verdict

LEVELS = ("steal", "psi", "load", "throttl", "mhz", "freq")
"""A canary metric that starts so is a level of the host, which may be 0; all others are timings."""
FLUSH = "fsync"
"""A canary timing that starts so waits for a disk to write."""
WAITING = (FLUSH, "wall_")
"""A canary timing that starts so is mostly waiting, for a disk or a turn: it says nothing against
CPU time, nor how fast the host is."""
MEMORY = "cpu_memory"
"""A canary timing that starts so is of bandwidth, which a host shares: between two runs at rest it
moves by several times what computing moves by (``nexmark bench canary``), so it has its own
bound."""
CERTAIN, POWER = 0.99, 0.8
"""Confidence of what the pairs of one night say alone, and how often they find what they can."""


class Steadiness(IntEnum):
    """How far a night's host can be trusted."""

    STEADY = 0
    UNSTEADY = 1
    """Clocks other than CPU time get no verdict."""
    BROKEN = 2
    """Nothing of the night gets one."""


@dataclass(frozen=True)
class Grade:
    """The grade of a night and, unless it is steady, the reason in one line."""

    steadiness: Steadiness
    reason: str = ""
    apart: float = 0.0
    """By how much the canary was further apart than usual: a log ratio, 0 for a steady host."""


def grade(canaries: Sequence[Canary], rules: Gate) -> Grade:
    """Return the worst grade of any reading; steady when there is none to say otherwise."""
    grades = (_grade(canary, rules) for canary in canaries)
    return max(
        grades, key=lambda each: (each.steadiness, each.apart), default=Grade(Steadiness.STEADY)
    )


def is_level(metric: str) -> bool:
    """Tell whether a canary metric is a level of the host, not a timing."""
    return metric.startswith(LEVELS)


def _grade(canary: Canary, rules: Gate) -> Grade:
    name = f"canary {canary.metric}" + (f" on {canary.host}" if canary.host else "")
    values = (*canary.before, *canary.after)
    if is_level(canary.metric):
        return _grade_level(name, values, rules.canary_limits.get(canary.metric))
    for value in values:
        if not possible(value):
            return Grade(Steadiness.BROKEN, f"{name}: {value} is not a measurement")
    if not canary.before or not canary.after:
        return Grade(Steadiness.STEADY)
    ratio = abs(math.log(median(canary.after)) - math.log(median(canary.before)))
    said = f"{name}: before and after are {change_of(ratio):.1%} apart"
    memory = canary.metric.startswith(MEMORY)
    usual = rules.canary_memory_unsteady if memory else rules.canary_unsteady
    bound = rules.canary_memory_bound if memory else rules.canary_bound
    if canary.metric.startswith(WAITING):
        usual, bound = rules.canary_waiting_unsteady, math.inf
    if ratio > math.log1p(bound):
        return Grade(Steadiness.BROKEN, f"{said}, more than {bound:.0%}")
    if ratio > math.log1p(usual):
        apart = ratio - math.log1p(usual)
        return Grade(Steadiness.UNSTEADY, f"{said}, more than {usual:.0%}", apart)
    return Grade(Steadiness.STEADY)


def _grade_level(name: str, values: Sequence[float], limit: float | None) -> Grade:
    for value in values:
        if not (math.isfinite(value) and value >= 0):
            return Grade(Steadiness.BROKEN, f"{name}: {value} is not a measurement")
        if limit is not None and value > limit:
            return Grade(Steadiness.UNSTEADY, f"{name}: {value:g}, above the limit of {limit:g}")
    return Grade(Steadiness.STEADY)


class Grounds:
    """The facts of one night: what its results, its host and its pairs allow to be said."""

    def __init__(self, night: MeasuredNight, rules: Gate) -> None:
        """Take the night and the settings."""
        self.night, self.rules = night, rules
        self._grades: dict[tuple[tuple[str, ...], tuple[str, ...]], Grade] = {}
        self._source_bound = source_bound(night.measured, rules)
        self._pairs = _pairs_by_metric(night.measured)

    def metric(self, query: str) -> str:
        """Return the metric that decides a query, or the suite.

        It is the gate's, or the one that it falls back to if not every pair has it.
        """
        first = self.rules.metric
        if first not in FALLS_BACK:
            return first
        pairs, second = self._pairs.get(query), FALLS_BACK[first]
        if pairs is None:  # the suite, or a query without a figure: as the others
            others = (self.metric(other) == first for other in self._pairs)
            return first if any(others) else second
        return first if first in pairs and pairs[first] >= pairs.get(second, 0) else second

    def blank(self, query: str, metric: str, value: Value, reason: str) -> Verdict:
        """Return a verdict without numbers.

        Args:
            query: The query.
            metric: The metric.
            value: The value of the verdict.
            reason: Why, in one line.
        """
        return Verdict(
            self.night.name,
            query,
            metric,
            value,
            reason,
            self.rules.mode,
            self.rules.version,
            decides=metric == self.metric(query),
            baseline_build=self.night.baseline.get(query, ""),
            build=self.night.candidate,
        )

    def without(self, measured: Measured, value: Value, reason: str) -> Verdict:
        """Return a verdict that says why nothing can be judged, with the numbers that there are."""
        numbers = one_night_numbers(measured) | {"shift": None, "spread": None}
        verdict = self.blank(measured.query, measured.metric, value, reason)
        return replace(verdict, pairs=len(measured.pairs), **numbers)

    def objection(self, measured: Measured) -> tuple[Value, str] | None:
        """Return why there is no verdict on a metric of a query; None when there is ground."""
        query = measured.query
        if query in self.night.invalid:
            return Value.INVALID, self.night.invalid[query]
        if reason := self._host_objection(measured.metric, self._groups(query)):
            return Value.INVALID, reason
        if query in self.night.missing and _whole(measured) < MIN_PAIRS:
            return Value.MISSING, self.night.missing[query]
        problem = self._of_pairs(measured)
        if query in self._source_bound and (problem is None or problem[0] is Value.NO_BASELINE):
            return Value.SOURCE_BOUND, self._source_bound[query]
        return problem

    def doubt(self, measured: Measured, number: int) -> str:
        """Return why the pairs of a later round say nothing, '' if they may be read.

        The host may have broken after the first round.
        """
        if not measured.of_round(number):
            return ""
        return self._host_objection(measured.metric, (round_group(number),))

    def with_gaps(self, verdict: Verdict, measured: Measured | None) -> Verdict:
        """Return the verdict; if pairs are incomplete, its reason names the missing repetitions."""
        if measured is None:
            return verdict
        pairs, asked = measured.pairs, max(self.night.asked or 0, len(measured.pairs))
        gaps = [f"{pair.gap} {pair.number}" for pair in pairs if not pair.complete]
        gaps += [f"{asked - len(pairs)} whole"] if asked > len(pairs) else []
        if not gaps:
            return verdict
        why = self.night.missing.get(measured.query, "")
        missing = f"missing: {', '.join(gaps)}" + (f" ({why})" if why else "")
        reason = f"{_whole(measured)} of {asked} pairs: {verdict.reason}; {missing}"
        return replace(verdict, reason=reason)

    def grade(self, query: str) -> Grade:
        """Return the grade of the host while a query ran, for the metric that decides."""
        return self._deciding(self._groups(query))

    def grade_later(self, measured: Measured) -> Grade:
        """Return the grade for all pairs: the worst of `grade` and of each later round."""
        rounds = (each for each in range(2, len(measured.later) + 2) if measured.of_round(each))
        later = (self._deciding((round_group(each),)) for each in rounds)
        return max((self.grade(measured.query), *later), key=lambda grade: grade.apart)

    def widening(self, host: Grade) -> float:
        """Return the deviation (log) that an unsteady host adds to a query's ratio tonight.

        A host that is by ``apart`` faster in some runs than in others, at random, moves the
        estimate of five pairs by a third of it.
        """
        return self.rules.canary_widening * host.apart

    def _host_objection(self, metric: str, groups: tuple[str, ...]) -> str:
        """Return why a host cannot be trusted with a metric while groups ran, '' if it can."""
        asked = metric_of(metric)
        host = self._graded(groups, (FLUSH,) if asked.flush_widens else ())
        unsteady = host.steadiness is Steadiness.UNSTEADY and asked.waits
        return host.reason if unsteady or host.steadiness is Steadiness.BROKEN else ""

    def _deciding(self, groups: tuple[str, ...]) -> Grade:
        return self._graded(groups, () if metric_of(self.rules.metric).waits else WAITING)

    def _groups(self, query: str) -> tuple[str, ...]:
        """Return the groups of canaries around the first pairs of a query; '' is the night."""
        return "", self.night.groups.get(query, "")

    def _graded(self, groups: tuple[str, ...], passed_over: tuple[str, ...]) -> Grade:
        """Return the grade without the canaries whose names start like one ``passed_over``."""
        if (groups, passed_over) not in self._grades:
            seen = [canary for canary in self.night.canary if canary.group in groups]
            seen = [canary for canary in seen if not canary.metric.startswith(passed_over)]
            self._grades[groups, passed_over] = grade(seen, self.rules)
        return self._grades[groups, passed_over]

    def _of_pairs(self, measured: Measured) -> tuple[Value, str] | None:
        pairs = measured.pairs
        for pair in pairs:
            for arm, value in pair.arms:
                if value is not None and not possible(value):
                    return Value.INVALID, f"pair {pair.number}: {arm}: {value} is not a measurement"
        candidates = sum(pair.candidate is not None for pair in pairs)
        if candidates and not any(pair.baseline is not None for pair in pairs):
            return Value.NO_BASELINE, "no baseline was measured: accept a run, or name a build"
        if _whole(measured) >= MIN_PAIRS:
            return None
        for pair in pairs:
            if not pair.complete:
                return Value.MISSING, f"pair {pair.number} has no {pair.gap}"
        asked = max(self.night.asked or 0, MIN_PAIRS)
        done = f"{len(pairs)} of {asked} pairs measured"
        return Value.MISSING, done if pairs else "not measured"


def _pairs_by_metric(measured: Iterable[Measured]) -> dict[str, dict[str, int]]:
    """Return by query how many whole pairs all its rounds have, by metric."""
    pairs: dict[str, dict[str, int]] = {}
    for one in measured:
        whole = sum(pair.complete for pair in one.all_pairs)
        pairs.setdefault(one.query, {})[one.metric] = whole
    return pairs


def _whole(measured: Measured) -> int:
    return sum(pair.complete for pair in measured.pairs)


def one_night_numbers(measured: Measured) -> dict[str, Any]:
    """Return ratio, lo, hi, mde, shift and spread from the complete pairs of one night alone.

    {} for fewer than ``MIN_PAIRS``. The interval is the exact one of the Hodges-Lehmann estimate
    (93.75 % for five pairs), ``mde`` the smallest slowdown that a one-sided t test at 99 % finds.
    """
    ratios = np.asarray([pair.ratio for pair in measured.pairs])
    ratios = ratios[~np.isnan(ratios)]
    if ratios.size < MIN_PAIRS:
        return {}
    shift, wide = float(hodges_lehmann(ratios)), float(spread(ratios))
    lo, hi = interval(ratios)
    freedom = ratios.size - 1
    deviations = float(stdtrit(freedom, CERTAIN) + stdtrit(freedom, POWER))
    mde = change_of(deviations * wide * math.sqrt(EFFICIENCY / ratios.size))
    change = {"ratio": ratio_of(shift), "lo": ratio_of(lo), "hi": ratio_of(hi)}
    return change | {"mde": mde, "shift": shift, "spread": wide}


def source_bound(measured: Sequence[Measured], rules: Gate) -> dict[str, str]:
    """Return by query why its figures may be the source's; of the faster arm."""
    rates = {(one.query, one.metric): one.medians(1, whole=False) for one in measured}
    reasons = {}
    for query in dict.fromkeys(one.query for one in measured):
        alone, read = (
            [rate for rate in rates.get((query, metric), ()) if rate is not None]
            for metric in (SOURCE_RATE, READ_RATE)
        )
        if alone and read and min(alone) < rules.source_headroom * max(read):
            reasons[query] = (
                f"a consumer alone reads {min(alone):,.0f} records per second, the query "
                f"{max(read):,.0f}: {min(alone) / max(read):.1f} times, less than "
                f"{rules.source_headroom:g}; the figures may be the source's"
            )
    return reasons
