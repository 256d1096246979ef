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


def test_every_two_pairs_are_abba() -> None:
    assert arm_order(3) == [
        (1, "candidate"),
        (1, "baseline"),
        (2, "baseline"),
        (2, "candidate"),
        (3, "candidate"),
        (3, "baseline"),
    ]


def test_any_arm_may_begin() -> None:
    assert [arm for _, arm in arm_order(2, first=1)] == [
        "baseline",
        "candidate",
        "candidate",
        "baseline",
    ]
    assert arm_order(1, ("a", "b", "c"), first=2) == [(1, "c"), (1, "a"), (1, "b")]


def test_a_host_that_slows_down_steadily_favours_no_arm() -> None:
    for arms in (("a", "b"), ("a", "b", "c"), ("a", "b", "c", "d")):
        times: dict[str, int] = dict.fromkeys(arms, 0)
        for time, (_, arm) in enumerate(arm_order(2 * len(arms), arms)):
            times[arm] += time
        assert len(set(times.values())) == 1


@pytest.mark.parametrize("arms", ["abc", "abcd"])
def test_three_arms_have_every_place_and_every_neighbour_alike(arms: str) -> None:
    rows: dict[int, list[str]] = {}
    for pair, arm in arm_order(2 * len(arms), tuple(arms)):
        rows.setdefault(pair, []).append(arm)
    places = Counter((place, arm) for row in rows.values() for place, arm in enumerate(row))
    assert set(places.values()) == {2}
    before = Counter(two for row in rows.values() for two in combinations(row, 2))
    assert {before[two] for two in permutations(arms, 2)} == {len(arms)}


def test_one_arm_is_its_own_order() -> None:
    assert arm_order(2, ("candidate",)) == [(1, "candidate"), (2, "candidate")]
    assert arm_order(0) == []


@pytest.mark.parametrize(
    "wrong",
    [{"pairs": -1}, {"pairs": 1, "first": -1}, {"pairs": 1, "first": 2}, {"pairs": 1, "arms": ()}],
)
def test_impossible_orders_are_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(ValueError, match="give"):
        arm_order(**wrong)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="each once"):
        arm_order(1, ("a", "a"))


def test_the_queries_of_the_self_test_are_two_and_take_turns() -> None:
    for count in (2, 3, 23):
        queries = QUERIES[:count]
        nights = [self_test_queries(queries, night) for night in range(count * (count - 1))]
        assert all(aa != slow for aa, slow in nights)
        assert [aa for aa, _ in nights[:count]] == queries
        assert sorted(map(str, (slow for _, slow in nights[:count]))) == sorted(queries)
        assert len(set(nights)) == len(nights)


def test_a_single_query_is_both_and_none_is_refused() -> None:
    assert self_test_queries(["q5"], 7) == ("q5", "q5")
    with pytest.raises(ValueError, match="no queries"):
        self_test_queries([], 3)
