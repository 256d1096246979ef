"""The points of a query's history, and the records a night hands over, without a database."""

from __future__ import annotations

import math
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from nexmark.model import Mode, Status, Value
from nexmark.store import RepetitionRecord, ValidationRecord
from nexmark.store.query_history import QueryHistory, RatioPoint, lasting_changes
from nexmark.verdict.verdict import Verdict
from tests.unit.store.store_builder import measurement, night

START = datetime(2026, 11, 1, 4, tzinfo=UTC)
OK = Verdict("n1", "q5", "cpu", Value.OK, "", Mode.PAIRED, 1, ratio=1.0, build="b1")
POINT = RatioPoint(START, "4.3.0", "s", "b0", OK, "4.3.0 b1", "b0")


@pytest.mark.parametrize(
    ("change", "deviation"),
    [
        ({}, None),
        ({"noise": 0.02}, 0.02),
        ({"noise": 0.02, "lo": 1.0, "hi": 1.1}, 0.02),
        ({"noise": 0.02, "fresh_pairs": 9}, 0.02),
        ({"noise": 0.02, "fresh_pairs": 9, "lo": 1.0}, 0.02),
        ({"noise": 0.02, "fresh_pairs": 9, "hi": 1.1}, 0.02),
        ({"noise": 0.02, "fresh_pairs": 9, "lo": 1.1, "hi": 1.3}, math.log(1.3 / 1.1) / 3.92),
    ],
)
def test_the_deviation_is_of_the_fresh_pairs_where_there_are_some(
    change: dict[str, Any], deviation: float | None
) -> None:
    point = replace(POINT, verdict=replace(OK, **change))
    assert point.deviation == pytest.approx(deviation)


@pytest.mark.parametrize(
    ("modes", "paired"),
    [([], False), ([Mode.BOUNDS], False), ([Mode.BOUNDS, Mode.PAIRED], True)],
)
def test_changes_are_looked_for_where_one_night_has_pairs(modes: list[Mode], paired: bool) -> None:
    points = tuple(replace(POINT, verdict=replace(OK, mode=mode)) for mode in modes)
    history = QueryHistory("spark", "smoke", "local", "q5", "cpu", points, (), ())
    assert history.paired is paired


def test_a_change_lies_between_the_last_and_the_first_night_of_a_level() -> None:
    """A night without a ratio is no part of a level."""
    points = [
        replace(
            POINT,
            started=START + timedelta(days=number),
            verdict=replace(
                OK,
                night=f"n{number}",
                build=f"b{number}",
                ratio=(1.0 if number < 15 else 1.2) * (1 + 0.005 * (number % 3 - 1)),
                noise=0.01,
            ),
        )
        for number in range(30)
    ]
    points.insert(15, replace(POINT, verdict=replace(OK, night="nothing", ratio=None)))
    (found,) = lasting_changes(points)
    assert (found.last.verdict.night, found.first.verdict.night) == ("n14", "n15")
    assert found.change.ratio == pytest.approx(1.2, rel=0.01)


MEASURED = measurement(10.0)


@pytest.mark.parametrize(
    ("given", "status"),
    [
        ({"measurement": MEASURED}, Status.OK),
        ({"measurement": MEASURED, "invalid": "digest"}, Status.INVALID),
        ({"invalid": ""}, Status.INVALID),
        ({"failed": "lost"}, Status.FAILED),
        ({"measurement": MEASURED, "failed": ""}, Status.FAILED),
    ],
)
def test_a_repetition_is_right_or_has_a_reason(given: dict[str, Any], status: Status) -> None:
    assert RepetitionRecord("dag/run", "q5", 1, **given).status == status


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({}, "needs a reason: invalid or failed"),
        ({"invalid": "", "failed": ""}, "either invalid or failed, not both"),
        ({"measurement": MEASURED, "invalid": "a", "failed": "b"}, "not both"),
    ],
)
def test_a_repetition_that_is_nothing_or_two_things_is_refused(
    given: dict[str, Any], said: str
) -> None:
    with pytest.raises(ValueError, match=said):
        RepetitionRecord("dag/run", "q5", 1, **given)


def test_a_night_teaches_and_a_validation_evaluated_nothing_unless_they_say_so() -> None:
    assert night().teaches
    assert night().run == f"{night().dag_id}/{night().run_id}"
    assert ValidationRecord("dag/run", "q5", True).evaluated == 0
