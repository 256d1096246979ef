"""Repetitions with parts, so that a test states only what differs between the arms."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from nexmark.attribution.attribute import attribute
from nexmark.attribution.explained import Attribution, Observed, Plan
from nexmark.measure.executed_plan import OPERATOR, OUTSIDE, PHASE, STAGE, Part

PLAN = ("Project", "StateStoreSave", "Exchange (auction)", "HashAggregate", "MicroBatchScan")
EVENTS = 1_000_000
NOISE = (0.99, 1.0, 1.01, 1.0, 0.995, 1.005)


def plan(names: Sequence[str] = PLAN, text: str | None = None) -> Plan:
    skeleton = "\n".join("  " * depth + name for depth, name in enumerate(names))
    return Plan(text or skeleton, skeleton, str(hash(skeleton)))


def parts(
    costs: Mapping[str, float],
    names: Sequence[str] = PLAN,
    metrics: Mapping[str, Mapping[str, float]] | None = None,
    phases: Mapping[str, float] | None = None,
) -> tuple[Part, ...]:
    """A plan in a line, with stage 1 below the exchange; ``costs`` are CPU-seconds by name."""
    exchange = next((x for x, name in enumerate(names) if name.startswith("Exchange")), len(names))
    found = [
        Part(
            place,
            OPERATOR,
            name,
            costs.get(name),
            place - 1 if place else None,
            place,
            1 if place >= exchange else 2,
            metrics=dict((metrics or {}).get(name, {})),
        )
        for place, name in enumerate(names)
    ]
    for number in (1, 2):
        name = f"rest of stage {number}"
        spent = {"time of tasks [s]": 9.0, "CPU of tasks [s]": 8.0}
        found.append(
            Part(len(found), STAGE, name, costs.get(name, 1.0), stage=number, metrics=spent)
        )
    found.append(Part(len(found), OUTSIDE, "outside of tasks", costs.get("outside of tasks", 2.0)))
    for name, spent_s in (phases or {"addBatch": 5.0, "triggerExecution": 6.0}).items():
        found.append(Part(len(found), PHASE, name, metrics={"time [s]": spent_s}))
    return tuple(found)


def arm(
    costs: Mapping[str, float] | None = None,
    names: Sequence[str] = PLAN,
    *,
    wall_s: float = 10.0,
    pairs: int = 6,
    noise: Sequence[float] = NOISE,
    metrics: Mapping[str, Mapping[str, float]] | None = None,
    phases: Mapping[str, float] | None = None,
    **fields: Any,
) -> list[Observed]:
    """The repetitions of an arm, with noise; the CPU time is the sum of the parts'."""
    found = []
    for number in range(1, pairs + 1):
        wild = {name: cost * noise[(number - 1) % 6] for name, cost in (costs or {}).items()}
        own = parts({"StateStoreSave": 4.0, "HashAggregate": 2.0} | wild, names, metrics, phases)
        values: dict[str, Any] = {
            "basis": "steady",
            "events": EVENTS,
            "cpu_s_per_mevent": sum(part.cpu_s or 0 for part in own),
            "wall_s": wall_s * noise[(number + 1) % 6],
            "plan": plan(names),
            "formulation": "panes",
            "confs": {"spark.sql.shuffle.partitions": "2"},
            "parts": own,
        }
        found.append(Observed(number, 1, **{**values, **fields}))
    return found


def explained(candidate: list[Observed], baseline: list[Observed], **given: Any) -> Attribution:
    found = attribute("q5", candidate, baseline, **given)
    assert found is not None
    return found
