"""The repetitions that a change is explained by, and the explanation, as data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from nexmark.measure.executed_plan import Part


@dataclass(frozen=True)
class Plan:
    """The plan of a query in the job: normalised text, operators, hash of the operators."""

    text: str
    skeleton: str
    skeleton_hash: str


@dataclass(frozen=True)
class Observed:
    """One repetition that counts.

    ``basis`` is the period of ``cpu_s_per_mevent`` (CPU-seconds per million events) and of the
    ``parts``: the steady state or the whole application; ``events`` is its number of events.
    ``wall_s`` covers the whole run. ``parts`` is empty if the event log could not be read;
    ``problem`` says why.
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
    SLOWER = "slower, same plan"
    FASTER_PLAN_CHANGED = "faster, plan changed"
    FASTER = "faster, same plan"
    PLAN_CHANGED = "same speed, plan changed"
    """A warning: tomorrow's data may not be as kind."""
    WAITING = "waiting"
    """More wall-clock time without more CPU time."""
    WAITING_LESS = "waiting less"
    NOTHING = "nothing to explain"


@dataclass(frozen=True)
class CostChange:
    """A ratio candidate / baseline with its 95 % interval from the pairs.

    With four pairs or fewer the interval is the range of their ratios. None without pairs.
    """

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

    ``kind`` is operator, stage (the rest of a stage, outside its operators), tasks (starting them)
    or outside (of task threads); ``match`` both, added (only the candidate has it) or removed.
    ``place`` and ``baseline_place`` count operators from the top of each arm's plan.
    ``covers`` names operators without a stopwatch; the time of this part includes theirs.

    ``candidate``, ``baseline`` and ``contribution`` (their difference) are CPU-seconds per million
    events, means over the pairs, so that the contributions of all parts add up to the change of the
    query; ``lo`` and ``hi`` are the 95 % interval of the contribution. ``share`` is the part of the
    query's change, None where it has not changed. ``change`` is the ratio of the pairs, None where
    an arm has nothing. ``estimated``: split by Spark's stopwatches, not measured
    (``measure.operator_times``). ``metrics`` are Spark's own, those that changed most first.
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

    ``added`` and ``removed`` name the operators. ``diff`` is a unified diff of the normalised
    texts, from baseline to candidate; it is there too where only expressions or numbers of
    partitions differ, and then ``changed`` is False.
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
    """A step of the driver, or the time that the threads of a stage waited.

    Figures are median seconds of a repetition, on the basis of the attribution; for a stage they
    are summed over its task threads. ``change`` is the ratio of the pairs.
    """

    name: str
    candidate_s: float
    baseline_s: float
    change: CostChange | None = None


@dataclass(frozen=True)
class Attribution:
    """Why a query is slower or faster than the baseline, or that there is nothing to explain.

    ``cpu`` is the change of CPU time: from the verdict if the gate gave one, else from the pairs.
    ``wall`` is the change of wall-clock time. ``candidate`` and ``baseline`` are CPU-seconds per
    million events on ``basis`` (steady, application), means over the ``pairs``. ``paired`` is False
    if the arms were not measured in turns (the baseline is from another night). ``parts`` are
    ranked by their contribution to the change, the largest first; ``waits`` are ranked by seconds.
    ``notes`` name unknown facts, with the reason.
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
