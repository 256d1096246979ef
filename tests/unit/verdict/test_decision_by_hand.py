"""The steps of a decision, each reckoned by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.special import ndtr

from nexmark.verdict.decision import (
    Decision,
    First,
    advance,
    decide,
    drift_side,
    look,
    mean_shift,
    second_stage,
    smallest_seen,
    suite_noise,
    suite_side,
)
from nexmark.verdict.noise import Drift, Learned, Noise
from tests.unit.verdict.gate_builder import rules

FLOOR = 0.004
RULES = rules(
    suspect_z=1.5,
    suspect_faster_z=2.5,
    suspect_change=0.02,
    confirm_z=2.0,
    confirm_change=0.03,
    together_z=3.0,
    confirmation=2,
    drift_allowance=0.5,
    drift_bound=5.0,
    suite_z=2.5,
)


def noise(pair: float, nightly: float, queries: int = 1) -> Noise:
    nights = np.full(queries, 60.0)
    return Noise(np.full(queries, pair), np.full(queries, nightly), FLOOR, nights)


def confirmed(shift: float, fresh: list[float], nightly: float = 0.01, side: float = 1.0) -> bool:
    first = First(np.array([shift]), np.array([0.01]), np.array([side]))
    given = noise(0.0, nightly)
    return bool(second_stage(first, np.array([5.0]), np.array([fresh]), given, RULES)[0])


class TestSecondStage:
    @pytest.mark.parametrize(
        ("nightly", "fresh", "is_confirmed"),
        [
            (0.02, 0.041, True),  # beyond two deviations
            (0.02, 0.040, False),  # just two
            (0.02, 0.039, False),
            (0.001, 0.030, True),  # beyond ln(1.03) = 0.0296
            (0.001, 0.029, False),
        ],
    )
    def test_fresh_pairs_are_beyond_the_noise_and_the_size_that_matters(
        self, nightly: float, fresh: float, is_confirmed: bool
    ) -> None:
        assert confirmed(0.2, [fresh] * 10, nightly) is is_confirmed
        assert confirmed(-0.2, [-fresh] * 10, nightly, side=-1.0) is is_confirmed

    @pytest.mark.parametrize(("first", "is_confirmed"), [(0.0405, True), (0.0375, False)])
    def test_both_stages_together_are_beyond_their_own_bound(
        self, first: float, is_confirmed: bool
    ) -> None:
        """(5 first + 10 fresh) / 15 against 3 * 0.02 * sqrt(125 / 225) = 0.0447."""
        assert confirmed(first, [0.0475] * 10, nightly=0.02) is is_confirmed

    def test_they_are_on_the_side_that_was_suspected(self) -> None:
        assert confirmed(0.2, [0.1] * 10)
        assert not confirmed(0.2, [-0.1] * 10)
        assert not confirmed(-0.2, [0.1] * 10, side=-1.0)
        assert not confirmed(0.2, [0.1] * 10, side=0.0)


@pytest.mark.parametrize(
    ("pair", "nightly", "pairs", "fresh"),
    [(0.05, 0.01, 5.0, 10.0), (0.0, 0.002, 5.0, 10.0), (0.1, 0.0, 1.0, 4.0), (0.02, 0.05, 3, 6)],
)
def test_the_smallest_change_seen_passes_all_bounds_four_times_in_five(
    pair: float, nightly: float, pairs: float, fresh: float
) -> None:
    """At least four fresh pairs are measured; the later two bounds are passed by the same pairs."""
    given = noise(pair, nightly)
    found = math.log1p(float(smallest_seen(given, np.array([pairs]), RULES)[0]))
    first, again = (float(given.of(np.array([count]))[0]) for count in (float(pairs), float(fresh)))
    both = float(given.of_both(np.array([float(pairs)]), np.array([float(fresh)]))[0])
    suspected = ndtr((found - max(1.5 * first, math.log1p(0.02))) / first)
    alone = (found - max(2.0 * again, math.log1p(0.03))) / again
    together = (found - 3.0 * both) / both
    assert suspected * ndtr(min(alone, together)) == pytest.approx(0.8, abs=1e-4)


class TestDrift:
    @pytest.mark.parametrize(
        ("z", "slower", "faster"),
        [
            (1.0, 1.5, 0.0),  # 1 + 1 - 0.5; 1 - 1 - 0.5 is below 0
            (-1.0, 0.0, 1.5),
            (0.25, 0.75, 0.25),
            (9.0, 4.5, 0.0),  # no night counts for more than 4
            (-9.0, 0.0, 4.5),
            (math.nan, 1.0, 1.0),
        ],
    )
    def test_a_night_adds_its_size_without_the_allowance(
        self, z: float, slower: float, faster: float
    ) -> None:
        before = Drift(np.array([1.0]), np.array([1.0]))
        after = advance(before, np.array([z * 0.02]), np.array([0.02]), RULES)
        assert (after.slower, after.faster) == (pytest.approx(slower), pytest.approx(faster))

    @pytest.mark.parametrize(
        ("slower", "faster", "side"),
        [(5.1, 0, 1), (0, 5.1, -1), (5, 5, 0), (5.1, 5.1, 1), (5.1, 9, 1)],
    )
    def test_beyond_the_bound_it_has_a_side(self, slower: float, faster: float, side: int) -> None:
        assert drift_side(Drift(np.array([slower]), np.array([faster])), RULES).tolist() == [side]


class TestSuite:
    @pytest.mark.parametrize(
        ("shifts", "judged", "mean"),
        [
            ([0.1, 0.2, 0.6], [0, 0, 0], 0.3),
            ([0.1, 0.2, 0.6], [0, 0, 1], 0.15),
            ([0.1, 0.2, 0.6], [0, 1, 1], 0.3),  # more than half are judged: all count
            ([0.1, 0.3, 0.5, 0.9], [0, 0, 1, 1], 0.45),  # half are judged: all count
            ([0.1, 0.2, math.nan, 0.9], [0, 0, 0, 1], 0.15),
            ([0.1, math.nan, math.nan], [0, 0, 0], 0.1),
        ],
    )
    def test_its_mean_is_of_the_queries_that_are_not_judged_unless_they_are_half_of_it(
        self, shifts: list[float], judged: list[int], mean: float
    ) -> None:
        found = mean_shift(np.array([shifts]), np.array([judged], dtype=bool))
        assert found == pytest.approx(mean)

    def test_of_nothing_there_is_no_mean(self) -> None:
        assert np.isnan(mean_shift(np.array([math.nan] * 2), np.array([False, False])))

    def test_its_noise_is_that_of_independent_queries_or_as_learned_if_that_is_more(self) -> None:
        own = np.array([0.03, 0.04, math.nan])
        assert suite_noise(own, np.array([math.nan])) == pytest.approx(0.025)
        assert suite_noise(own, np.array([0.0, 0.01])) == pytest.approx(0.025)
        assert suite_noise(own, np.array([0.0, 0.2])) == pytest.approx(0.1 * math.sqrt(math.pi))
        assert suite_noise(np.array([0.03]), np.array([math.nan])) == pytest.approx(0.03)
        assert np.isnan(suite_noise(np.array([math.nan]), np.array([math.nan])))

    @pytest.mark.parametrize(
        ("z", "side"), [(2.6, 1), (2.5, 0), (2.4, 0), (-2.4, 0), (-2.5, 0), (-2.6, -1)]
    )
    def test_beyond_its_bound_it_has_a_side(self, z: float, side: int) -> None:
        assert float(suite_side(np.array(z * 0.01), np.array(0.01), RULES)) == side


def history(shift: float, nights: int, spread: float = 0.0, queries: int = 1) -> Learned:
    """Nights in turns above and below 0, so that the noise of all pairs is known."""
    turns = np.array([[shift if night % 2 else -shift for night in range(nights)]] * queries)
    table = np.full(turns.shape, spread)
    nothing = Drift(np.zeros(queries), np.zeros(queries))
    return Learned(turns, table, np.full(turns.shape, 5.0), np.full(nights, math.nan), nothing)


class TestLook:
    @pytest.mark.parametrize(
        ("z", "side"),
        [(1.6, 1), (1.5, 0), (1.4, 0), (-1.6, 0), (-2.4, 0), (-2.5, 0), (-2.6, -1), (0.0, 0)],
    )
    def test_a_slowdown_is_suspected_earlier_than_a_speed_up(self, z: float, side: int) -> None:
        known = history(0.02, 60)
        _, _, usual = look(np.zeros((1, 5)), known, RULES, np.zeros(1))
        ratios = np.full((1, 5), z * float(usual.noise[0]))
        _, calibrated, first = look(ratios, known, RULES, np.zeros(1))
        assert (first.side.tolist(), calibrated.tolist()) == ([side], [True])

    @pytest.mark.parametrize(("change", "side"), [(1.021, 1), (1.019, 0), (1 / 1.019, 0)])
    def test_a_change_that_does_not_matter_is_not_suspected(self, change: float, side: int) -> None:
        ratios = np.full((1, 5), math.log(change))
        *_, first = look(ratios, history(0.0001, 60), RULES, np.zeros(1))
        assert first.side.tolist() == [side]

    @pytest.mark.parametrize(("nights", "side"), [(9, 0), (10, 1)])
    def test_a_query_is_calibrated_after_enough_nights(self, nights: int, side: int) -> None:
        *_, calibrated, first = look(
            np.full((1, 5), 0.5), history(0.01, nights), RULES, np.zeros(1)
        )
        assert (calibrated.tolist(), first.side.tolist()) == ([bool(side)], [side])

    def test_what_the_hosts_add_makes_the_noise_wider(self) -> None:
        ratios = np.full((1, 5), 0.1)
        noise, _, first = look(ratios, history(0.01, 60), RULES, np.array([0.2]))
        assert float(first.noise[0]) > 0.2
        assert first.side.tolist() == [0]
        assert float(noise.nightly[0]) > 0.2


def decided(shifts: list[float], fresh: float = 0.0, **hosts: float) -> Decision:
    """A night of queries with these shifts, and of suspects with this one in ten fresh pairs."""
    known = history(0.01, 60, queries=len(shifts))
    wider = {name: np.full(len(shifts), value) for name, value in hosts.items()}
    return decide(
        np.repeat(np.array(shifts)[:, None], 5, axis=1),
        known,
        lambda picked: np.full((len(picked[0]), 10), fresh),
        RULES,
        **({"widening": np.zeros(len(shifts))} | wider),
    )


class TestDecide:
    @pytest.mark.parametrize("way", [1, -1])
    def test_a_query_counts_in_the_suite_by_three_deviations_at_the_most(self, way: int) -> None:
        found = decided([way * 0.5, way * 0.01, 0.0, 0.0])
        expected = way * (3 * float(found.first.noise[0]) + 0.01) / 4
        assert float(found.suite_shift) == pytest.approx(expected)
        assert found.confirmed.tolist() == [0.0] * 4

    def test_a_confirmed_query_is_not_in_the_suite(self) -> None:
        found = decided([0.5, 0.01, 0.0, 0.0], fresh=0.5)
        assert found.confirmed.tolist() == [1.0, 0.0, 0.0, 0.0]
        assert float(found.suite_shift) == pytest.approx(0.01 / 3)

    @pytest.mark.parametrize(
        ("hosts", "first", "second"),
        [
            ({}, 0.0, 0.0),
            ({"widening": 0.03}, 0.03, 0.03),
            ({"widening": 0.03, "again": 0.05}, 0.03, 0.05),
            ({"widening": 0.0, "again": 0.05}, 0.0, 0.05),
        ],
    )
    def test_fresh_pairs_have_what_the_hosts_added_while_they_ran(
        self, hosts: dict[str, float], first: float, second: float
    ) -> None:
        usual = float(decided([0.5]).first.noise[0])
        found = decided([0.5], **hosts)
        assert float(found.first.noise[0]) == pytest.approx(math.hypot(usual, first))
        assert float(found.second.noise[0]) == pytest.approx(math.hypot(usual, second))
        assert found.second.count.tolist() == [10]
        assert found.second.shift.tolist() == [0.0]
