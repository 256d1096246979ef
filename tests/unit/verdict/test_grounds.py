"""What stands against a verdict, and what a verdict without ground still says."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from nexmark.model import READ_RATE, SOURCE_RATE, Value
from nexmark.verdict.eligibility import Steadiness, grade
from nexmark.verdict.measured_night import Canary, Measured, Pair
from tests.unit.verdict.gate_builder import night, pairs, rules, verdict, with_query

ALONE = tuple(Pair(number, 10.0, None) for number in range(1, 6))


@pytest.mark.parametrize(
    ("level", "expected"),
    [
        (4.9, Steadiness.STEADY),
        (5.0, Steadiness.STEADY),  # the limit itself
        (5.1, Steadiness.UNSTEADY),
        (-1.0, Steadiness.BROKEN),
        (math.inf, Steadiness.BROKEN),
    ],
)
def test_a_level_is_a_number_up_to_its_limit(level: float, expected: Steadiness) -> None:
    gate = rules(canary_limits={"steal_percent": 5.0})
    found = grade([Canary("steal_percent", (0.0,), (level,))], gate)
    assert found.steadiness is expected


def test_a_verdict_names_the_builds_and_the_pairs_it_had() -> None:
    some = replace(night(), baseline={"q5": "old", "q7": "older"}, candidate="new")
    found = verdict(some)
    assert (found.baseline_build, found.build, found.pairs) == ("old", "new", 5)
    assert verdict(some, "q0").baseline_build == ""
    wrong = verdict(replace(some, invalid={"q5": "wrong"}))
    assert (wrong.baseline_build, wrong.build, wrong.pairs) == ("old", "new", 5)
    assert (wrong.shift, wrong.spread) == (None, None)
    assert wrong.ratio is not None


@pytest.mark.parametrize(("whole", "value"), [(2, Value.MISSING), (3, Value.OK)])
def test_three_whole_pairs_are_a_verdict_though_others_are_missing(
    whole: int, value: Value
) -> None:
    broken = [replace(pair, candidate=None) for pair in pairs([1.0] * 5)[whole:]]
    some = with_query(night(), "q5", pairs=(*pairs([1.0] * whole), *broken))
    found = verdict(replace(some, missing={"q5": "the executor died"}))
    assert found.value is value
    if value is Value.OK:
        assert found.reason.startswith("3 of 5 pairs: ratio 1.000 (")
        assert found.reason.endswith("; missing: candidate 4, candidate 5 (the executor died)")
    else:
        assert found.reason == "the executor died"


def test_pairs_that_the_night_never_began_are_missing_too() -> None:
    some = replace(with_query(night(), "q5", pairs=pairs([1.0] * 3)), asked=5)
    found = verdict(some)
    assert found.reason.startswith("3 of 5 pairs: ratio 1.000 (")
    assert found.reason.endswith("; missing: 2 whole")
    few = replace(with_query(night(), "q5", pairs=pairs([1.0] * 2)), asked=5)
    assert verdict(few).reason == "2 of 5 pairs measured"
    none = replace(with_query(night(), "q5", pairs=()), asked=5)
    assert verdict(none).reason == "not measured"


def test_a_query_without_a_baseline_may_wait_for_its_source_too() -> None:
    rates = (
        Measured("q5", SOURCE_RATE, tuple(replace(pair, candidate=200.0) for pair in ALONE)),
        Measured("q5", READ_RATE, tuple(replace(pair, candidate=100.0) for pair in ALONE)),
    )
    some = with_query(night(), "q5", pairs=ALONE)
    assert verdict(some).value is Value.NO_BASELINE
    bound = replace(some, measured=(*some.measured, *rates))
    assert verdict(bound).value is Value.SOURCE_BOUND
    few = with_query(bound, "q5", pairs=pairs([1.0, 1.0]))
    few = replace(few, measured=(*few.measured[:12], *rates))
    assert verdict(few).value is Value.MISSING
