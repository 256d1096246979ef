"""The rules that go with the words."""

from __future__ import annotations

import ast
import inspect
import sys
from dataclasses import replace
from datetime import UTC, datetime
from itertools import product

import pytest
from sqlalchemy import create_engine, select
from sqlalchemy.orm import Session

from nexmark import model
from nexmark.evidence.rows import Row
from nexmark.evidence.summary import failed
from nexmark.model import FIRST_ROUND, METRICS, PROFILED, Arm, Value, is_red, round_group
from nexmark.store.table_rows import VerdictRow, WithdrawalRow
from nexmark.store.verdict_rows import COLUMNS, verdict_of
from nexmark.verdict.verdict import Verdict

STARTED = datetime(2026, 11, 21, tzinfo=UTC)
RATIOS = (None, 0.9, 1.0, 1.1)
CASES = [
    {"value": value, "ratio": ratio, "decides": decides, "accepted": accepted}
    for value, ratio, decides, accepted in product(Value, RATIOS, (True, False), (True, False))
]


def verdict(value: Value, query: str = "q5", **fields: object) -> Verdict:
    return Verdict("n", query, "m", value, "", "paired", 1, **fields)  # type: ignore[arg-type]


def test_the_model_imports_nothing_of_ours() -> None:
    tree = ast.parse(inspect.getsource(model))
    found = {x.module for x in ast.walk(tree) if isinstance(x, ast.ImportFrom)}
    found |= {name.name for x in ast.walk(tree) if isinstance(x, ast.Import) for name in x.names}
    assert {str(name).split(".")[0] for name in found} <= sys.stdlib_module_names


def test_the_words_are_what_the_database_has() -> None:
    assert [str(x) for x in Arm] == ["candidate", "baseline", "control", "slowed"]
    assert (FIRST_ROUND, PROFILED) == (1, 99)
    assert round_group(2) == "round_2"
    assert f"{Arm.CANDIDATE} {Value.NO_BASELINE}" == "candidate NO BASELINE"


@pytest.mark.parametrize(
    ("value", "ratio", "red"),
    [
        (Value.REGRESSION, 1.2, True),
        (Value.INVALID, None, True),
        (Value.MISSING, None, True),
        (Value.SUSPECT, None, True),
        (Value.SUSPECT, 1.1, True),
        (Value.SUSPECT, 0.9, False),
        (Value.OK, 1.2, False),
        (Value.WATCH, 1.2, False),
        (Value.NO_BASELINE, None, False),
    ],
)
def test_what_is_red(value: Value, ratio: float | None, red: bool) -> None:
    assert is_red(value, ratio) is red
    assert not is_red(value, ratio, decides=False)
    assert not is_red(value, ratio, accepted=True)
    said = verdict(value, ratio=ratio)
    assert said.bad is said.red is red
    assert replace(said, acceptance=1).bad is red
    assert not replace(said, acceptance=1).red
    assert not replace(said, decides=False).bad


def test_the_database_calls_the_same_verdicts_red() -> None:
    """In SQL as in Python, for every value, ratio, and acceptance."""
    engine = create_engine("sqlite://")
    for table in (VerdictRow, WithdrawalRow):
        table.__table__.create(engine)  # type: ignore[attr-defined]
    with Session(engine) as session:
        for place, case in enumerate(CASES):
            own = {"value": case["value"], "ratio": case["ratio"], "decides": case["decides"]}
            session.add(
                VerdictRow(
                    **own,
                    id=place,
                    night_id="n",
                    query=str(place),
                    metric="m",
                    gate_version=1,
                    reason="",
                    repetitions=5,
                    acceptance_id=7 if case["accepted"] else None,
                    judged=STARTED,
                )
            )
        session.commit()
        bad_in_sql = set(session.scalars(select(VerdictRow.id).where(VerdictRow.bad)))
        rows = list(session.scalars(select(VerdictRow)))
        selected = session.execute(select(*COLUMNS)).all()
    expected = {place for place, case in enumerate(CASES) if is_red(**case)}  # type: ignore[arg-type]
    assert {row.id for row in selected if verdict_of(row, "").red} == expected != set()
    assert bad_in_sql == {row.id for row in rows if row.bad}


def test_a_night_is_red_for_one_red_query_and_without_any_verdict() -> None:
    good, slower = Row("q1", verdict(Value.OK)), Row("q5", verdict(Value.REGRESSION))
    assert failed([good, slower])
    accepted = Row("q5", verdict(Value.REGRESSION, acceptance=1))
    assert not failed([good, accepted])
    assert failed([Row("q1")])
    assert failed([])


def test_the_metrics_of_cpu_time_decide_and_the_lower_the_better() -> None:
    deciding = [metric for metric in METRICS.values() if metric.decides]
    assert [metric.name for metric in deciding] == [*model.CPU_METRICS]
    assert all(metric.worse(0.1) and not metric.worse(-0.1) for metric in deciding)
