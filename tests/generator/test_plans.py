"""What the generator costs: compiled code throughout, small methods, nothing for pruned columns."""

from __future__ import annotations

import re
from typing import Any

import pytest
from pyspark.sql import DataFrame

KINDS = ("person", "auction", "bid")
LARGEST_METHOD = 8000
"""Bytes of bytecode beyond which HotSpot does not compile a method."""


def physical_plan(frame: DataFrame) -> Any:
    return frame._jdf.queryExecution().executedPlan()


def methods(frame: DataFrame) -> list[int]:
    """The size of the largest method of each piece of generated code, in bytes of bytecode."""
    jvm = frame.sparkSession._jvm
    debug = getattr(jvm.org.apache.spark.sql.execution.debug, "package$")
    pieces = getattr(debug, "MODULE$").codegenStringSeq(physical_plan(frame))
    return [pieces.apply(i)._3().maxMethodCodeSize() for i in range(pieces.length())]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("options", [{}, {"out_of_order_group_size": 7, "num_channels": 10**9}])
@pytest.mark.parametrize("end", [None, 900])
def test_one_piece_of_code_that_hotspot_compiles(
    generate: Any, kind: str, options: dict[str, int], end: int | None
) -> None:
    frame = generate(kind, range(1000), end, **options)
    sizes = methods(frame)
    assert len(sizes) == 1, "not everything is in one stage of generated code"
    assert 0 < sizes[0] < LARGEST_METHOD
    lines = physical_plan(frame).toString().splitlines()
    assert all("*(1)" in line for line in lines if line.strip()), "an operator is interpreted"


@pytest.mark.parametrize(
    ("kind", "column", "draws"),
    [
        ("bid", "n", 0),
        ("bid", "dateTime", 0),
        ("bid", "auction", 1),
        ("bid", "price", 1),
        ("bid", "extra", 1),
        ("auction", "id", 0),
        ("auction", "category", 1),
        ("person", "id", 0),
        ("person", "state", 1),
    ],
)
def test_a_pruned_column_costs_nothing(generate: Any, kind: str, column: str, draws: int) -> None:
    plan = physical_plan(generate(kind, range(1000)).select(column)).toString()
    assert len(set(re.findall(r"xxhash64\([^)]*\)", plan))) == draws


@pytest.mark.parametrize("kind", KINDS)
def test_plans_stay_readable(generate: Any, kind: str) -> None:
    assert len(physical_plan(generate(kind, range(1000))).toString()) < 25_000
