"""The rates of the self-test and how sure they are."""

from __future__ import annotations

import pytest

from nexmark.model import Value
from nexmark.verdict.rates import Rate, Test, alarmed, rate, rates


def results(test: Test, *alarmed: bool | None) -> list[tuple[Test, bool | None]]:
    return [(test, x) for x in alarmed]


def test_the_line_of_the_report() -> None:
    silent = results(Test.AA, *[False] * 40)
    fired = results(Test.SLOWDOWN, *[True] * 38, False, False)
    assert rates(silent + fired).words == (
        "self-test: 0 of 40 A/A pair sets alarmed (0.0 %, at most 8.8 %), "
        "38 of 40 seeded slowdowns found (95.0 %, at least 83.5 %)"
    )


def test_without_results_no_rate_is_reported() -> None:
    assert rates([]).words == (
        "self-test: 0 of 0 A/A pair sets alarmed, 0 of 0 seeded slowdowns found"
    )
    assert rates([]).recall == Rate(0, 0)


def test_intervals_are_wilsons() -> None:
    """81 of 263, as in R. Newcombe, "Intervals for the single proportion" (1998), method 3."""
    found = rate(263, 81)
    assert (found.lo, found.hi) == (
        pytest.approx(0.2553, abs=1e-4),
        pytest.approx(0.3662, abs=1e-4),
    )
    assert found.rate == pytest.approx(81 / 263)
    assert rate(10, 10).hi == 1.0
    assert rate(10, 0).lo == 0.0


def test_a_test_without_a_verdict_does_not_count() -> None:
    found = rates(results(Test.AA, False, None, True))
    assert (found.false_alarms.count, found.false_alarms.hits) == (2, 1)


@pytest.mark.parametrize("value", list(Value))
def test_only_a_regression_is_an_alarm_and_some_verdicts_are_none(value: Value) -> None:
    none = (Value.NO_BASELINE, Value.INVALID, Value.MISSING, Value.SOURCE_BOUND)
    assert alarmed(value) is (None if value in none else value is Value.REGRESSION)


def test_the_line_names_the_version_of_the_gate_that_was_tested() -> None:
    assert rates([], version=7).words.endswith(", gate version 7")
    assert rates([], version=7).version == 7
