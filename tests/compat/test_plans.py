"""Two plans compared without Spark: which difference is found, and how it is said."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from nexmark.compatibility.cases import Case
from nexmark.compatibility.plans import PlanGrade, QueryPlan, compare
from nexmark.compatibility.results import Compatibility, Restart, RestartOutcome, UpgradeClass

SKELETON = """Project
  StateStoreSave
    Exchange (auction)
      Project
        StreamingRelation"""


def aggregation(**changed: tuple[str, ...] | str) -> dict[str, Any]:
    return {
        "name": "aggregation",
        "keys": ("auction",),
        "key_types": ("bigint",),
        "value_types": ("bigint", "bigint"),
        "functions": ("count(1)", "max(price)"),
        "inputs": ("filter (n < 10)",),
    } | changed


PLAN = QueryPlan("text", SKELETON, 1, (aggregation(),))


def grade(other: QueryPlan, *, same_build: bool = True) -> tuple[PlanGrade, tuple[str, ...]]:
    found = compare(PLAN, other, same_build=same_build)
    return found.change, found.reasons


@pytest.mark.parametrize(
    ("changed", "expected", "reason"),
    [
        ({"key_types": ("int",)}, PlanGrade.STATE, "types of the keys of the aggregation: bigint"),
        (
            {"value_types": ("bigint",) * 3},
            PlanGrade.STATE,
            "types of the values of the aggregation: 2 -> 3",
        ),
        ({"name": "inner join"}, PlanGrade.STATE, "stateful operators: aggregation -> inner join"),
        (
            {"functions": ("max(price)", "count(1)")},
            PlanGrade.FUNCTIONS,
            "functions of the aggregation: count(1), max(price) -> max(price), count(1)",
        ),
        (
            {"inputs": ("filter (n < 10)", "filter (price > 1)")},
            PlanGrade.FUNCTIONS,
            "input of the aggregation: none -> filter (price > 1)",
        ),
        (
            {"keys": ("seller",)},
            PlanGrade.FUNCTIONS,
            "keys of the aggregation: auction -> seller",
        ),
    ],
)
def test_a_changed_operator(changed: dict[str, Any], expected: PlanGrade, reason: str) -> None:
    found, reasons = grade(replace(PLAN, operators=(aggregation(**changed),)))
    assert found is expected
    assert reasons[0].startswith(reason)


def test_the_worst_difference_counts() -> None:
    changed = aggregation(key_types=("int",), functions=("max(price)", "count(1)"))
    found, reasons = grade(replace(PLAN, operators=(changed,)))
    assert found is PlanGrade.STATE
    assert len(reasons) == 1


def test_another_source_or_shape() -> None:
    more = replace(PLAN, skeleton=f"{SKELETON}\n      StreamingRelation")
    assert grade(more) == (PlanGrade.STATE, ("sources: 1 -> 2",))
    moved = replace(PLAN, skeleton=SKELETON.replace("(auction)", "(bidder)"))
    assert grade(moved) == (PlanGrade.CHANGED, ("other operators or exchange keys",))


def test_builds_differ_in_projections_and_in_how_they_write_expressions() -> None:
    other = replace(PLAN, text="other", skeleton=f"Project\n{SKELETON}")
    assert grade(other, same_build=False) == (PlanGrade.SAME, ())
    assert grade(other) == (PlanGrade.CHANGED, ("an expression differs",))


RIGHT, WRONG = (
    Restart(RestartOutcome.RIGHT),
    Restart(RestartOutcome.WRONG, reason="3 of 9 rows differ"),
)
REFUSED = Restart(RestartOutcome.REFUSED, "SOME_CLASS", "[SOME_CLASS] no")
FUNCTIONS = aggregation(functions=("count(price)", "max(price)"))


@pytest.mark.parametrize(
    ("operator", "forward", "backward", "expected"),
    [
        (aggregation(), RIGHT, RIGHT, UpgradeClass.SAME),
        (aggregation(), RIGHT, WRONG, UpgradeClass.WRONG),
        (aggregation(), WRONG, REFUSED, UpgradeClass.INCOMPATIBLE),
        (aggregation(), Restart(RestartOutcome.NOT_BEGUN), None, UpgradeClass.UNKNOWN),
        (FUNCTIONS, RIGHT, RIGHT, UpgradeClass.CHANGED),
        (FUNCTIONS, None, None, UpgradeClass.WRONG),
        (aggregation(key_types=("int",)), None, None, UpgradeClass.INCOMPATIBLE),
    ],
)
def test_the_outcome_decides_and_the_plans_where_nothing_was_run(
    operator: dict[str, Any],
    forward: Restart | None,
    backward: Restart | None,
    expected: UpgradeClass,
) -> None:
    other = replace(PLAN, operators=(operator,))
    difference = compare(PLAN, other, same_build=True)
    case = Case("q17", "a", "b")
    assert Compatibility(case, (PLAN, other), difference, forward, backward).class_ is expected
