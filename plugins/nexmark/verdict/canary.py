"""The canary: a fixed workload that is not Spark tells how much the host can be trusted tonight.

Research/regression-gates.md section 4, point 4. Three grades: steady; unsteady (clocks other than
CPU time get no verdict); and broken, where nothing of the night does.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import IntEnum
from statistics import median

from nexmark.verdict.nights import Canary, possible
from nexmark.verdict.rules import Rules

LEVELS = ("steal", "psi", "load", "throttl", "mhz", "freq")
"""A canary metric that starts so is a level of the host, which may be 0; all others are timings."""

WAITING = ("fsync", "wall_")
"""A canary timing that starts so is mostly waiting, for a disk or a turn: it may be far apart on a
host whose CPU is as fast as ever. It says nothing against CPU time, nor how fast the host is."""

MEMORY = "cpu_memory"
"""A canary timing that starts so is of bandwidth, which a host shares with its neighbours: between
two runs at rest it moves by several times what computing moves by (``make bench-canary``), so it
has a bound of its own."""

UNTOUCHED = ("cpu_", "state_")
"""A metric that starts so does not wait: an unsteady host leaves it its meaning."""


class Steadiness(IntEnum):
    """How far a night's host can be trusted."""

    STEADY = 0
    UNSTEADY = 1
    BROKEN = 2


@dataclass(frozen=True)
class Grade:
    """The grade of a night and, unless it is steady, the reason in one line."""

    steadiness: Steadiness
    reason: str = ""

    def withholds(self, metric: str) -> bool:
        """Tell whether a metric gets no verdict."""
        if self.steadiness is Steadiness.UNSTEADY:
            return not metric.startswith(UNTOUCHED)
        return self.steadiness is Steadiness.BROKEN


def grade(canaries: Iterable[Canary], rules: Rules) -> Grade:
    """Return the worst grade of any reading; steady when there is none to say otherwise."""
    grades = [_grade(canary, rules) for canary in canaries]
    return max(grades, key=lambda one: one.steadiness, default=Grade(Steadiness.STEADY))


def level(canaries: Sequence[Canary]) -> tuple[float, str] | None:
    """Return the mean log timing of the canaries and the names of what it is made of.

    Without those that wait. None without timings; levels of different names cannot be compared.
    """
    timings: dict[str, list[float]] = {}
    for canary in canaries:
        if not is_level(canary.metric) and not canary.metric.startswith(WAITING):
            name = f"{canary.host}:{canary.metric}" if canary.host else canary.metric
            timings.setdefault(name, []).extend((*canary.before, *canary.after))
    if not timings or not all(map(possible, (x for values in timings.values() for x in values))):
        return None
    logs = [math.log(median(values)) for values in timings.values()]
    return sum(logs) / len(logs), "+".join(sorted(timings))


def is_level(metric: str) -> bool:
    """Tell whether a canary metric is a level of the host, not a timing."""
    return metric.startswith(LEVELS)


def _grade(canary: Canary, rules: Rules) -> Grade:
    name = f"canary {canary.metric}" + (f" on {canary.host}" if canary.host else "")
    values = (*canary.before, *canary.after)
    if is_level(canary.metric):
        return _grade_level(name, values, rules.canary_limits.get(canary.metric))
    for value in values:
        if not possible(value):
            return Grade(Steadiness.BROKEN, f"{name}: {value} is no measurement")
    if not canary.before or not canary.after:
        return Grade(Steadiness.STEADY)
    ratio = median(canary.after) / median(canary.before)
    apart = max(ratio, 1 / ratio) - 1
    said = f"{name}: before and after are {apart:.1%} apart"
    waits = canary.metric.startswith(WAITING)
    memory = canary.metric.startswith(MEMORY)
    bound = rules.canary_memory_bound if memory else rules.canary_bound
    if apart > bound:
        worst = Steadiness.UNSTEADY if waits else Steadiness.BROKEN
        return Grade(worst, f"{said}, more than {bound:.0%}")
    if waits:
        return Grade(Steadiness.STEADY)
    if apart > rules.canary_unsteady:
        return Grade(Steadiness.UNSTEADY, f"{said}, more than {rules.canary_unsteady:.0%}")
    return Grade(Steadiness.STEADY)


def _grade_level(name: str, values: Sequence[float], limit: float | None) -> Grade:
    for value in values:
        if not (math.isfinite(value) and value >= 0):
            return Grade(Steadiness.BROKEN, f"{name}: {value} is no measurement")
        if limit is not None and value > limit:
            return Grade(Steadiness.UNSTEADY, f"{name}: {value:g}, above the limit of {limit:g}")
    return Grade(Steadiness.STEADY)


__all__ = ["WAITING", "Grade", "Steadiness", "grade", "is_level", "level"]
