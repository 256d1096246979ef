"""The order of a night gives no arm the better places, and can be had again."""

from __future__ import annotations

from collections import Counter
from itertools import combinations, permutations

import pytest

from nexmark.verdict.order import arm_order, query_order, self_test_queries

QUERIES = [f"q{number}" for number in range(23)]


def test_queries_are_shuffled_and_the_same_seed_gives_the_same_order() -> None:
    found = query_order(QUERIES, 7)
    assert sorted(found) == sorted(QUERIES)
    assert found == query_order(tuple(QUERIES), 7)
    assert found not in (QUERIES, query_order(QUERIES, 8))
    assert QUERIES[0] == "q0"


def test_the_order_of_a_stored_seed_stays_what_it_was() -> None:
    """A night that is run again needs it; a Python that shuffles differently must be noticed."""
    assert query_order(["q0", "q1", "q2", "q3", "q4"], 1) == ["q2", "q3", "q4", "q0", "q1"]


TWO = ("candidate", "baseline")
SEEDS = [f"night {number}" for number in range(20)]


@pytest.mark.parametrize("seed", SEEDS)
def test_every_two_pairs_are_abba_whichever_begins(seed: str) -> None:
    order = arm_order(4, TWO, seed)
    assert [pair for pair, _ in order] == [1, 1, 2, 2, 3, 3, 4, 4]
    arms = [arm for _, arm in order]
    for block in (arms[:4], arms[4:]):
        assert block[:2] == block[:1:-1]
        assert set(block[:2]) == set(TWO)


def test_pairs_that_fill_no_block_are_those_of_its_beginning() -> None:
    for seed in SEEDS:
        assert arm_order(3, TWO, seed) == arm_order(4, TWO, seed)[:6]


def test_a_load_that_comes_as_often_as_a_block_meets_both_arms() -> None:
    """As a job of every minute, where four repetitions take a minute."""
    hit = Counter(
        arm
        for seed in SEEDS
        for slot, (_, arm) in enumerate(arm_order(20, TWO, seed))
        if slot % 4 in (0, 3)
    )
    assert all(count > 160 for count in hit.values()), hit  # of 400, in turns: all or none


def test_the_same_seed_gives_the_same_order_and_stays_what_it_was() -> None:
    assert arm_order(4, TWO, "1 q0 1") == arm_order(4, list(TWO), "1 q0 1")
    begins = [arm_order(8, TWO, "1 q0 1")[place][1][0] for place in range(0, 16, 4)]
    assert "".join(begins) == "bbcc"


def test_a_host_that_slows_down_steadily_favours_no_arm() -> None:
    for arms in (("a", "b"), ("a", "b", "c"), ("a", "b", "c", "d")):
        times: dict[str, int] = dict.fromkeys(arms, 0)
        for time, (_, arm) in enumerate(arm_order(2 * len(arms), arms, "1")):
            times[arm] += time
        assert len(set(times.values())) == 1


@pytest.mark.parametrize("arms", ["abc", "abcd"])
def test_three_arms_have_every_place_and_every_neighbour_alike(arms: str) -> None:
    rows: dict[int, list[str]] = {}
    for pair, arm in arm_order(2 * len(arms), tuple(arms), "1"):
        rows.setdefault(pair, []).append(arm)
    places = Counter((place, arm) for row in rows.values() for place, arm in enumerate(row))
    assert set(places.values()) == {2}
    before = Counter(two for row in rows.values() for two in combinations(row, 2))
    assert {before[two] for two in permutations(arms, 2)} == {len(arms)}


@pytest.mark.parametrize("arms", ["abc", "abcd"])
def test_more_arms_begin_in_turns_and_once_all_have_begun_the_same_again_backwards(
    arms: str,
) -> None:
    for seed in SEEDS:
        order = "".join(arm for _, arm in arm_order(4 * len(arms), tuple(arms), seed))
        rows = [order[i : i + len(arms)] for i in range(0, len(order), len(arms))]
        for block in (rows[: 2 * len(arms)], rows[2 * len(arms) :]):
            turned = [block[0][i:] + block[0][:i] for i in range(len(arms))]
            assert block == [*turned, *(row[::-1] for row in turned)]
            assert block[0] in arms * 2


def test_one_arm_is_its_own_order() -> None:
    assert arm_order(2, ("candidate",), "1") == [(1, "candidate"), (2, "candidate")]
    assert arm_order(0, TWO, "1") == []


def test_the_queries_of_the_self_test_are_two_and_take_turns() -> None:
    for count in (2, 3, 23):
        queries = QUERIES[:count]
        nights = [self_test_queries(queries, night) for night in range(count * (count - 1))]
        assert all(aa != slow for aa, slow in nights)
        assert [aa for aa, _ in nights[:count]] == queries
        assert sorted(map(str, (slow for _, slow in nights[:count]))) == sorted(queries)
        assert len(set(nights)) == len(nights)


def test_the_queries_of_a_self_test_stay_what_they_were() -> None:
    """The other is half of the queries away at first, and in each round one further."""
    found = [self_test_queries(QUERIES[:6], night) for night in (0, 2, 8, 14)]
    assert found == [("q0", "q3"), ("q2", "q5"), ("q2", "q0"), ("q2", "q1")]
    two = [self_test_queries(QUERIES[:2], night) for night in range(4)]
    assert two == [("q0", "q1"), ("q1", "q0")] * 2


def test_a_single_query_is_both() -> None:
    assert self_test_queries(["q5"], 7) == ("q5", "q5")
