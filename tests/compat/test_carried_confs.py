"""What a running query makes of another conf: the checkpoint decides, on the way there and back."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from nexmark.compatibility.cases import Case, Input, Side
from nexmark.compatibility.check import check
from nexmark.compatibility.results import UpgradeClass
from nexmark.engines import Build
from tests.conftest import ENGINES

PARTITIONS, OF_APPLICATION = "spark.sql.shuffle.partitions", "spark.executor.heartbeatInterval"
CHEAP = {"spark.sql.codegen.wholeStage": "false"}


@pytest.mark.spark
@pytest.mark.long
def test_partitions_stay_as_the_checkpoint_has_them_and_the_results_are_right(
    engine_build: Callable[[str], Build],
) -> None:
    build = engine_build(ENGINES[0])
    old = Side(build, CHEAP | {PARTITIONS: "1"})
    new = Side(build, CHEAP | {PARTITIONS: "3", OF_APPLICATION: "9s"})
    case = Case("q17", "aggregate", "aggregate")
    (found,) = check(old, new, [case], Input(events=2000, tps=100), lambda _: None)
    assert (str(found.forward), str(found.backward)) == ("right", "right")
    assert found.class_ is UpgradeClass.CHANGED  # the plan has the number of partitions
    assert found.ignored == (
        f"the second side asked for {PARTITIONS}=3, the checkpoint has 1",
        f"going back, the first side asked for {PARTITIONS}=1, the checkpoint has 3",
        f"{OF_APPLICATION} is not a conf of a query, and was not set",
    )
