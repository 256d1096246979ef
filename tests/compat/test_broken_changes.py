"""Checkpoints of a query continued by the same query and by changed ones, in one application."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from nexmark.compatibility.cases import Case, Input, Side
from nexmark.compatibility.check import check
from nexmark.compatibility.plans import PlanGrade
from nexmark.compatibility.results import Compatibility, UpgradeClass, matrix
from nexmark.engines import Build
from nexmark_jobs.host.processes import marked
from tests.conftest import ENGINES

pytestmark = pytest.mark.spark

FILE = Path(__file__).with_name("broken_changes.py")
EVENTS = Input(events=2000, tps=100, formulations=FILE)
CHEAP = {"spark.sql.shuffle.partitions": "1", "spark.sql.codegen.wholeStage": "false"}
UNCHANGED = (Case("q11", "session_window", "session_window"), Case("q20", "join", "join"))
KEY, VALUE = (f"STATE_STORE_{part}_SCHEMA_NOT_COMPATIBLE" for part in ("KEY", "VALUE"))
INCOMPATIBLE, WRONG = UpgradeClass.INCOMPATIBLE, UpgradeClass.WRONG
BROKEN = {
    "key_type": (
        INCOMPATIBLE,
        KEY,
        "types of the keys of the aggregation: bigint -> string",
    ),
    "added_aggregate": (
        INCOMPATIBLE,
        VALUE,
        "types of the values of the aggregation: ",
    ),
    "count_as_max": (
        WRONG,
        "",
        "functions of the aggregation: count(1) -> max(bidder)",
    ),
    "added_filter": (WRONG, "", "input of the aggregation: none -> filter (price > "),
    "auctions_first": (
        INCOMPATIBLE,
        VALUE,
        "types of the values of the inner join: left (bigint, ",
    ),
    "other_order": (
        WRONG,
        "",
        "functions of the aggregation: min(price), max(price) -> ",
    ),
}


def case_of(change: str) -> Case:
    query, before = ("q20", "join") if change == "auctions_first" else ("q17", "aggregate")
    return Case(query, before, change)


@pytest.fixture(scope="module")
def temporary(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("temporary")


@pytest.fixture(scope="module")
def found(engine_build: Callable[[str], Build], temporary: Path) -> Mapping[Case, Compatibility]:
    side = Side(engine_build(ENGINES[0]), CHEAP)
    cases = [*UNCHANGED, *map(case_of, BROKEN)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tempfile, "tempdir", str(temporary))
        compared = check(side, side, cases, EVENTS, lambda _: None, backward=False)
    return {each.case: each for each in compared}


@pytest.mark.parametrize("case", UNCHANGED, ids=str)
def test_an_unchanged_query_is_the_same(found: Mapping[Case, Compatibility], case: Case) -> None:
    each = found[case]
    assert (each.class_, each.reason) == (UpgradeClass.SAME, "")
    assert each.difference is not None
    assert each.difference.change is PlanGrade.SAME
    assert (str(each.forward), str(each.backward)) == ("right", "right")


@pytest.mark.parametrize("change", BROKEN)
def test_a_broken_change_is_classified(found: Mapping[Case, Compatibility], change: str) -> None:
    each = found[case_of(change)]
    class_, error_class, reason = BROKEN[change]
    assert each.forward is not None
    assert (each.class_, each.forward.error_class) == (class_, error_class), each.reason
    assert each.reason.startswith(reason)
    assert each.difference is not None
    by_plan = PlanGrade.STATE if class_ is INCOMPATIBLE else PlanGrade.FUNCTIONS
    assert each.difference.change is by_plan


def test_the_matrix_says_it_in_a_row_each(found: Mapping[Case, Compatibility]) -> None:
    rows = matrix(list(found.values())).splitlines()
    assert rows[-1] == "8 compared: 2 same, 3 state incompatible, 3 silently wrong"
    row = next(row for row in rows if "count_as_max" in row)
    for part in ("silently wrong", "functions changed", "HDFSBacked, partitions 1", "count(1) -> "):
        assert part in row


def test_nothing_is_left(found: Mapping[Case, Compatibility], temporary: Path) -> None:
    assert list(temporary.iterdir()) == []
    assert marked(str(temporary)) == {}
