"""Whether there is ground for a verdict at all, and the numbers of what nothing was learned of."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
from scipy.special import stdtrit

from nexmark.verdict.canary import Grade, grade
from nexmark.verdict.comparison import Value
from nexmark.verdict.location import EFFICIENCY, hodges_lehmann, interval, spread
from nexmark.verdict.nights import Measured, Night, Pair, QueryVerdict, possible
from nexmark.verdict.rules import MIN_PAIRS, Rules
from nexmark.verdict.stages import POWER

CERTAIN = 0.99
"""Confidence of what one night says without history (research/regression-gates.md section 6)."""


class Grounds:
    """The facts of one night: what its results, its host and its pairs allow to be said."""

    def __init__(self, night: Night, rules: Rules) -> None:
        """Take the night and the settings."""
        self.night, self.rules = night, rules
        self._grades: dict[str, Grade] = {}

    def blank(self, query: str, metric: str, value: Value, reason: str) -> QueryVerdict:
        """Return a verdict without numbers."""
        return QueryVerdict(
            night=self.night.name,
            query=query,
            metric=metric,
            value=value,
            reason=reason,
            mode=self.rules.mode,
            gate_version=self.rules.version,
            decides=metric == self.rules.metric,
            baseline=self.night.baseline.get(query, ""),
        )

    def without(self, measured: Measured, value: Value, reason: str) -> QueryVerdict:
        """Return a verdict where there is no ground for one, with the numbers there are.

        They are for people: nothing is learned from such a night.
        """
        numbers = one_night_numbers(measured)
        shown = {name: numbers[name] for name in ("ratio", "lo", "hi", "mde") if name in numbers}
        verdict = self.blank(measured.query, measured.metric, value, reason)
        return replace(verdict, pairs=len(measured.pairs), **shown)

    def objection(self, measured: Measured) -> tuple[Value, str] | None:
        """Return why there is no verdict on a metric of a query; None when there is ground."""
        query = measured.query
        if query in self.night.invalid:
            return Value.INVALID, self.night.invalid[query]
        host = self.grade(query)
        if host.withholds(measured.metric):
            return Value.INVALID, host.reason
        if query in self.night.missing:
            return Value.MISSING, self.night.missing[query]
        return self._of_pairs(measured.pairs)

    def grade(self, query: str) -> Grade:
        """Return the grade of the host while a query ran."""
        group = self.night.groups.get(query, "")
        if group not in self._grades:
            seen = [canary for canary in self.night.canary if canary.group in ("", group)]
            self._grades[group] = grade(seen, self.rules)
        return self._grades[group]

    def worst_grade(self) -> Grade:
        """Return the worst grade of the host in all of the night."""
        return grade(self.night.canary, self.rules)

    def _of_pairs(self, pairs: tuple[Pair, ...]) -> tuple[Value, str] | None:
        one_arm = self.rules.mode == "history"
        for pair in pairs:
            arms = {"candidate": pair.candidate, "baseline": None if one_arm else pair.baseline}
            for arm, value in arms.items():
                if value is not None and not possible(value):
                    return Value.INVALID, f"pair {pair.number}: {arm}: {value} is no measurement"
        if one_arm:
            return self._count(sum(pair.candidate is not None for pair in pairs), "repetitions")
        candidates = sum(pair.candidate is not None for pair in pairs)
        if candidates and not any(pair.baseline is not None for pair in pairs):
            return Value.CALIBRATING, "no baseline was measured"
        for pair in pairs:
            if not pair.complete:
                arm = "candidate" if pair.candidate is None else "baseline"
                return Value.MISSING, f"pair {pair.number} has no {arm}"
        return self._count(len(pairs), "pairs")

    def _count(self, done: int, things: str) -> tuple[Value, str] | None:
        asked = max(self.night.asked or 0, MIN_PAIRS)
        if done >= asked:
            return None
        return Value.MISSING, f"{done} of {asked} {things} measured" if done else "not measured"


def one_night_numbers(measured: Measured) -> dict[str, Any]:
    """Return ratio, lo, hi, mde, shift and spread from the complete pairs of one night alone.

    Nothing when there are fewer than ``MIN_PAIRS``. The interval is the exact one of the
    Hodges-Lehmann estimate (93.75 % for five pairs), ``mde`` that of a one-sided t test at 99 %.
    """
    ratios = np.asarray([pair.ratio for pair in measured.pairs])
    ratios = ratios[~np.isnan(ratios)]
    if ratios.size < MIN_PAIRS:
        return {}
    shift, wide = float(hodges_lehmann(ratios)), float(spread(ratios))
    lo, hi = interval(ratios)
    freedom = ratios.size - 1
    deviations = float(stdtrit(freedom, CERTAIN) + stdtrit(freedom, POWER))
    return {
        "ratio": math.exp(shift),
        "lo": math.exp(lo),
        "hi": math.exp(hi),
        "mde": math.expm1(deviations * wide * math.sqrt(EFFICIENCY / ratios.size)),
        "shift": shift,
        "spread": wide,
    }


__all__ = ["Grounds", "one_night_numbers"]
