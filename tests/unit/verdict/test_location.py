"""The estimates: known answers, and what must not move them."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import wilcoxon

from nexmark.verdict.location import (
    agree,
    depth,
    hodges_lehmann,
    interval,
    nan_median,
    spread,
    walsh_averages,
)

# Hollander and Wolfe, table 3.1: Hamilton depression scale, second visit - first.
DEPRESSION = np.array([-0.952, 0.147, -1.022, -0.430, -0.620, -0.590, -0.490, 0.080, -0.010])

values = st.lists(st.floats(-3, 3), min_size=1, max_size=9).map(np.array)


def test_walsh_averages_are_all_pairs_and_each_value() -> None:
    assert sorted(walsh_averages(np.array([1.0, 2.0, 4.0]))) == [1, 1.5, 2, 2.5, 3, 4]


@pytest.mark.parametrize(
    ("ratios", "estimate"),
    [
        ([3.0], 3.0),
        ([1.0, 2.0], 1.5),
        ([1.0, 2.0, 4.0], 2.25),  # of 1, 1.5, 2, 2.5, 3, 4
        ([0.0, 0.0, 0.0, 0.0, 100.0], 0.0),  # of fifteen, ten are 0
        ([1.0, math.nan, 2.0, 4.0], 2.25),
    ],
)
def test_hodges_lehmann_by_hand(ratios: list[float], estimate: float) -> None:
    assert hodges_lehmann(np.array(ratios)) == pytest.approx(estimate)


def test_hodges_lehmann_and_its_interval_as_in_the_textbook() -> None:
    """Hollander and Wolfe, examples 3.3 and 3.4: -0.46, and -0.786 to -0.010 at 96 %."""
    assert hodges_lehmann(DEPRESSION) == pytest.approx(-0.46)
    assert interval(DEPRESSION, 0.95) == pytest.approx((-0.786, -0.010))
    assert interval(DEPRESSION) == interval(DEPRESSION, 0.95)


@pytest.mark.parametrize("size", [6, 8, 10, 13])
def test_the_interval_holds_the_shifts_that_the_signed_rank_test_does_not_reject(size: int) -> None:
    ratios = np.random.default_rng(size).normal(0.1, 1, size)
    low, high = interval(ratios, 0.95)

    def p(shift: float) -> float:
        return float(wilcoxon(ratios - shift, method="exact").pvalue)

    assert p(low + 1e-9) > 0.05 >= p(low - 1e-9)
    assert p(high - 1e-9) > 0.05 >= p(high + 1e-9)


def test_five_pairs_have_their_range_as_the_widest_interval() -> None:
    assert interval(np.array([0.3, -0.1, 0.2, 0.0, 0.1]), 0.95) == (-0.1, 0.3)
    assert depth(5, 0.95) == 0
    assert depth(5, 0.9) == 1
    assert depth(10, 0.95) == 9  # the ninth from each end, as in tables


@pytest.mark.parametrize(
    ("size", "critical"),
    [(6, 0), (7, 2), (8, 3), (9, 5), (10, 8), (12, 13), (15, 25), (20, 52), (25, 89)],
)
def test_the_depth_follows_from_the_critical_values_in_tables(size: int, critical: int) -> None:
    """Of the signed-rank test at 5 %, two-sided; the interval ends at the next Walsh average."""
    assert depth(size, 0.95) == critical + 1


def test_what_has_just_the_probability_lies_outside() -> None:
    assert depth(5, 0.9375) == 1  # P(W <= 0) is 1/32, and just that may lie outside on each side
    assert depth(2, 0.0) == 2  # P is 1/4, 2/4, 3/4, 1
    assert depth(1, 0.0) == 1  # P is 1/2, 1


def test_the_median_of_nothing_is_no_number() -> None:
    for shape in ((), (3,), (2, 3)):
        median = nan_median(np.zeros((*shape, 0)))
        assert np.shape(median) == shape
        assert np.isnan(median).all()


def test_no_values_have_no_interval() -> None:
    assert all(math.isnan(end) for end in interval(np.array([math.nan])))


@pytest.mark.parametrize("count", [2, 3, 5, 10])
def test_the_spread_of_normal_values_is_their_standard_deviation_at_every_size(count: int) -> None:
    drawn = np.random.default_rng(count).normal(0, 0.05, (40000, count))
    assert spread(drawn).mean() == pytest.approx(0.05, rel=0.02)


def test_the_spread_by_hand() -> None:
    """Mean difference of 1, 2, 4 is 2; times sqrt(pi) / 2."""
    assert spread(np.array([4.0, 1.0, math.nan, 2.0])) == pytest.approx(math.sqrt(math.pi))
    assert math.isnan(float(spread(np.array([1.0]))))


@settings(deadline=None, derandomize=True)
@given(ratios=values)
def test_agreement_is_the_exact_one_sided_signed_rank_test(ratios: np.ndarray) -> None:
    magnitudes = np.abs(ratios)
    if len(set(magnitudes)) < len(ratios) or magnitudes.min() < 1e-6 or len(ratios) < 2:
        return  # scipy's exact test has no ties and no zeros
    expected = wilcoxon(ratios, alternative="greater", method="exact").pvalue <= 0.05
    assert bool(agree(ratios, np.array(1.0), level=0.05)) == expected


def test_agreement_is_by_side_and_never_of_nothing() -> None:
    ratios = np.array([[0.1, 0.2, 0.15, 0.3, 0.05, 0.12], [math.nan] * 6])
    assert list(agree(ratios, np.array([1.0, 1.0]))) == [True, False]
    assert list(agree(ratios, np.array([-1.0, -1.0]))) == [False, False]


@settings(deadline=None, derandomize=True)
@given(
    rows=st.lists(
        st.lists(st.one_of(st.just(math.nan), st.floats(-9, 9)), min_size=4, max_size=4),
        min_size=1,
        max_size=5,
    )
)
@pytest.mark.filterwarnings("ignore:All-NaN")
def test_nan_median_is_that_of_numpy(rows: list[list[float]]) -> None:
    table = np.array(rows)
    np.testing.assert_allclose(nan_median(table), np.nanmedian(table, axis=-1), atol=1e-12)


@settings(deadline=None, derandomize=True)
@given(ratios=values, moved=st.floats(-5, 5))
def test_estimates_move_with_the_values_and_mirror_with_them(
    ratios: np.ndarray, moved: float
) -> None:
    estimate = hodges_lehmann(ratios)
    assert hodges_lehmann(ratios + moved) == pytest.approx(estimate + moved, abs=1e-9)
    assert hodges_lehmann(-ratios) == pytest.approx(-estimate, abs=1e-9)
    low, high = interval(ratios)
    assert low <= estimate + 1e-12
    assert high >= estimate - 1e-12
    assert interval(-ratios) == pytest.approx((-high, -low))
    if len(ratios) > 1:
        assert spread(ratios + moved) == pytest.approx(spread(-ratios), abs=1e-9)


def test_values_agree_on_a_side_by_hand() -> None:
    """P(W <= w) of five is 1/32, 2/32, 3/32, 5/32: at 0.1 two averages may be on the other side."""

    def agreed(last: float, level: float) -> bool:
        values = np.array([1.0, 2.0, 5.0, 6.0, last])
        found = bool(agree(values, np.array(1.0), level))
        assert found == agree(-values, np.array(-1.0), level)
        return found

    assert agreed(-2.0, 0.1)  # -2 and -0.5; 0 is on no side
    assert not agreed(-2.5, 0.1)  # -2.5, -0.75 and -0.25
    assert agreed(-0.5, 0.0625)  # one, and just that probability
    assert not agreed(-1.5, 0.0625)  # -1.5 and -0.25
