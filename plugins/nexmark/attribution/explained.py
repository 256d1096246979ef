"""The repetitions that explain a change, and the explanation: as data, and in one line."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from nexmark.measure.executed_plan import OPERATOR, OUTSIDE, Part

NAMED = 3
"""The largest number of confs, and of parts, that a sentence names."""
LEAST_SHARE = 0.05
"""A sentence names no part with a smaller share of the change."""
_LEAST_METRIC_CHANGE = 0.1
"""A sentence names no metric that changed by less (10 %)."""
_LONGEST_VALUE = 40
"""The most letters of a conf's value in a sentence."""
_OUTSIDE_OF_TASKS = "outside of tasks (JVM: start-up, compiler, garbage collection, network)"


@dataclass(frozen=True)
class Plan:
    """The plan that a query ran: its normalised text, its operators, and the operators' hash."""

    text: str
    skeleton: str
    skeleton_hash: str


@dataclass(frozen=True)
class Observed:
    """One repetition that counts.

    ``basis`` is the part of the run that ``cpu_s_per_mevent`` (CPU-seconds per million events),
    ``parts`` and ``events`` cover; ``wall_s`` is of the whole run. ``problem`` says why there are
    no ``parts``.
    """

    number: int
    stage: int
    basis: str
    events: int
    cpu_s_per_mevent: float
    wall_s: float
    plan: Plan | None = None
    formulation: str = ""
    confs: Mapping[str, str] = field(default_factory=dict)
    parts: tuple[Part, ...] = ()
    problem: str | None = None


class ChangeKind(StrEnum):
    """The kind of a change."""

    SLOWER_PLAN_CHANGED = "slower, plan changed"
    SLOWER = "slower, same operators"
    FASTER_PLAN_CHANGED = "faster, plan changed"
    SLOWER_PLAN_NOT_KNOWN = "slower, plan not known"
    FASTER = "faster, same operators"
    FASTER_PLAN_NOT_KNOWN = "faster, plan not known"
    PLAN_CHANGED = "same speed, plan changed"
    """A warning: with other data, the new plan may be slower."""
    WAITING = "waiting"
    """More wall-clock time without more CPU time."""
    WAITING_LESS = "waiting less"
    NOTHING = "nothing to explain"


@dataclass(frozen=True)
class CostChange:
    """A ratio candidate / baseline with its 95 % interval (with four pairs or fewer, the range)."""

    ratio: float
    lo: float | None = None
    hi: float | None = None


@dataclass(frozen=True)
class MetricChange:
    """A SQL metric of Spark in both arms: medians over the repetitions; ``name`` has its unit."""

    name: str
    candidate: float
    baseline: float

    @property
    def ratio(self) -> float | None:
        """Candidate / baseline; None if the baseline has no value."""
        return self.candidate / self.baseline if self.baseline else None


@dataclass(frozen=True)
class PartChange:
    """The contribution of a part of the query to the change.

    ``kind`` is operator, stage (the rest of it, outside its operators), tasks (starting them) or
    outside (of task threads). ``match`` is both, added (only the candidate has the part) or
    removed. ``place`` and ``baseline_place`` count operators from the top of each arm's plan.
    ``covers`` names the operators without a stopwatch whose time this part includes. ``metrics``
    are Spark's own, those that changed most first.

    ``candidate``, ``baseline`` and ``contribution`` (their difference, from ``lo`` to ``hi`` with
    95 % certainty) are CPU-seconds per million events, means over the pairs, so that all
    contributions add up to the change of the query. ``share`` is the fraction of that change; None
    where the query has not changed. ``change`` is the ratio of the pairs; None where an arm has no
    figure. ``estimated``: the CPU time was split by Spark's stopwatches, not measured.
    """

    name: str
    kind: str
    match: str
    candidate: float
    baseline: float
    contribution: float
    lo: float
    hi: float
    share: float | None
    change: CostChange | None
    estimated: bool
    place: int | None = None
    baseline_place: int | None = None
    depth: int = 0
    stage: int | None = None
    covers: tuple[str, ...] = ()
    metrics: tuple[MetricChange, ...] = ()


@dataclass(frozen=True)
class PlanChange:
    """The difference of the plans. ``changed``: other operators, or exchanges by other keys.

    ``added`` and ``removed`` are operators. ``diff`` is a unified diff of the normalised texts; it
    is not empty either where only expressions differ.
    """

    changed: bool = False
    added: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    diff: tuple[str, ...] = ()


@dataclass(frozen=True)
class ConfDifference:
    """A Spark conf that differs between the arms; None if an arm does not set it."""

    name: str
    candidate: str | None
    baseline: str | None


@dataclass(frozen=True)
class Wait:
    """The seconds of a step of the driver, or those in which the threads of a stage waited.

    Both are medians over the repetitions of an arm.
    """

    name: str
    candidate_s: float
    baseline_s: float
    change: CostChange | None = None

    @property
    def longer_s(self) -> float:
        """By how many seconds the candidate waited longer; below zero if less."""
        return self.candidate_s - self.baseline_s


@dataclass(frozen=True)
class Attribution:
    """Why a query is slower or faster than the baseline, or that there is nothing to explain.

    ``cpu`` is the change of CPU time: from the verdict if the gate gave one, else from the pairs;
    ``wall`` is the change of wall-clock time. ``candidate`` and ``baseline`` are CPU-seconds per
    million events on ``basis``, means over the ``pairs``. If not ``paired``, the baseline is from
    another night. ``parts`` are ranked by their contribution, ``waits`` by seconds. ``notes`` say
    what could not be compared, with the reason.
    """

    query: str
    kind: ChangeKind
    cpu: CostChange
    wall: CostChange | None
    candidate: float
    baseline: float
    basis: str
    pairs: int
    paired: bool
    confs: tuple[ConfDifference, ...]
    plan: PlanChange
    parts: tuple[PartChange, ...]
    waits: tuple[Wait, ...]
    notes: tuple[str, ...] = ()

    @property
    def contribution(self) -> float:
        """The change of the query in CPU-seconds per million events."""
        return self.candidate - self.baseline


def words(attribution: Attribution) -> str:
    """Return the explanation in one line: confs, plan, then parts or waits; "" if there is none."""
    waiting = (ChangeKind.WAITING, ChangeKind.WAITING_LESS)
    clauses = [_confs(attribution), _plan(attribution)]
    clauses += [_waits(attribution)] if attribution.kind in waiting else [_parts(attribution)]
    return "; ".join(clause for clause in clauses if clause)


def _confs(attribution: Attribution) -> str:
    differences = [
        f"{conf.name} {_value(conf.baseline)} -> {_value(conf.candidate)}"
        for conf in attribution.confs
    ]
    return f"conf {_few(differences)}" if differences else ""


def _few(names: list[str]) -> str:
    more = [f"and {len(names) - NAMED} more"] if len(names) > NAMED else []
    return ", ".join([*names[:NAMED], *more])


def _value(value: str | None) -> str:
    if value is None:
        return "(not set)"
    return value if len(value) <= _LONGEST_VALUE else f"{value[:_LONGEST_VALUE]}..."


def _plan(attribution: Attribution) -> str:
    plan = attribution.plan
    signs = [f"+{name}" for name in plan.added] + [f"-{name}" for name in plan.removed]
    return f"plan {_few(signs)}" if plan.changed else ""


def _parts(attribution: Attribution) -> str:
    first = attribution.parts[:NAMED]
    named = [part for part in first if part.share is not None and part.share > LEAST_SHARE]
    if not named:
        return ""
    total = attribution.contribution
    size = f"{total:+,.0f}" if abs(total) >= 100 else f"{total:+.3g}"
    return f"of {size} CPU-s/M events {', '.join(map(_part, named))}"


def _part(part: PartChange) -> str:
    name = _OUTSIDE_OF_TASKS if part.kind == OUTSIDE else part.name
    if part.kind == OPERATOR:
        name = f"{part.match} {name}" if part.match != "both" else f"{name} in stage {part.stage}"
    metric = _most_changed(part)
    return f"{part.share:.0%} {name}" + (f" ({metric})" if metric else "")


def _most_changed(part: PartChange) -> str:
    """Return the stopwatch, or the count of tasks, that changed most in the part's direction."""
    for metric in part.metrics:
        if not (metric.name == "tasks" or metric.name.endswith("[s]")) or part.kind == OUTSIDE:
            continue
        ratio = 1.0 if metric.ratio is None else metric.ratio
        if abs(ratio - 1) > _LEAST_METRIC_CHANGE and (ratio > 1) == (part.contribution > 0):
            by = f"x {ratio:.1f}" if ratio >= 2 else f"{ratio - 1:+.0%}"
            return f"{metric.name.removesuffix(' [s]')} {by}"
    return ""


def _waits(attribution: Attribution) -> str:
    side = 1 if attribution.kind is ChangeKind.WAITING else -1
    waits = [wait for wait in attribution.waits if side * wait.longer_s > 0]
    waits.sort(key=lambda wait: -side * wait.longer_s)
    texts = [f"{wait.name} {wait.longer_s:+.1f} s" for wait in waits[:NAMED]]
    return f"waiting in {', '.join(texts)}" if texts else ""
