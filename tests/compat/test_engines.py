"""Every stateful query of a running job survives the upgrade, and the way back."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from nexmark.compatibility import Case, Class, Input, Side, check, matrix
from nexmark.engines import Build
from nexmark_jobs.queries import QUERIES
from tests.conftest import ENGINES

STATEFUL = 16
ROCKSDB = {
    "spark.sql.streaming.stateStore.providerClass": (
        "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
    )
}
JOIN = "spark.sql.streaming.join.stateFormatVersion"
CHECKPOINT = "spark.sql.streaming.stateStore.checkpointFormatVersion"


@pytest.mark.long
@pytest.mark.spark
@pytest.mark.parametrize("engine", [ENGINES[0], ENGINES[-1]])
def test_every_stateful_query_goes_on(engine: str, engine_build: Callable[[str], Build]) -> None:
    first, second = Side(engine_build(engine)), Side(engine_build(ENGINES[0]))
    cases = []
    for query in QUERIES.values():
        name = query.formulation(first.build.version).name
        cases.append(Case(query.name, name, name))
    found = check(first, second, cases, Input(), print, only_stateful=True)
    print(matrix(found))
    assert [(each.case.query, each.reason) for each in found if each.class_ != Class.SAME] == []
    assert len(found) == STATEFUL


@pytest.mark.long
@pytest.mark.spark
@pytest.mark.parametrize(
    ("case", "conf", "says"),
    [
        (Case("q11", "session_window", "session_window"), {CHECKPOINT: "2"}, "v2"),
        (Case("q20", "join", "join"), {JOIN: "3"}, "valid versions are 1 and 2"),
        (Case("q20", "join", "join"), {JOIN: "4"}, "valid versions are 1 and 2"),
    ],
)
def test_a_format_that_the_older_engine_does_not_know_cannot_go_back(
    case: Case, conf: dict[str, str], says: str, engine_build: Callable[[str], Build]
) -> None:
    first = Side(engine_build(ENGINES[0]), ROCKSDB | conf)
    second = Side(engine_build(ENGINES[-1]), ROCKSDB)
    (found,) = check(first, second, [case], Input(events=2000), print, backward=False)
    print(matrix([found]))
    assert found.class_ == Class.INCOMPATIBLE
    assert says in found.reason


@pytest.mark.long
@pytest.mark.spark
def test_state_of_ones_own_goes_on_and_back(engine_build: Callable[[str], Build]) -> None:
    """By `transformWithState`, which only engines from 4.1 on have."""
    sides = [Side(engine_build(engine), ROCKSDB) for engine in ENGINES[:2]]
    case = Case("long_window", "retraction", "retraction")
    (found,) = check(sides[1], sides[0], [case], Input(events=2000), print)
    print(matrix([found]))
    assert (str(found.forward), str(found.backward)) == ("right", "right"), found.reason
