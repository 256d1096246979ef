"""The explanation of a change, as data."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Kind(StrEnum):
    """What sort of change it is."""

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
class Change:
    """A ratio candidate / baseline with its 95 % interval from the pairs.

    Of four pairs or fewer the interval is the range of their ratios. None where there are no pairs.
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
        """Candidate / baseline; None where the baseline has none."""
        return self.candidate / self.baseline if self.baseline else None


@dataclass(frozen=True)
class PartChange:
    """How much a part of the query contributes to the change.

    ``kind`` is operator, stage (what of a stage is in no operator), tasks (starting them) or
    outside (of task threads); ``match`` both, added (only the candidate has it) or removed.
    ``place`` and ``baseline_place`` count operators from the top of each arm's plan.
    ``covers`` names operators whose time is in this one's, for they have no stopwatch.

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
    change: Change | None
    estimated: bool
    place: int | None = None
    baseline_place: int | None = None
    depth: int = 0
    stage: int | None = None
    covers: tuple[str, ...] = ()
    metrics: tuple[MetricChange, ...] = ()


@dataclass(frozen=True)
class PlanChange:
    """How the plans differ. ``changed``: other operators, or exchanges by other keys.

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
    """A Spark conf that the arms do not share; None where it is not set."""

    name: str
    candidate: str | None
    baseline: str | None


@dataclass(frozen=True)
class Wait:
    """A step of the driver, or what threads of a stage did not use the CPU for.

    Seconds of a repetition, medians, on the basis of the attribution; those of stages are summed
    over the task threads. ``change`` is the ratio of the pairs.
    """

    name: str
    candidate_s: float
    baseline_s: float
    change: Change | None = None


@dataclass(frozen=True)
class Attribution:
    """Why a query is slower or faster than the baseline, or that there is nothing to explain.

    ``cpu`` is the change of CPU time: the verdict's where the gate gave one, else of the pairs;
    ``wall`` that of wall-clock time. ``candidate`` and ``baseline`` are CPU-seconds per million
    events on ``basis`` (steady, application), means over the ``pairs``. ``paired`` is False where
    the arms were not measured in turns (the baseline is of another night). ``parts`` are ranked:
    what contributes most to the change first. ``waits`` likewise, by seconds. ``notes`` say what
    could not be known, and why.
    """

    query: str
    kind: Kind
    cpu: Change
    wall: Change | None
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


__all__ = [
    "Attribution",
    "Change",
    "ConfDifference",
    "Kind",
    "MetricChange",
    "PartChange",
    "PlanChange",
    "Wait",
]
