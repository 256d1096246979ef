"""A night with a budget measures the most urgent queries, and says what it has time for."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from nexmark.config import load
from nexmark.model import Arm
from nexmark.night.make_night import make_night
from nexmark.night.night_budget import affordable, budget_line, deadline_of, few_pairs_line
from nexmark.night.night_plan import Night
from nexmark.night.night_runs import first_runs
from nexmark.night.run_directory import ApplicationSpan

BEGINS = datetime(2026, 11, 3, 22, 0, tzinfo=UTC)
SECONDS = {"q0": 28.0, "q5": 58.0}
"""Of an application of each query."""


@pytest.fixture
def night(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Night:
    monkeypatch.setenv("NEXMARK_HOME", str(tmp_path / "home"))
    params = {"workload": "nightly", "queries": "q0,q5", "budget_minutes": 30}
    made = make_night(load(), "spark-4.3.0", "nexmark_spark_4_3_0", "run 1", params)
    return made.model_copy(update={"deadline": deadline_of(made.gate, BEGINS)})


def measured(night: Night, **changes: Any) -> Night:
    """Write a night whose first round was measured."""
    made = night.model_copy(update=changes)
    made.write()
    for query in made.queries:
        for run in first_runs(made, query):
            span = ApplicationSpan(label=run.label, start=0.0, end=SECONDS[query])
            made.files.add_application(span)
    return made


@pytest.mark.parametrize(
    ("rules", "minutes"),
    [
        ({}, None),
        ({"budget_minutes": 90.0}, 90),
        ({"ends_by": "06:30"}, 510),
        ({"ends_by": "22:30"}, 30),
        ({"ends_by": "06:30", "budget_minutes": 90.0}, 90),
        ({"ends_by": "23:00", "budget_minutes": 90.0}, 60),
    ],
)
def test_the_earlier_of_both_limits_ends_a_night(
    rules: dict[str, Any], minutes: int | None
) -> None:
    gate = load().gate.model_copy(update={"budget_minutes": None, **rules})
    end = deadline_of(gate, BEGINS)
    assert end == (None if minutes is None else BEGINS + timedelta(minutes=minutes))


def test_a_comparison_has_only_the_budget_that_it_is_given(night: Night) -> None:
    config = load()
    gate = config.gate.model_copy(update={"budget_minutes": 140.0, "ends_by": "06:30"})
    limited = config.model_copy(update={"gate": gate})
    asked: dict[str, Any] = {"workload": "nightly", "queries": "q0"}

    def end(**params: Any) -> datetime | None:
        made = make_night(limited, "spark-4.3.0", "nexmark", "run", {**asked, **params})
        return deadline_of(made.gate, BEGINS)

    assert end() == BEGINS + timedelta(minutes=140)
    assert end(against="pypi:4.2.1") is None
    assert end(against="pypi:4.2.1", budget_minutes=20) == BEGINS + timedelta(minutes=20)


def test_the_most_urgent_queries_get_the_time_that_is_left(night: Night) -> None:
    """In round 2 each of them needs two pairs: 4 applications of 30 or of 60 s."""
    night = measured(night)
    going = {"q5": [Arm.CANDIDATE], "q0": [Arm.CANDIDATE]}
    assert night.gate.rounds[1] == 2
    for left, taken in ((361, ["q5", "q0"]), (300, ["q5"]), (130, ["q0"]), (100, [])):
        assert night.deadline is not None
        found = affordable(night, going, 2, night.deadline - timedelta(seconds=left))
        assert list(found.arms) == taken
        assert len(found.late) == 2 - len(taken)
    assert found.late[0] == (
        "q5: round 2 would take 4 minutes, and the budget ends in 2: it stays as it is"
    )


def test_without_a_budget_all_go_on(night: Night) -> None:
    going = {"q5": [Arm.CANDIDATE], "q0": [Arm.CANDIDATE]}
    free = night.model_copy(update={"deadline": None})
    assert affordable(free, going, 2, BEGINS).arms == going
    assert budget_line(free, BEGINS) == ""


def test_the_first_night_says_until_when_it_measures(night: Night) -> None:
    assert budget_line(night, BEGINS) == (
        "measures until 2026-11-03 22:30 UTC: the first round (12 applications) in any case, then "
        "rounds of what is undecided, the most urgent query first, as far as there is time"
    )


def test_a_later_night_says_how_many_pairs_the_budget_buys(night: Night) -> None:
    """Of 1800 s the first round takes 540; a pair of 2 applications takes 90 s."""
    measured(night, run_id="run 0")
    end = "about 14 pairs (45 s an application, as in the last night)"
    assert budget_line(night, BEGINS).endswith(end)
    late = BEGINS + timedelta(minutes=22)
    assert budget_line(night, late).endswith(
        "but there is no time for it: an application took 45 s in the last night"
    )


def test_a_night_of_another_workload_tells_nothing(night: Night) -> None:
    other = night.workload.model_copy(update={"events": 7_000_000})
    measured(night, run_id="run 0", workload=other)
    assert budget_line(night, BEGINS).endswith("as far as there is time")


@pytest.mark.parametrize(
    ("params", "line"),
    [
        (
            {"pairs": 3},
            "3 pairs of each query and no more: a change is SUSPECT at the most, for REGRESSION "
            "and FASTER need 4",
        ),
        ({"pairs": 4}, ""),
        ({}, ""),
        ({"workload": "soak", "queries": "q5", "pairs": 3}, ""),
    ],
)
def test_a_night_says_first_that_its_pairs_are_too_few_for_a_change(
    night: Night, params: dict[str, Any], line: str
) -> None:
    asked = {"workload": "nightly", "queries": "q0", "against": "pypi:4.2.1", **params}
    made = make_night(load(), "spark-4.3.0", "nexmark", "run", asked)
    assert few_pairs_line(made) == line
