"""A physical plan from the event log: its operators in order, cut into stages."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from difflib import SequenceMatcher
from typing import Any

from nexmark_jobs.plan_fingerprint import skeleton_line

_CODEGEN = re.compile(r"WholeStageCodegen \((\d+)\)")
_WRAPPERS = re.compile(r"InputAdapter|AdaptiveSparkPlan|ResultQueryStage|\w+QueryStage")
_EXCHANGES = ("Exchange", "BroadcastExchange")
_DIVISOR = {"timing": 1e3, "nsTiming": 1e9}
_UNITS = {"timing": "s", "nsTiming": "s", "size": "bytes"}
_LEVELS = frozenset({"memory used by state", "number of total state rows"})
"""Metrics that give a level after a batch, so that the values of batches are not added up."""
_LEFT_OUT = re.compile(
    r"peak memory|number of partitions|.*\b(merged|blocks|reqs)\b.*|duration|task commit time"
    r"|local bytes read|records read|count of cache .*|number of state store instances"
    r"|estimated size of state only on current version|number of (snapshots|stores) that .*"
)
"""Metrics whose values cannot be added up, or that nobody compares."""
_DECIMALS = 6
_LEFT_OUT_TYPES = frozenset({"average", "v2Custom"})

OPERATOR, STAGE, TASKS, OUTSIDE, PHASE = "operator", "stage", "tasks", "outside", "phase"
"""Kinds of parts: CPU time of the first two is estimated. A phase is a step of the driver."""


@dataclass(frozen=True)
class SqlMetric:
    """A SQL metric: its name and its type in Spark (sum, size (bytes), timing (ms), nsTiming)."""

    name: str
    type: str

    @property
    def key(self) -> str:
        """Its name with its unit, as in ``time to commit changes [s]``."""
        unit = _UNITS.get(self.type)
        return f"{self.name} [{unit}]" if unit else self.name

    def over_batches(self, values: Sequence[int]) -> float:
        """Return the sum of the values of all batches; for a level, the highest value."""
        value = max(values) if self.name in _LEVELS else sum(values)
        return round(value / _DIVISOR.get(self.type, 1), _DECIMALS)


@dataclass(frozen=True)
class Part:
    """A part of the work of a repetition.

    Operators come first, in the order of the printed plan, and are named as in its skeleton.
    ``place`` is the number of a part in that order. ``parent`` is the place of the operator that
    takes its rows, ``covers`` the places of the operators whose time this part includes. ``stage``
    is the number of its stage in the plan; an exchange is in the stage that writes it. ``metrics``
    are by name with unit. ``cpu_s`` is in CPU-seconds; None where it is not known (steps of the
    driver, since only executors are measured).
    """

    place: int
    kind: str
    name: str
    cpu_s: float | None = None
    parent: int | None = None
    depth: int = 0
    stage: int | None = None
    covers: tuple[int, ...] = ()
    metrics: Mapping[str, float] = field(default_factory=dict)


@dataclass
class PlanNode:
    """An operator in the plan of one batch, with its metrics by the id of their accumulator."""

    place: int
    parent: int | None
    depth: int
    name: str
    codegen: int | None
    metrics: Mapping[int, SqlMetric]
    stage: int = 0

    @property
    def is_exchange(self) -> bool:
        """Whether another stage reads its output."""
        return self.name.partition(" ")[0] in _EXCHANGES

    def operator(self, values: Mapping[SqlMetric, float]) -> Part:
        """Return the operator with its metrics; its CPU time is not known yet."""
        metrics: dict[str, float] = {}
        for metric, value in values.items():
            if value:
                metrics[metric.key] = metrics.get(metric.key, 0.0) + value
        return Part(
            self.place,
            OPERATOR,
            self.name,
            parent=self.parent,
            depth=self.depth,
            stage=self.stage,
            metrics=dict(sorted(metrics.items())),
        )


def nodes_of(plan: Mapping[str, Any]) -> list[PlanNode]:
    """Return the operators of a ``sparkPlanInfo`` as the plan is printed, without wrappers.

    A plan is cut into stages below every exchange. They are numbered from the bottom of the printed
    plan up, so stage 1 reads a source.
    """
    nodes: list[PlanNode] = []
    stack: list[tuple[Mapping[str, Any], int | None, int | None]] = [(plan, None, None)]
    while stack:
        info, parent, codegen = stack.pop()
        generated = _CODEGEN.fullmatch(info["nodeName"])
        if generated:
            codegen = int(generated[1])
        elif _WRAPPERS.fullmatch(info["nodeName"]):
            codegen = None
        else:
            depth = 0 if parent is None else nodes[parent].depth + 1
            metrics = _metrics(info)
            name = skeleton_line(info["simpleString"]) or info["nodeName"]
            nodes.append(PlanNode(len(nodes), parent, depth, name, codegen, metrics))
            parent = nodes[-1].place
        stack.extend((child, parent, codegen) for child in reversed(info["children"]))
    _number_stages(nodes)
    return nodes


def printed(plan: Mapping[str, Any]) -> str:
    """Return the text of a ``sparkPlanInfo`` as Spark prints a plan, without wrappers."""
    lines: list[str] = []
    stack: list[tuple[Mapping[str, Any], int]] = [(plan, 0)]
    while stack:
        info, depth = stack.pop()
        wraps = _CODEGEN.fullmatch(info["nodeName"]) or _WRAPPERS.fullmatch(info["nodeName"])
        if not wraps:
            branch = "   " * (depth - 1) + "+- " if depth else ""
            lines.append(branch + " ".join(info["simpleString"].splitlines()))
        below = depth if wraps else depth + 1
        stack.extend((child, below) for child in reversed(info["children"]))
    return "\n".join(lines)


def _metrics(info: Mapping[str, Any]) -> dict[int, SqlMetric]:
    return {
        metric["accumulatorId"]: SqlMetric(metric["name"], metric["metricType"])
        for metric in info["metrics"]
        if metric["metricType"] not in _LEFT_OUT_TYPES and not _LEFT_OUT.fullmatch(metric["name"])
    }


def _number_stages(nodes: Sequence[PlanNode]) -> None:
    """Give each operator the number of its stage."""
    left = sum(node.parent is None or node.is_exchange for node in nodes)
    for node in nodes:
        if node.parent is None or node.is_exchange:
            node.stage = left
            left -= 1
        else:
            node.stage = nodes[node.parent].stage


def places_in_reference(
    plan: Sequence[PlanNode], reference: Sequence[PlanNode]
) -> list[int | None]:
    """Return for each operator of a plan its place in the reference plan; None if it has none."""
    ours, theirs = ([node.name for node in nodes] for nodes in (plan, reference))
    if ours == theirs:
        return list(range(len(plan)))
    places: list[int | None] = [None] * len(plan)
    for block in SequenceMatcher(None, ours, theirs, autojunk=False).get_matching_blocks():
        for offset in range(block.size):
            places[block.a + offset] = block.b + offset
    return places
