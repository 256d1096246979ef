"""Compare two plans of a query without running them, and read the confs of a checkpoint."""

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
    """How much two plans of a query differ; the worst difference comes last."""

    SAME = "same"
    CHANGED = "plan changed"  # other operators; their state is the same
    FUNCTIONS = "functions changed"
    """The state has the same types but another meaning, which Spark does not notice."""
    STATE = "state changed"
    """Stateful operators, or types of keys or values, differ: Spark refuses the checkpoint."""


@dataclass(frozen=True)
class QueryPlan:
    """The plan of a query, as `nexmark_jobs.resume_queries` writes it."""

    text: str
    skeleton: str
    exchanges: int
    operators: tuple[Mapping[str, Any], ...]

    @classmethod
    def read(cls, plan: Mapping[str, Any]) -> QueryPlan:
        """Read the plan in a line of the log of `nexmark_jobs.resume_queries`."""
        return cls(plan["text"], plan["skeleton"], plan["exchanges"], tuple(plan["operators"]))

    @property
    def shape(self) -> list[str]:
        """The operators in order, without projections: Spark versions merge those differently."""
        lines = (line.strip() for line in self.skeleton.splitlines())
        return [line for line in lines if line != _PROJECT]

    @property
    def sources(self) -> int:
        """The number of streams that the query reads."""
        return sum(line.startswith(_SOURCE) for line in self.shape)


@dataclass(frozen=True)
class PlanDifference:
    """The worst grade of difference between two plans, and each difference of this grade."""

    change: PlanGrade
    reasons: tuple[str, ...]


def compare(first: QueryPlan, second: QueryPlan, *, same_build: bool) -> PlanDifference:
    """Return how two plans differ.

    Plans of the `same_build` are also compared expression by expression: builds print expressions
    differently.
    """
    differences = list(_differences(first, second, same_build=same_build))
    if not differences:
        return PlanDifference(PlanGrade.SAME, ())
    order = list(PlanGrade)
    worst = max((grade for grade, _ in differences), key=order.index)
    return PlanDifference(worst, tuple(reason for grade, reason in differences if grade == worst))


#: The parts of a stateful operator: the grade of a difference there, and its name in a reason.
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
    """Return the elements that only `one` has, and those that only `other` has.

    If both have the same elements, return those that have another place, or the numbers of both.
    """
    gone = [element for element in one if element not in other]
    new = [element for element in other if element not in one]
    if not gone and not new and len(one) == len(other):
        moved = [pair for pair in zip(one, other, strict=True) if pair[0] != pair[1]]
        gone, new = [before for before, _ in moved], [after for _, after in moved]
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
    """Return the confs in the offset log of a checkpoint; none if no batch was begun."""
    batches = [path for path in (checkpoint / "offsets").glob("*") if path.name.isdigit()]
    if not batches:
        return {}
    lines = min(batches, key=lambda path: int(path.name)).read_text(encoding="utf-8").splitlines()
    confs: dict[str, str] = json.loads(lines[1]).get("conf", {})  # the first line is a version
    return confs


def in_words(confs: Mapping[str, str], operators: str) -> str:
    """Return in words the state store's provider, the partitions, and the state formats.

    `operators` has the names of the query's stateful operators in one string; the formats of other
    operators are left out.
    """
    provider = confs.get(_PROVIDER, "").rsplit(".", 1)[-1].removesuffix("StateStoreProvider")
    words = [provider, f"partitions {confs[_PARTITIONS]}" if _PARTITIONS in confs else ""]
    for key, name in _FORMATS.items():
        matters = key in _OF_ALL or name.removesuffix(" format") in operators
        if matters and confs.get(key) not in (None, _USUAL):
            words.append(f"{name} {confs[key]}")
    return ", ".join(filter(None, words))


def overruled(carried: Mapping[str, str], wanted: Mapping[str, str], who: str) -> list[str]:
    """Return a sentence for each conf of a side that has another value in the checkpoint.

    Args:
        carried: the confs in the checkpoint.
        wanted: the confs that the side has set.
        who: the side, e.g. "the second side".
    """
    return [
        f"{who} asked for {key}={value}, the checkpoint has {carried[key]}"
        for key, value in wanted.items()
        if key in carried and carried[key] != value
    ]
