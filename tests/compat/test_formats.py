"""State formats of 4.3.0 on the way back to 3.5.9, and `transformWithState` between engines."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from nexmark.compatibility.cases import Case, Input, Side
from nexmark.compatibility.check import check
from nexmark.compatibility.results import RestartOutcome
from nexmark.engines import Build
from tests.conftest import ENGINES

pytestmark = [pytest.mark.spark, pytest.mark.long]

STORE = "spark.sql.streaming.stateStore."
ROCKSDB = {
    f"{STORE}providerClass": (
        "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
    ),
    "spark.sql.codegen.wholeStage": "false",
}
EVENTS = Input(events=2000, tps=100)
SESSION, JOIN = Case("q11", "session_window", "session_window"), Case("q20", "join", "join")
CHANGELOG = f"{STORE}rocksdb.changelogCheckpointing.enabled"
JOIN_FORMAT = "spark.sql.streaming.join.stateFormatVersion"


def say(_: str) -> None:
    pass


@pytest.mark.parametrize(
    ("case", "conf", "outcome", "reason"),
    [
        (SESSION, {}, RestartOutcome.RIGHT, ""),
        (JOIN, {}, RestartOutcome.RIGHT, ""),
        (
            JOIN,
            {f"{STORE}rocksdb.changelogCheckpointing.enabled": "true"},
            RestartOutcome.RIGHT,
            "",
        ),
        (SESSION, {f"{STORE}checkpointFormatVersion": "2"}, RestartOutcome.REFUSED, "v2"),
        (JOIN, {JOIN_FORMAT: "3"}, RestartOutcome.REFUSED, "1 and 2"),
        (JOIN, {JOIN_FORMAT: "4"}, RestartOutcome.REFUSED, "1 and 2"),
    ],
    ids=str,
)
def test_a_format_that_3_5_9_does_not_know_has_no_way_back(
    case: Case,
    conf: dict[str, str],
    outcome: RestartOutcome,
    reason: str,
    engine_build: Callable[[str], Build],
) -> None:
    first = Side(engine_build(ENGINES[0]), ROCKSDB | conf)
    second = Side(engine_build(ENGINES[-1]), ROCKSDB)
    (found,) = check(first, second, [case], EVENTS, say, backward=False)
    assert found.forward is not None
    assert (found.forward.outcome, reason in found.forward.reason) == (outcome, True), found.forward


@pytest.mark.parametrize("engine", ["spark-4.1.4", "spark-4.2.1"])
def test_transform_with_state_goes_on_in_the_newest_and_back(
    engine: str, engine_build: Callable[[str], Build]
) -> None:
    first, second = (Side(engine_build(name), ROCKSDB) for name in (engine, ENGINES[0]))
    case = Case("long_window", "retraction", "retraction")
    (found,) = check(first, second, [case], Input(events=8000, tps=2), say)
    assert [str(found.forward), str(found.backward)] == ["right", "right"], found.reason
