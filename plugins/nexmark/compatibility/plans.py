"""Two plans of a query compared, without running either; and the confs of a checkpoint."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

_PROJECT = "Project"
_SOURCE = "StreamingRelation"
_SHOWN = 60


class PlanGrade(StrEnum):
    """The kinds of difference between two plans, the worst last."""

    SAME = "same"
    CHANGED = "plan changed"  # other operators; their state is the same
    FUNCTIONS = "functions changed"
    """State of the same types that means something else: Spark does not notice."""
    STATE = "state changed"
    """Other stateful operators, or keys or values of other types: Spark refuses the checkpoint."""


@dataclass(frozen=True)
class QueryPlan:
    """A query's plan, as `nexmark_jobs.run_halves` describes it."""

    text: str
    skeleton: str
    exchanges: int
    operators: tuple[Mapping[str, Any], ...]

    @classmethod
    def read(cls, found: Mapping[str, Any]) -> QueryPlan:
        """The plan in a line of the log."""
        return cls(found["text"], found["skeleton"], found["exchanges"], tuple(found["operators"]))

    @property
    def shape(self) -> list[str]:
        """The operators in their order; without projections, which versions merge differently."""
        lines = (line.strip() for line in self.skeleton.splitlines())
        return [line for line in lines if line != _PROJECT]

    @property
    def sources(self) -> int:
        """Number of streams read."""
        return sum(line.startswith(_SOURCE) for line in self.shape)


@dataclass(frozen=True)
class PlanDifference:
    """The worst difference of two plans, and each difference in a few words."""

    change: PlanGrade
    reasons: tuple[str, ...]


def compare(first: QueryPlan, second: QueryPlan, *, same_build: bool) -> PlanDifference:
    """The difference of two plans; of the `same_build` to the last expression."""
    found = list(_differences(first, second, same_build=same_build))
    if not found:
        return PlanDifference(PlanGrade.SAME, ())
    order = list(PlanGrade)
    worst = max((change for change, _ in found), key=order.index)
    return PlanDifference(worst, tuple(reason for change, reason in found if change == worst))


#: The parts of a stateful operator: how bad another one is, and how it is called.
_PARTS = {
    "key_types": (PlanGrade.STATE, "types of the keys of"),
    "value_types": (PlanGrade.STATE, "types of the values of"),
    "keys": (PlanGrade.FUNCTIONS, "keys of"),
    "functions": (PlanGrade.FUNCTIONS, "functions of"),
    "inputs": (PlanGrade.FUNCTIONS, "input of"),
}


def _differences(
    first: QueryPlan, second: QueryPlan, *, same_build: bool
) -> Iterator[tuple[PlanGrade, str]]:
    names = [[str(operator["name"]) for operator in plan.operators] for plan in (first, second)]
    if names[0] != names[1]:
        change = " -> ".join(", ".join(each) or "none" for each in names)
        yield PlanGrade.STATE, f"stateful operators: {change}"
    elif first.sources != second.sources:
        yield PlanGrade.STATE, f"sources: {first.sources} -> {second.sources}"
    else:
        for one, other in zip(first.operators, second.operators, strict=True):
            for part, (grade, called) in _PARTS.items():
                if one[part] != other[part]:
                    change = _changed(one[part], other[part])
                    yield grade, f"{called} the {one['name']}: {change}"
    if first.shape != second.shape:
        moved = f"exchanges: {first.exchanges} -> {second.exchanges}"
        same = first.exchanges == second.exchanges
        yield PlanGrade.CHANGED, "other operators or exchange keys" if same else moved
    elif same_build and first.text != second.text:
        yield PlanGrade.CHANGED, "an expression differs"


def _changed(one: Sequence[str], other: Sequence[str]) -> str:
    """The elements that differ: those gone and those new, or, if there are none, those moved."""
    gone = [x for x in one if x not in other]
    new = [x for x in other if x not in one]
    if not gone and not new and len(one) == len(other):
        pairs = [(x, y) for x, y in zip(one, other, strict=True) if x != y]
        gone, new = [x for x, _ in pairs], [y for _, y in pairs]
    if not gone and not new:
        return f"{len(one)} -> {len(other)}"
    return f"{_listed(gone)} -> {_listed(new)}"


def _listed(elements: Sequence[str]) -> str:
    text = ", ".join(elements) or "none"
    return text if len(text) <= _SHOWN else f"{text[: _SHOWN - 3]}..."


_PROVIDER = "spark.sql.streaming.stateStore.providerClass"
_PARTITIONS = "spark.sql.shuffle.partitions"
_OF_ALL = {
    "spark.sql.streaming.stateStore.encodingFormat": "encoding",
    "spark.sql.streaming.stateStore.checkpointFormatVersion": "checkpoint format",
}
_FORMATS = {
    "spark.sql.streaming.aggregation.stateFormatVersion": "aggregation format",
    "spark.sql.streaming.join.stateFormatVersion": "join format",
    **_OF_ALL,
}
_USUAL = "unsaferow"


def carried_confs(checkpoint: Path) -> dict[str, str]:
    """The confs in the offset log of a checkpoint; empty if no batch was begun."""
    batches = [path for path in (checkpoint / "offsets").glob("*") if path.name.isdigit()]
    if not batches:
        return {}
    lines = min(batches, key=lambda path: int(path.name)).read_text(encoding="utf-8").splitlines()
    found: dict[str, str] = json.loads(lines[1]).get("conf", {})  # the first line is a version
    return found


def in_words(confs: Mapping[str, str], operators: str) -> str:
    """Provider, partitions, and the formats that matter to `operators`, the names of them."""
    provider = confs.get(_PROVIDER, "").rsplit(".", 1)[-1].removesuffix("StateStoreProvider")
    said = [provider, f"partitions {confs[_PARTITIONS]}" if _PARTITIONS in confs else ""]
    for key, name in _FORMATS.items():
        matters = key in _OF_ALL or name.removesuffix(" format") in operators
        if matters and confs.get(key) not in (None, _USUAL):
            said.append(f"{name} {confs[key]}")
    return ", ".join(filter(None, said))


def overruled(carried: Mapping[str, str], wanted: Mapping[str, str], who: str) -> list[str]:
    """The confs that `who` has set and the checkpoint overrules, in words."""
    return [
        f"{who} asked for {key}={value}, the checkpoint has {carried[key]}"
        for key, value in wanted.items()
        if key in carried and carried[key] != value
    ]
