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


@pytest.mark.parametrize(("nights", "own"), [(10, 1 / 7), (60, 1 / 2), (120, 2 / 3)])
def test_after_sixty_nights_a_query_counts_as_much_as_the_suite(nights: int, own: float) -> None:
    noise = learned([turns(x, nights) for x in (0.3, 0.1, 0.1)], 0.02, 5.0)
    within = math.sqrt(1.08 / 5) * 0.02 / 0.97375
    scale = ROBUST * nights / (nights - 0.8)  # for few nights: Croux and Rousseeuw
    expected = scale * (own * 0.3 + (1 - own) * 0.1)
    assert noise.nightly[0] == pytest.approx(math.sqrt(expected**2 - within**2))


def test_nights_that_move_less_than_their_pairs_explain_have_no_noise_of_their_own() -> None:
    assert learned([turns(0.001, 20)] * 3, 0.02, 5.0).nightly.tolist() == [0.0] * 3


def test_what_is_less_than_the_floor_is_the_floor() -> None:
    noise = learned([turns(0.0001, 20)] * 3, 0.0, 5.0)
    assert noise.nightly == pytest.approx(FLOOR)


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


def _usual(queries: int) -> Noise:
    return Noise(np.full(queries, 0.02), np.full(queries, 0.01), FLOOR, np.full(queries, 60.0))


def _pairs(spread: float, queries: int) -> np.ndarray:
    """Pairs that spread as 0 and `spread` do, twice over: spread * sqrt(pi) / 2."""
    return np.array([[0.0, 2 * spread / math.sqrt(math.pi)]] * queries)


@pytest.mark.parametrize(
    ("times", "queries", "factor"), [(1.3, 5, 1.3), (1.2, 5, 1), (3, 4, 1), (3, 5, 3)]
)
def test_a_night_is_noisy_from_a_quarter_more_in_five_queries_on(
    times: float, queries: int, factor: float
) -> None:
    noise = _usual(queries).tonight(_pairs(times * 0.02, queries))
    assert noise.pair == pytest.approx(0.02 * factor)
    assert noise.nightly == pytest.approx(0.01 * factor)


def test_a_noise_below_the_floor_makes_no_noisy_night() -> None:
    quiet = Noise(np.full(5, 0.001), np.full(5, 0.0), FLOOR, np.full(5, 60.0))
    assert quiet.tonight(_pairs(FLOOR * 1.2, 5)).pair == pytest.approx(0.001)


def test_hosts_add_to_the_noise_of_the_night_as_independent_noise_does() -> None:
    wider = _usual(2).widened(np.array([0.0, 0.03]))
    assert wider.nightly == pytest.approx([0.01, math.hypot(0.01, 0.03)])
    assert wider.pair == pytest.approx(0.02)


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
    found = Past(nights, CPU, "paired").history(["q0", "q1"], {}, 3)
    np.testing.assert_allclose(found.suite, [math.nan, 0.2, 0.5])
    np.testing.assert_allclose(found.shift, [[math.nan, 0.1, 0.4], [0.3, 0.5, 0.4]])


def test_a_night_without_a_figure_is_none_of_the_last_nights_and_leaves_the_drift() -> None:
    drift = {"drift_slower": 3.0, "drift_faster": 1.0}
    nights = [[_row("n0", "q5", 0.1, **drift)], [_row("n1", "q5", None, Value.INVALID)]]
    found = Past(nights, CPU, "paired").history(["q5", "new"], {"q5": "n0"}, 1)
    np.testing.assert_allclose(found.shift, [[0.1], [math.nan]])
    assert (found.drift.slower.tolist(), found.drift.faster.tolist()) == ([3.0, 0.0], [1.0, 0.0])
