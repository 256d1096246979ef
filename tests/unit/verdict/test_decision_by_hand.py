"""The steps of a decision, each reckoned by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest

from nexmark.config import Gate
from nexmark.verdict.decision import (
    Bounds,
    Decision,
    Look,
    NightBounds,
    advance,
    decide,
    deviation_of,
    drift_side,
    look,
    mean_shift,
    nights_apart,
    pairs_to_decide,
    suite_side,
)
from nexmark.verdict.moderation import Moderated
from nexmark.verdict.noise import Drift, Learned, Noise
from nexmark.verdict.spending import spending_bounds
from tests.unit.verdict.gate_builder import rules

FLOOR = 0.004
RULES = rules(
    rounds=(5, 10),
    pursue_z=(1.5,),
    pursue_faster_z=2.5,
    matters=0.10,
    false_reds=0.02,
    confirm_z=2.0,
    confirm_change=0.03,
    drift_allowance=0.5,
    drift_bound=5.0,
    suite_z=2.5,
)
SURE = 1e9
"""Degrees of freedom with which a deviation is known exactly."""


def usual(nightly: float = 0.0, queries: int = 1) -> Noise:
    some = np.full(queries, 60.0)
    return Noise(np.full(queries, 0.02), np.full(queries, nightly), FLOOR, some)


def known(deviation: float, queries: int = 1) -> Moderated:
    """The deviation of a pair."""
    return Moderated(np.full(queries, deviation), np.full(queries, SURE))


def alone(gate: Gate = RULES) -> NightBounds:
    """The bounds of a night with one query."""
    return NightBounds.of((5, 10), gate, np.zeros(1, dtype=np.int_))


def seen(first: float, later: float | None = None, deviation: float = 0.02) -> Look:
    """A query with five pairs of this log ratio, and ten of another one."""
    ratios = np.full((1, 5), first)
    if later is not None:
        ratios = np.concatenate([ratios, np.full((1, 10), later)], axis=1)
    return look(ratios, 5, known(deviation), usual(), RULES, alone(), np.zeros(1))


class TestDeviation:
    def test_more_pairs_shrink_what_pairs_add_and_not_what_the_night_adds(self) -> None:
        """1.08 is the efficiency of the Hodges-Lehmann estimate."""
        noise, _ = deviation_of(known(0.05), usual(0.03), np.array([5.0]), np.zeros(1))
        assert noise == pytest.approx(math.sqrt(1.08 * 0.05**2 / 5 + 0.03**2))
        noise, _ = deviation_of(known(0.05), usual(0.03), np.array([1e9]), np.zeros(1))
        assert noise == pytest.approx(0.03)

    def test_hosts_add_to_it_and_it_is_never_below_the_floor(self) -> None:
        noise, _ = deviation_of(known(0.0), usual(), np.array([5.0]), np.array([0.2]))
        assert noise == pytest.approx(0.2)
        noise, _ = deviation_of(known(0.0001), usual(), np.array([5.0]), np.zeros(1))
        assert noise == pytest.approx(FLOOR)

    def test_it_has_the_degrees_of_the_part_that_is_known_worse(self) -> None:
        few = Moderated(np.array([0.05]), np.array([7.0]))
        _, degrees = deviation_of(few, usual(0.0), np.array([5.0]), np.zeros(1))
        assert degrees == pytest.approx(7.0)
        _, degrees = deviation_of(known(0.0001), usual(0.03), np.array([5.0]), np.zeros(1))
        assert degrees == pytest.approx(60.0, rel=1e-3)


class TestLook:
    def test_the_interval_is_1_96_deviations_where_they_are_known(self) -> None:
        found = seen(0.01)
        half = 1.96 * 0.02 * math.sqrt(1.08 / 5)
        assert found.lo == pytest.approx(0.01 - half, rel=1e-4)
        assert found.hi == pytest.approx(0.01 + half, rel=1e-4)

    def test_the_first_round_alone_makes_nothing_red(self) -> None:
        found = seen(0.5)
        assert (found.beyond.tolist(), found.side.tolist()) == ([1.0], [0.0])

    @pytest.mark.parametrize("way", [1, -1])
    def test_both_rounds_beyond_their_bounds_are_a_change(self, way: int) -> None:
        assert seen(way * 0.1, way * 0.1).side.tolist() == [way]

    @pytest.mark.parametrize(
        ("deviation", "later", "is_real"),
        [
            (0.02, 0.031, True),  # beyond ln(1.03) = 0.0296
            (0.02, 0.029, False),
            (0.06, 0.041, True),  # beyond 2 * 0.06 * sqrt(1.08 / 10) = 0.0394
            (0.06, 0.038, False),
        ],
    )
    def test_the_later_round_by_itself_is_beyond_noise_and_what_matters(
        self, deviation: float, later: float, is_real: bool
    ) -> None:
        found = seen(0.2, later, deviation)
        assert found.side.tolist() == [float(is_real)]

    def test_a_later_round_on_the_other_side_confirms_nothing(self) -> None:
        assert seen(0.3, -0.1).side.tolist() == [0.0]

    @pytest.mark.parametrize(
        ("z", "goes_on"), [(1.6, True), (1.4, False), (0.0, False), (-2.4, False), (-2.6, True)]
    )
    def test_a_slowdown_is_pursued_earlier_than_a_speed_up(self, z: float, goes_on: bool) -> None:
        noise = 0.06 * math.sqrt(1.08 / 5)
        found = seen(z * noise, deviation=0.06)
        undecided = z * noise + 1.96 * noise >= math.log(1.10)
        assert found.goes_on.tolist() == [goes_on or undecided]

    def test_what_is_certainly_too_small_to_be_red_does_not_go_on(self) -> None:
        """Its evidence is large, for it is exact: 1 % slower, and at most 1.4 %."""
        found = seen(0.01, deviation=0.01)
        assert float(found.evidence[0]) > 1.5
        assert found.goes_on.tolist() == [False]

    @pytest.mark.parametrize(("deviation", "goes_on"), [(0.09, False), (0.12, True)])
    def test_what_does_not_exclude_a_slowdown_that_matters_goes_on(
        self, deviation: float, goes_on: bool
    ) -> None:
        """1.96 * 0.09 * sqrt(1.08 / 5) is 0.082, below ln(1.10) = 0.095; with 0.12 it is 0.109."""
        assert seen(0.0, deviation=deviation).goes_on.tolist() == [goes_on]


class TestBounds:
    def test_the_error_of_a_night_is_shared_by_its_queries(self) -> None:
        assert Bounds.of((5, 10), 20, RULES).error == pytest.approx(0.001)
        assert Bounds.of((5, 10), 1, RULES).error == pytest.approx(0.005)  # and no more

    def test_a_noisy_query_goes_on_more_often_and_needs_more_evidence(self) -> None:
        bounds = Bounds.of((5, 10), 20, RULES)
        quiet, noisy = bounds.at(np.array([15.0, 15.0]), np.array([0.02, 0.5]))
        assert quiet < noisy
        assert noisy == pytest.approx(spending_bounds((5, 15), 0.001)[1], abs=0.01)

    def test_between_two_looks_a_bound_is_between_theirs(self) -> None:
        bounds = Bounds.of((5, 10), 20, RULES)
        first, between, last = bounds.at(np.array([5.0, 10.0, 15.0]), np.full(3, 0.05))
        assert first > between > last

    def test_pairs_of_earlier_nights_count_as_rounds_like_the_last(self) -> None:
        assert Bounds.of((5, 10), 20, RULES, before=15).planned == (5, 10, 10, 10)

    def test_only_queries_that_were_left_open_share_the_error_with_those_of_then(self) -> None:
        """A query that is new tonight has the bounds that it has in any night."""
        night = NightBounds.of((5, 10), RULES, np.array([0, 15]), family=80)
        pairs, deviation = np.array([15.0, 30.0]), np.full(2, 0.05)
        new, again = Bounds.of((5, 10), 2, RULES), Bounds.of((5, 10), 80, RULES, before=15)
        expected = [float(new.at(pairs, deviation)[0]), float(again.at(pairs, deviation)[1])]
        assert night.at(pairs, deviation).tolist() == expected
        assert expected[1] > new.at(pairs, deviation)[1]
        assert night.picked(np.array([1])).at(pairs[1:], deviation[1:]).tolist() == expected[1:]
        assert night.total.tolist() == [15.0, 35.0]

    def test_a_night_in_one_round_confirms_what_is_new_by_itself(self) -> None:
        """Whatever pairs other queries have from earlier nights."""
        rules = RULES.model_copy(update={"rounds": (5,), "pursue_z": ()})
        bounds = NightBounds.of((5,), rules, np.array([0, 5]), family=4)
        ratios = np.array([[math.nan] * 5 + [0.3] * 5, [0.3] * 10])
        before = np.array([0, 5])
        found = look(
            ratios, 10, known(0.02, 2), usual(queries=2), rules, bounds, np.zeros(2), before
        )
        assert found.side.tolist() == [1.0, 1.0]


class TestPairsToDecide:
    def test_what_excludes_the_slowdown_that_matters(self) -> None:
        """A deviation of a pair of 0.12 leaves (1.96 * 0.12 * sqrt(1.08) / 0.0953)**2 = 6.6."""
        found = seen(0.0, deviation=0.12)
        assert pairs_to_decide(found, RULES, alone()).tolist() == [7.0]

    def test_what_shows_a_slowdown_that_is_there(self) -> None:
        found = seen(0.09, deviation=0.12)
        pair = 0.12 * math.sqrt(1.08)
        bound = float(alone().at(np.array([15.0]), np.array([pair]))[0])
        expected = math.ceil((bound * pair / 0.09) ** 2)
        assert pairs_to_decide(found, RULES, alone()).tolist() == [expected]

    def test_a_change_between_what_matters_and_what_is_red_is_decided_by_no_number(self) -> None:
        """2.5 % is more than the 2 % that are to be excluded, and less than the 3 % of a red."""
        tight = RULES.model_copy(update={"matters": 0.02})
        found = seen(0.025, deviation=0.12)
        assert np.isinf(pairs_to_decide(found, tight, alone(tight))).all()

    def test_at_least_one_more(self) -> None:
        found = seen(0.0, deviation=0.02)
        assert pairs_to_decide(found, RULES, alone()).tolist() == [6.0]


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
        noise = np.full((1, len(shifts)), 0.02)
        found, _ = mean_shift(np.array([shifts]), noise, np.array([judged], dtype=bool))
        assert found == pytest.approx(mean)

    def test_a_query_counts_by_how_well_it_is_known(self) -> None:
        """Weights 4 and 1: (4 * 0.1 + 1 * 0.2) / 5, and a deviation of 1 / sqrt(5 / 0.02**2)."""
        none = np.array([False, False])
        mean, noise = mean_shift(np.array([0.1, 0.2]), np.array([0.01, 0.02]), none)
        assert mean == pytest.approx(0.12)
        assert noise == pytest.approx(0.02 / math.sqrt(5))

    def test_of_nothing_there_is_no_mean(self) -> None:
        nothing = np.array([math.nan] * 2)
        mean, _ = mean_shift(nothing, np.full(2, 0.01), np.array([False, False]))
        assert np.isnan(mean)

    def test_nights_add_what_their_pairs_do_not_explain(self) -> None:
        """Two nights 0.2 apart deviate by 0.1 * sqrt(pi); pairs explain sqrt(9 + 16) % / 2."""
        own = np.array([0.03, 0.04, math.nan])
        quiet, apart = np.array([0.0, 0.01] * 5), np.array([0.0, 0.2])
        assert nights_apart(own, quiet, FLOOR) == 0
        expected = math.sqrt(0.01 * math.pi - 1.35 * 0.025**2)
        assert nights_apart(own, apart, FLOOR) == pytest.approx(expected)

    @pytest.mark.parametrize(("nights", "least"), [(0, FLOOR), (9, FLOOR), (10, 0.0)])
    def test_without_ten_nights_it_is_taken_to_move_by_the_floor(
        self, nights: int, least: float
    ) -> None:
        own = np.array([0.03, 0.04])
        assert nights_apart(own, np.full(max(nights, 1), 0.0 if nights else math.nan), FLOOR) == (
            pytest.approx(least)
        )

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


def decided(shifts: list[float], later: float = 0.0, rounds: int = 1, **hosts: float) -> Decision:
    """A night of queries with these shifts, and of those that go on with another one in ten pairs.

    Args:
        shifts: The log ratio of all first pairs of each query.
        later: The log ratio of all later pairs.
        rounds: How many later rounds there are.
        hosts: What the hosts add, first and again.
    """
    turns = np.array([[0.01, -0.01, 0.005, -0.005, 0.0]])
    wider = {name: np.full(len(shifts), value) for name, value in hosts.items()}
    return decide(
        np.array(shifts)[:, None] + turns,
        history(0.001, 60, spread=0.01, queries=len(shifts)),
        lambda picked, number: later + np.repeat(turns, 2, axis=1).repeat(len(picked[0]), axis=0),
        RULES.model_copy(update={"rounds": (5, *[10] * rounds), "pursue_z": (1.5,) * rounds}),
        **({"widening": np.zeros(len(shifts))} | wider),
    )


class TestDecide:
    @pytest.mark.parametrize("way", [1, -1])
    def test_a_query_counts_in_the_suite_by_three_deviations_at_the_most(self, way: int) -> None:
        usual_suite = float(decided([0.0] * 9).suite_shift)
        found = decided([way * 0.5, *[0.0] * 8], later=way * 0.02)
        far = way * float(found.suite_shift - usual_suite)
        assert 0 < far < 3.1 * float(found.final.noise.max()) / 9
        assert found.confirmed.tolist() == [0.0] * 9

    def test_a_query_that_is_red_is_not_in_the_suite(self) -> None:
        found = decided([0.5, *[0.0] * 8], later=0.5)
        assert found.confirmed.tolist() == [1.0] + [0.0] * 8
        assert abs(float(found.suite_shift)) < 0.001

    def test_a_round_is_asked_for_only_by_those_that_go_on(self) -> None:
        found = decided([0.5, 0.0, 0.0, 0.0, -0.5], later=0.5, rounds=2)
        assert found.final.pairs.tolist() == [15, 5, 5, 5, 25]

    def test_a_query_that_is_decided_stays_decided_whatever_the_others_do(self) -> None:
        """The fifth goes on after the first is red."""
        found = decided([0.5, 0.0, 0.0, 0.0, -0.5], later=0.5, rounds=3)
        assert found.final.side.tolist()[:4] == [1, 0, 0, 0]
        assert found.final.pairs.tolist()[0] == 15
        assert found.final.pairs.tolist()[4] > 15

    @pytest.mark.parametrize(
        ("hosts", "first", "second"),
        [
            ({}, 0.0, 0.0),
            ({"widening": 0.03}, 0.03, 0.03),
            ({"widening": 0.03, "again": 0.05}, 0.03, 0.05),
            ({"widening": 0.0, "again": 0.05}, 0.0, 0.05),
        ],
    )
    def test_later_pairs_have_what_the_hosts_added_while_they_ran(
        self, hosts: dict[str, float], first: float, second: float
    ) -> None:
        plain = decided([0.5], later=0.5)
        found = decided([0.5], later=0.5, **hosts)
        usual_noise = float(plain.first.noise[0]), float(plain.final.noise[0])
        assert float(found.first.noise[0]) == pytest.approx(
            math.hypot(usual_noise[0], first), rel=0.01
        )
        assert float(found.final.noise[0]) == pytest.approx(
            math.hypot(usual_noise[1], second), rel=0.01
        )
        assert found.final.fresh.tolist() == [10]
