"""The repetitions that a change is explained by, and the explanation: as data, and in one line."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from nexmark.measure.executed_plan import OPERATOR, OUTSIDE, Part

NAMED = 3
"""The largest number of confs, and of parts, that a sentence names."""
LEAST_SHARE = 0.05
_TELLING = 0.1
_LONGEST_VALUE = 40
_OUTSIDE_OF_TASKS = "outside of tasks (JVM: start-up, compiler, garbage collection, network)"


@dataclass(frozen=True)
class Plan:
    """The plan of a query in the job: normalised text, operators, hash of the operators."""

    text: str
    skeleton: str
    skeleton_hash: str


@dataclass(frozen=True)
class Observed:
    """One repetition that counts.

    ``cpu_s_per_mevent`` (CPU-seconds per million events), ``parts`` and ``events`` are of the
    period ``basis``, ``wall_s`` of the whole run. ``problem`` says why there are no ``parts``.
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
    """The class of a change."""

    SLOWER_PLAN_CHANGED = "slower, plan changed"
    SLOWER = "slower, same operators"
    FASTER_PLAN_CHANGED = "faster, plan changed"
    FASTER = "faster, same operators"
    PLAN_CHANGED = "same speed, plan changed"
    """A warning: tomorrow's data may not be as kind."""
    WAITING = "waiting"
    """More wall-clock time without more CPU time."""
    WAITING_LESS = "waiting less"
    NOTHING = "nothing to explain"


@dataclass(frozen=True)
class CostChange:
    """A ratio candidate / baseline with its 95 % interval (of four pairs or fewer, the range)."""

    ratio: float
    lo: float | None = None
    hi: float | None = None


@dataclass(frozen=True)
class MetricChange:
    """A metric of Spark's in both arms, median over the repetitions; its unit is in ``name``."""

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
    outside (of task threads); ``match`` both, added (only the candidate has it) or removed. Places
    count operators from the top of each arm's plan. ``covers`` names operators without a stopwatch,
    whose time this part includes. ``metrics`` are Spark's own, those that changed most first.

    ``candidate``, ``baseline`` and ``contribution`` (their difference, with its 95 % interval) are
    CPU-seconds per million events, means over the pairs, so that all contributions add up to the
    change of the query; ``share`` is of that, None where it has not changed. ``change`` is the
    ratio of the pairs, None where an arm has nothing. ``estimated``: split by Spark's stopwatches.
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

    ``diff`` is a unified diff of the normalised texts, there too where only expressions differ.
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
    """A step of the driver, or the time that the threads of a stage waited: median seconds."""

    name: str
    candidate_s: float
    baseline_s: float
    change: CostChange | None = None


@dataclass(frozen=True)
class Attribution:
    """Why a query is slower or faster than the baseline, or that there is nothing to explain.

    ``cpu`` is the change of CPU time: from the verdict if the gate gave one, else from the pairs.
    ``candidate`` and ``baseline`` are CPU-seconds per million events on ``basis``, means over the
    ``pairs``; not ``paired``: the baseline is from another night. ``parts`` are ranked by their
    contribution, ``waits`` by seconds. ``notes`` name unknown facts, with the reason.
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
    """Return the explanation of the change, in order: confs, plan, parts; "" for nothing."""
    waiting = (ChangeKind.WAITING, ChangeKind.WAITING_LESS)
    said = [_confs(attribution), _plan(attribution)]
    said += [_waits(attribution)] if attribution.kind in waiting else [_parts(attribution)]
    return "; ".join(part for part in said if part)


def _confs(attribution: Attribution) -> str:
    every = [f"{x.name} {_value(x.baseline)} -> {_value(x.candidate)}" for x in attribution.confs]
    return f"conf {_few(every)}" if every else ""


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
    named = [x for x in attribution.parts[:NAMED] if x.share is not None and x.share > LEAST_SHARE]
    if not named:
        return ""
    total = attribution.contribution
    size = f"{total:+,.0f}" if abs(total) >= 100 else f"{total:+.3g}"
    return f"of {size} CPU-s/M events {', '.join(map(_part, named))}"


def _part(part: PartChange) -> str:
    name = _OUTSIDE_OF_TASKS if part.kind == OUTSIDE else part.name
    if part.kind == OPERATOR:
        name = f"{part.match} {name}" if part.match != "both" else f"{name} in stage {part.stage}"
    metric = _telling(part)
    return f"{part.share:.0%} {name}" + (f" ({metric})" if metric else "")


def _telling(part: PartChange) -> str:
    """Return the stopwatch, or the count of tasks, that changed most."""
    for metric in part.metrics:
        if not (metric.name == "tasks" or metric.name.endswith("[s]")) or part.kind == OUTSIDE:
            continue
        ratio = 1.0 if metric.ratio is None else metric.ratio
        if abs(ratio - 1) > _TELLING and (ratio > 1) == (part.contribution > 0):
            by = f"x {ratio:.1f}" if ratio >= 2 else f"{ratio - 1:+.0%}"
            return f"{metric.name.removesuffix(' [s]')} {by}"
    return ""


def _waits(attribution: Attribution) -> str:
    side = 1 if attribution.kind is ChangeKind.WAITING else -1
    rows = [x for x in attribution.waits if side * (x.candidate_s - x.baseline_s) > 0]
    rows.sort(key=lambda x: -side * (x.candidate_s - x.baseline_s))
    found = [f"{x.name} {x.candidate_s - x.baseline_s:+.1f} s" for x in rows[:NAMED]]
    return f"waiting in {', '.join(found)}" if found else ""
