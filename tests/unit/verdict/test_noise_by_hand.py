"""The learned noise, reckoned by hand on nights that are simple enough."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from nexmark.model import SUITE, Value
from nexmark.verdict.noise import Noise, Past, about_own_level, learn, suite_shifts
from nexmark.verdict.verdict import Verdict
from tests.unit.verdict.gate_builder import CPU

FLOOR = 0.004
ROBUST = 1.4826  # deviation / median absolute deviation of normal values


def turns(size: float, nights: int) -> list[float]:
    """Shifts of nights, in turns above and below 0: their median absolute deviation is `size`."""
    return [size if night % 2 else -size for night in range(nights)]


def learned(shifts: list[list[float]], spread: float, pairs: float) -> Noise:
    table = np.array(shifts)
    return learn(table, np.full(table.shape, spread), np.full(table.shape, pairs), FLOOR)


@pytest.mark.parametrize(("pairs", "share"), [(1.0, 0.895), (2.0, 0.895), (5.0, 0.97375)])
def test_the_spread_of_few_pairs_is_a_little_below_their_deviation(
    pairs: float, share: float
) -> None:
    """Its median is: 1 - 0.105 / (pairs - 1)."""
    assert learned([turns(0.1, 20)], 0.03, pairs).pair == pytest.approx(0.03 / share)


@pytest.mark.parametrize("nights", [20, 60])
def test_what_nights_add_is_the_part_of_their_variance_that_pairs_do_not_explain(
    nights: int,
) -> None:
    """But for what chance may make: 4.5 / sqrt(nights * queries) of what the pairs explain."""
    noise = learned([turns(0.1, nights)] * 3, 0.02, 5.0)
    within = math.sqrt(1.08 / 5) * 0.02 / 0.97375
    scale = ROBUST * nights / (nights - 0.8)  # for few nights: Croux and Rousseeuw
    unsure = 1 + 4.5 / math.sqrt(3 * nights)
    assert noise.nightly == pytest.approx(math.sqrt((scale * 0.1) ** 2 - unsure * within**2))


@pytest.mark.parametrize(("nights", "share"), [(20, 1 / 4), (60, 1 / 2), (120, 2 / 3)])
def test_a_query_that_moves_more_than_the_others_adds_a_part_of_its_own(
    nights: int, share: float
) -> None:
    """After sixty nights half of what is beyond 2.5 times what else explains it."""
    noise = learned([turns(x, nights) for x in (0.4, 0.1, 0.1)], 0.02, 5.0)
    scale = ROBUST * nights / (nights - 0.8)
    of_suite = noise.nightly[1] ** 2
    within = 1.08 / 5 * (0.02 / 0.97375) ** 2
    beyond = (scale * 0.4) ** 2 - 2.5 * (within + of_suite)
    assert noise.nightly[0] == pytest.approx(math.sqrt(of_suite + share * beyond))


def test_nights_that_move_less_than_their_pairs_explain_have_no_noise_of_their_own() -> None:
    assert learned([turns(0.001, 20)] * 3, 0.02, 5.0).nightly.tolist() == [0.0] * 3


def test_queries_whose_pairs_are_all_equal_tell_nothing_of_the_suite() -> None:
    """However much their nights differ: the third has no noise of its own."""
    table = np.array([turns(0.1, 20), turns(0.1, 20), [0.0] * 20])
    spreads = np.array([[0.0] * 20, [0.0] * 20, [0.02] * 20])
    noise = learn(table, spreads, np.full(table.shape, 5.0), FLOOR)
    assert noise.nightly[2] == 0.0


@pytest.mark.parametrize("nights", [6, 9])
def test_a_stretch_of_nights_is_about_its_own_level(nights: int) -> None:
    """Widened, for a median of three is close to each of them."""
    shifts = np.array([[0.1, 0.2, 0.3, 0.5, 0.7, 0.9, 1.0, 1.0, 4.0]])
    stretches = np.array([0, 0, 0, 1, 1, 1, 2, 2, 2])
    expected = np.array([[-0.1, 0, 0.1, -0.2, 0, 0.2, 0, 0, 3]]) * math.sqrt(3 / 2)
    found = about_own_level(shifts[:, :nights], stretches[:nights])
    np.testing.assert_allclose(found, expected[:, :nights], atol=1e-12)


def test_a_single_stretch_is_not_widened_and_a_short_one_stays_as_it_is() -> None:
    stretches = np.array([0, 0, 0, 1, 1])
    shifts = np.array([[0.1, 0.2, 0.3, math.nan, math.nan], [0.5, 0.7, math.nan, 0.9, 0.8]])
    expected = [[-0.1, 0.0, 0.1, math.nan, math.nan], [0.5, 0.7, math.nan, 0.9, 0.8]]
    np.testing.assert_allclose(about_own_level(shifts, stretches), expected, atol=1e-12)


def test_half_of_the_queries_tell_of_the_suite() -> None:
    nan = math.nan
    shifts = np.array([[0.1, 0.1, nan], [0.3, nan, nan], [nan, nan, nan], [nan, nan, nan]])
    np.testing.assert_allclose(suite_shifts(shifts), [0.2, nan, nan])
    np.testing.assert_allclose(suite_shifts(np.array([[0.1, nan]])), [0.1, nan])
    np.testing.assert_allclose(suite_shifts(np.array([[0.1], [nan], [nan]])), [nan])


def test_a_query_that_a_spike_moved_does_not_move_the_suite() -> None:
    """It counts as one that is three robust deviations from the median of the queries."""
    shifts = np.array([[-0.02], [-0.01], [0.0], [0.01], [5.0]])
    expected = (-0.02 - 0.01 + 0.01 + 3 * ROBUST * 0.01) / 5
    np.testing.assert_allclose(suite_shifts(shifts), [expected])


def _row(
    night: str, query: str, shift: float | None, value: Value = Value.OK, **drift: float
) -> Verdict:
    """A verdict on a night whose baseline no other night has: its shift is about no level."""
    row = Verdict(night, query, CPU, value, "", "paired", 8, shift=shift, pairs=5, **drift)
    return replace(row, baseline_build=night, spread=None if shift is None else 0.01)


def test_the_suite_learns_from_a_night_in_which_queries_had_changed_but_not_itself() -> None:
    changed = Value.REGRESSION
    nights = [
        [_row("n0", "q0", 0.1), _row("n0", "q1", 0.3), _row("n0", SUITE, 0.2)],
        [_row("n1", "q0", 0.9, changed), _row("n1", "q1", 0.5), _row("n1", SUITE, 0.5)],
        [_row("n2", "q0", 0.4), _row("n2", "q1", 0.4), _row("n2", SUITE, 0.4, changed)],
    ]
    found = Past(nights, dict.fromkeys(("q0", "q1"), CPU), "paired").history(["q0", "q1"], {}, 3)
    np.testing.assert_allclose(found.suite, [math.nan, 0.2, 0.5])
    np.testing.assert_allclose(found.shift, [[math.nan, 0.1, 0.4], [0.3, 0.5, 0.4]])


def test_a_night_without_a_figure_is_none_of_the_last_nights_and_leaves_the_drift() -> None:
    drift = {"drift_slower": 3.0, "drift_faster": 1.0}
    nights = [[_row("n0", "q5", 0.1, **drift)], [_row("n1", "q5", None, Value.INVALID)]]
    found = Past(nights, dict.fromkeys(("q5", "new"), CPU), "paired").history(
        ["q5", "new"], {"q5": "n0"}, 1
    )
    np.testing.assert_allclose(found.shift, [[0.1], [math.nan]])
    assert (found.drift.slower.tolist(), found.drift.faster.tolist()) == ([3.0, 0.0], [1.0, 0.0])
