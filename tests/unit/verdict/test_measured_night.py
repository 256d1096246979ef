"""What the gate is given: pairs, canaries and medians, from figures in any order."""

from __future__ import annotations

import math
from typing import Any

import pytest

from nexmark.model import Arm, Value
from nexmark.verdict.measured_night import (
    Canary,
    Measured,
    MeasuredNight,
    Pair,
    canaries_of,
    possible,
    rounds_of,
)
from nexmark.verdict.verdict import Verdict


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (1e-9, True),
        (3.0, True),
        (0.0, False),
        (-1.0, False),
        (math.inf, False),
        (math.nan, False),
        (None, False),
    ],
)
def test_a_measurement_is_finite_and_above_zero(value: float | None, expected: bool) -> None:
    assert possible(value) is expected


@pytest.mark.parametrize(
    ("pair", "gap", "ratio"),
    [
        (Pair(1, 11.0, 10.0), None, math.log(1.1)),
        (Pair(1, None, 10.0), Arm.CANDIDATE, None),
        (Pair(1, 11.0, None), Arm.BASELINE, None),
        (Pair(1, None, None), Arm.CANDIDATE, None),
        (Pair(1, 0.0, 10.0), None, None),
        (Pair(1, 11.0, math.inf), None, None),
    ],
)
def test_a_pair_names_the_arm_that_is_not_there_and_has_a_ratio_of_two_measurements(
    pair: Pair, gap: Arm | None, ratio: float | None
) -> None:
    assert (pair.gap, pair.complete) == (gap, gap is None)
    assert pair.ratio == pytest.approx(math.nan if ratio is None else ratio, nan_ok=True)


def test_figures_become_pairs_by_their_round_and_number() -> None:
    figures = [
        (1, 2, "b", 5.0),
        (3, 1, "b", 7.0),
        (1, 1, "c", 1.0),
        (1, 2, "c", 4.0),
        (1, 3, "b", None),
        (1, 1, "other", 9.0),
    ]
    assert rounds_of(figures, ("c", "b")) == [
        (Pair(1, 1.0, None), Pair(2, 4.0, 5.0), Pair(3, None, None)),
        (),
        (Pair(1, None, 7.0),),
    ]


def test_without_figures_there_is_a_first_round_without_pairs() -> None:
    assert rounds_of([], ("c", "b")) == [()]


def test_a_round_that_was_not_measured_has_no_pairs() -> None:
    one = Measured("q5", "m", PAIRS, (PAIRS[:1],))
    assert [one.of_round(number) for number in (1, 2, 3)] == [PAIRS, PAIRS[:1], ()]


def test_readings_become_canaries_by_metric_host_and_group() -> None:
    readings = [
        ("steal", "h1", "q5", "before", 1.0),
        ("cpu", "h2", "", "after", 4.0),
        ("steal", "h1", "q5", "after", 3.0),
        ("steal", "h1", "q5", "before", 2.0),
        ("steal", "h1", "q6", "before", 7.0),
    ]
    assert canaries_of(readings) == (
        Canary("cpu", (), (4.0,), "h2", ""),
        Canary("steal", (1.0, 2.0), (3.0,), "h1", "q5"),
        Canary("steal", (7.0,), (), "h1", "q6"),
    )


PAIRS = (Pair(1, 1.0, 10.0), Pair(2, 2.0, 20.0), Pair(3, 9.0, None))


@pytest.mark.parametrize(
    ("measured", "options", "medians"),
    [
        (Measured("q5", "m", PAIRS), {"rounds": 1}, (1.5, 15.0)),
        (Measured("q5", "m", PAIRS), {"rounds": 1, "whole": False}, (2.0, 15.0)),
        (Measured("q5", "m", PAIRS[1:2], (PAIRS[:1],)), {"rounds": 1}, (2.0, 20.0)),
        (Measured("q5", "m", PAIRS[1:2], (PAIRS[:1],)), {"rounds": 2}, (1.5, 15.0)),
        (Measured("q5", "m", PAIRS[1:2], before=PAIRS[:1]), {"rounds": 1}, (1.5, 15.0)),
        (Measured("q5", "m", ()), {"rounds": 3}, (None, None)),
        (Measured("q5", "m", PAIRS[2:]), {"rounds": 1}, (9.0, None)),  # none is whole
    ],
)
def test_medians_are_of_whole_pairs_where_there_are_any(
    measured: Measured, options: dict[str, Any], medians: tuple[float | None, float | None]
) -> None:
    assert measured.medians(**options) == medians


def test_a_night_teaches_and_a_verdict_decides_unless_it_is_said_otherwise() -> None:
    assert MeasuredNight("n", ()).teaches
    found = Verdict("n", "q5", "m", Value.REGRESSION, "", "paired", 1)
    assert found.decides
    assert found.red
    assert found.key == ("q5", "m")
    assert (found.pairs, found.fresh_pairs) == (0, 0)
    assert (found.drift_slower, found.drift_faster) == (0.0, 0.0)
