"""What one night says by itself, before the gate knows the noise of a query."""

from __future__ import annotations

import math

import pytest
from scipy.stats import t

from nexmark.verdict.eligibility import one_night_numbers
from nexmark.verdict.measured_night import Measured, Pair
from tests.unit.verdict.gate_builder import CPU, pairs


def numbers(*changes: float) -> dict[str, float]:
    return one_night_numbers(Measured("q5", CPU, pairs([math.exp(x) for x in changes])))


@pytest.mark.parametrize("changes", [(0.0, 0.1, 0.4), (0.1, 0.0, 0.2, -0.1, 0.05)])
def test_the_smallest_change_seen_is_that_of_a_t_test_at_99_percent_with_power_80(
    changes: tuple[float, ...],
) -> None:
    count = len(changes)
    found = numbers(*changes)
    deviations = t.ppf(0.99, count - 1) + t.ppf(0.8, count - 1)
    expected = deviations * found["spread"] * math.sqrt(1.08 / count)
    assert math.log1p(found["mde"]) == pytest.approx(expected)


def test_the_ratio_is_the_hodges_lehmann_estimate_with_its_exact_interval() -> None:
    found = numbers(0.0, 0.1, 0.4)
    assert found["shift"] == pytest.approx(0.15)
    assert found["ratio"] == pytest.approx(math.exp(0.15))
    assert (found["lo"], found["hi"]) == pytest.approx((1.0, math.exp(0.4)))
    # The mean difference of 0, 0.1 and 0.4 is 0.8 / 3; times sqrt(pi) / 2.
    assert found["spread"] == pytest.approx(0.4 / 3 * math.sqrt(math.pi))


def test_three_whole_pairs_are_needed() -> None:
    assert numbers(0.0, 0.1) == {}
    broken = Pair(4, 10.0, None)
    some = Measured("q5", CPU, (*pairs([1.0, 1.1]), broken))
    assert one_night_numbers(some) == {}
    assert one_night_numbers(Measured("q5", CPU, (*pairs([1.0] * 3), broken)))["ratio"] == 1.0
