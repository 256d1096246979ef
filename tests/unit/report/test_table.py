"""The table reads as Nexmark's does."""

from __future__ import annotations

from typing import Any

import pytest

from nexmark.evidence.rows import Row
from nexmark.model import CPU, Basis, Mode, Value
from nexmark.report.table import render_table, throughput
from nexmark.verdict.verdict import Verdict


def row(query: str = "q0", **fields: object) -> Row:
    values: dict[str, object] = {
        "repetitions": 5,
        "events": 100_000_000,
        "wall_s": 76.323,
        "cpu_s": 645.0,
        "result": "right",
        "cpu_s_per_mevent": 6.45,
        "basis": "steady",
        "verdict": verdict(),
    }
    return Row(query, **{**values, **fields})  # type: ignore[arg-type]


def verdict(value: Value = Value.OK, ratio: float | None = 1.075, **numbers: Any) -> Verdict:
    numbers = {"baseline": 6.0, "ratio": ratio, **numbers}
    return Verdict("n", "q0", CPU, value, "", Mode.BOUNDS, 1, **numbers)


def cells(table: str, query: str) -> list[str]:
    (line,) = [x for x in table.splitlines() if x.startswith(f"| {query} ")]
    return [cell.strip() for cell in line.strip("|").split("|")]


def test_a_row_of_nexmarks_own_table() -> None:
    """q0 of the published example: 8.45 cores, 76.323 s, 155.02 K/s per core."""
    assert cells(render_table([row()]), "q0") == [
        "q0",
        "100,000,000",
        "8.45",
        "76.323",
        "645.000",
        "155.04 K/s",
        "right",
        "6.450",
        "6.000",
        "1.075",
        "OK",
    ]


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "-"),
        (0.0, "0.00/s"),
        (999.99, "999.99/s"),
        (999.996, "1.00 K/s"),
        (12_330, "12.33 K/s"),
        (999_999, "1.00 M/s"),
        (2_650_000, "2.65 M/s"),
        (1.5e9, "1.50 G/s"),
        (2.5e12, "2,500.00 G/s"),
    ],
)
def test_throughput_has_units(value: float | None, text: str) -> None:
    assert throughput(value) == text


def test_totals_add_up_and_cores_do_not() -> None:
    table = render_table([row(), row("q1", wall_s=23.677, cpu_s=355.0)])
    assert cells(table, "Total") == [
        "Total",
        "200,000,000",
        "-",
        "100.000",
        "1,000.000",
        "200.00 K/s",
        "2/2 right",
        "-",
        "-",
        "-",
        "-",
    ]


def test_a_query_without_figures_does_not_count_in_the_total() -> None:
    table = render_table([row(), Row("q9", verdict(Value.MISSING, ratio=None, baseline=None))])
    assert cells(table, "q9")[1:7] == ["-", "-", "-", "-", "-", "not run"]
    assert cells(table, "Total")[1] == "100,000,000"
    assert cells(table, "Total")[6] == "1/2 right"


def test_without_any_figure_there_is_no_total() -> None:
    assert cells(render_table([Row("q9")]), "Total")[1:6] == ["-"] * 5


def test_figures_over_the_whole_application_are_marked() -> None:
    table = render_table([row(), row("q1", basis=Basis.APPLICATION)])
    assert cells(table, "q0")[7] == "6.450"
    assert cells(table, "q1")[7] == "6.450*"
    assert table.splitlines()[-1].startswith("* over the whole life of the application")


def test_without_marks_there_is_no_footnote() -> None:
    assert "*" not in render_table([row()]).replace("Cores * Time(s)", "")


def test_every_line_is_as_wide_as_the_others_and_fits() -> None:
    widest = row(
        "q14_python_udf",
        events=10**12,
        wall_s=99999.0,
        cpu_s=999999.0,
        verdict=verdict(Value.NO_BASELINE),
    )
    lines = render_table([row(), widest, Row("q9", result="unverified")]).splitlines()
    assert len({len(line) for line in lines}) == 1
    assert len(lines[0]) <= 160
