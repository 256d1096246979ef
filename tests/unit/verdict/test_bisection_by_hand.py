"""The numbers of a bisection, reckoned by hand from Bayes' rule."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import norm

from nexmark.verdict.bisection import Bisection, Pairs, bisection_of, deviation_of, shift_of
from nexmark.verdict.location import spread

SIZE = 0.1
FOUR = ("good", "b1", "b2", "bad")


def likelihood(value: float, mean: float, deviation: float) -> float:
    return float(norm.pdf(value, mean, deviation))


@pytest.mark.parametrize("shift", [0.0, 0.03, 0.1, 3.0])
def test_one_measurement_moves_the_probabilities_as_bayes_says(shift: float) -> None:
    """One in a hundred means nothing; deviations are taken a tenth wider."""
    search = Bisection(FOUR, SIZE, 0.02)
    search.observe("b1", shift, 0.01)
    wide = 0.011
    wild = 0.01 * likelihood(0.0, 0.0, wide)
    bad = 0.99 * likelihood(shift, SIZE, math.hypot(0.02, wide)) + wild
    good = 0.99 * likelihood(shift, 0.0, wide) + wild
    total = bad + 2 * good
    expected = {"good": 0.0, "b1": bad / total, "b2": good / total, "bad": good / total}
    assert search.posterior == pytest.approx(expected)


def test_a_measurement_of_the_bad_build_corrects_the_size_by_what_it_is_worth() -> None:
    search = Bisection(FOUR, SIZE, 0.04)
    search.observe("bad", 0.16, 0.03)
    gain = 0.04**2 / (0.04**2 + 0.033**2)  # Kalman
    mean, deviation = search.size
    assert mean == pytest.approx(SIZE + gain * 0.06, rel=0.02)
    assert deviation == pytest.approx(math.sqrt((1 - gain) * 0.04**2), rel=0.05)
    assert deviation >= math.sqrt((1 - gain) * 0.04**2)  # it may have meant nothing


def test_a_measurement_that_means_nothing_leaves_the_size() -> None:
    search = Bisection(FOUR, SIZE, 0.04)
    search.observe("bad", 3.0, 0.03)
    assert search.size == pytest.approx((SIZE, 0.04))


def test_the_size_is_of_all_builds_by_their_probability() -> None:
    search = Bisection(("good", "b1", "bad"), SIZE, 0.04)
    search.observe("b1", 0.2, 0.05)
    first, last = search.posterior["b1"], search.posterior["bad"]
    mean, deviation = search.size
    gain = 0.04**2 / (0.04**2 + 0.055**2)
    plain = 0.99 * likelihood(0.2, SIZE, math.hypot(0.04, 0.055))
    trust = plain / (plain + 0.01 * likelihood(0.0, 0.0, 0.055))
    step = gain * 0.1
    moved = SIZE + trust * step
    assert mean == pytest.approx(first * moved + last * SIZE)
    own = first * ((1 - trust * gain) * 0.04**2 + trust * (1 - trust) * step**2) + last * 0.04**2
    between = first * (moved - mean) ** 2 + last * (SIZE - mean) ** 2
    assert deviation == pytest.approx(math.sqrt(own + between))


@pytest.mark.parametrize(
    ("noise", "expected"), [(SIZE / 2.9, "bad"), (SIZE / 3.1, "b2"), (0.0, "b2")]
)
@pytest.mark.parametrize("way", [1, -1])
def test_a_size_below_three_deviations_is_measured_first(
    noise: float, expected: str, way: int
) -> None:
    builds = ("good", "b1", "b2", "b3", "bad")
    assert Bisection(builds, way * SIZE, noise).next() == expected


def test_the_build_nearest_to_the_middle_of_the_probability_is_next() -> None:
    builds = tuple(f"b{number}" for number in range(9))
    search = Bisection(builds, SIZE, 0.005)
    assert search.next() == "b4"
    search.skip("b4")
    assert search.next() == "b3"
    search.observe("b3", 0.0, 0.02)
    posterior = search.posterior
    before = np.cumsum([posterior[build] for build in builds])
    others = [place for place in range(1, 8) if place != 4]
    nearest = min(others, key=lambda place: abs(before[place] - 0.5))
    assert search.next() == builds[nearest]


def test_what_has_95_percent_is_found_and_the_shortest_such_run_is_credible() -> None:
    search = Bisection(FOUR, SIZE, 0.005)
    assert search.credible == ("b1", "b2", "bad")
    search.observe("b1", 0.0, 0.02)
    assert search.found == ()
    assert search.credible == ("b2", "bad")
    search.observe("b2", SIZE, 0.02)
    assert search.found == ("b2",)
    assert search.credible == ("b2",)
    assert search.measurements == 2


def test_a_skipped_build_is_found_with_the_next_one_that_was_measured() -> None:
    search = Bisection(("good", "b1", "b2", "b3", "bad"), SIZE, 0.005)
    search.skip("b2")
    search.observe("b1", 0.0, 0.005)
    search.observe("b3", SIZE, 0.005)
    assert search.found == ("b2", "b3")
    assert search.next() is None


def test_a_run_of_just_95_percent_is_credible() -> None:
    """Of twenty builds that are equally probable it has nineteen, whatever the sums' rounding."""
    builds = tuple(f"b{number}" for number in range(21))
    assert len(Bisection(builds, SIZE, 0.005).credible) == 19


def test_a_size_of_just_three_deviations_is_known() -> None:
    assert Bisection(("good", "b1", "bad"), 3.0, 1.0).next() == "b1"


def test_where_every_build_between_was_measured_and_went_nothing_is_next() -> None:
    search = Bisection(("good", "b1", "bad"), SIZE, 0.005)
    search.observe("b1", SIZE / 2, 0.05)
    search.skip("b1")
    assert (search.found, search.next()) == ((), None)


def test_a_hundred_measurements_are_counted_and_still_told_apart() -> None:
    search = Bisection(("good", "b1", "b2", "bad"), SIZE, 0.005)
    for _ in range(100):
        search.observe("b1", 0.0, 0.3)
        search.observe("b2", SIZE, 0.3)
    assert search.measurements == 200
    assert search.found == ("b2",)


class TestDeviation:
    NIGHTS = (Pairs("bad", (0.10, 0.14, 0.06)), Pairs("b1", (0.0, 0.02)))

    def test_it_is_pooled_by_the_freedom_of_each_night_and_wider_where_pairs_are_few(self) -> None:
        """Student's t of 3 degrees of freedom at 97.5 % is 3.1824."""
        wide, narrow = (float(spread(np.asarray(night.ratios))) for night in self.NIGHTS)
        pooled = math.sqrt((2 * wide**2 + 1 * narrow**2) / 3)
        expected = 3.1824 / 1.96 * pooled * math.sqrt(1.08 / 3)
        assert deviation_of(3, self.NIGHTS, 0.001) == pytest.approx(expected, rel=1e-4)

    def test_it_is_never_below_the_floor(self) -> None:
        assert deviation_of(3, (Pairs("bad", (0.1, 0.1, 0.1)),), 0.004) == 0.004

    def test_the_shift_is_the_hodges_lehmann_estimate(self) -> None:
        assert shift_of((0.0, 0.1, 0.4)) == pytest.approx(0.15)


def test_a_search_is_what_its_nights_have_told() -> None:
    """The first night of the bad build gives the size, the others are measurements."""
    builds = ("good", "b1", "b2", "b3", "bad")
    nights = (
        Pairs("b1", (0.0, 0.01, -0.01)),
        Pairs("bad", (0.10, 0.11, 0.09)),
        Pairs("bad", (0.12, 0.11, 0.13)),
    )
    found = bisection_of(builds, nights, ("b2",), 0.004)
    assert found.measurements == 2
    expected = Bisection(builds, 0.10, deviation_of(3, nights, 0.004))
    expected.observe("b1", 0.0, deviation_of(3, nights, 0.004))
    expected.observe("bad", 0.12, deviation_of(3, nights, 0.004))
    expected.skip("b2")
    assert found.posterior == pytest.approx(expected.posterior)
    assert found.size == pytest.approx(expected.size)
    assert found.next() == expected.next() == "b3"
