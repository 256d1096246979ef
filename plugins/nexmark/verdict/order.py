"""The order of a night, decided before anything runs, so that no build has the better hours.

Research/regression-gates.md section 6, "Design": queries in another order every night, arms in
turns, and the two queries of the self-test another each night. All of it follows from a seed that
is stored, so that a night can be run again as it was.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import TypeVar

ARMS = ("candidate", "baseline")

Query = TypeVar("Query")


def query_order(queries: Sequence[Query], seed: int) -> list[Query]:
    """Return the queries shuffled; the same for the same queries, in the same order, and seed.

    It is ``random.Random(seed).shuffle``: Python's Mersenne Twister seeded with the number, whose
    shuffle has been the same since Python 3.2, though that is no promise of Python.
    """
    shuffled = list(queries)
    random.Random(seed).shuffle(shuffled)
    return shuffled


def arm_order(pairs: int, arms: Sequence[str] = ARMS, first: int = 0) -> list[tuple[int, str]]:
    """Return (pair, arm) in the order of running; pairs count from 1, ``arms[first]`` begins.

    Two arms: A B, B A, A B, ..., so that of every two pairs each arm has the outer and the inner
    places (A B B A) and a host that slowly changes favours neither. More arms: each pair begins
    with the next arm, and once all have begun the same again backwards, so that over twice as many
    pairs as arms every arm is in every place twice and as often before as behind any other.
    ValueError: fewer than 0 pairs, no arm, an arm twice, or no arm at ``first``.
    """
    if pairs < 0:
        raise ValueError(f"{pairs} pairs: give 0 or more")
    if not arms or len(set(arms)) < len(arms):
        raise ValueError(f"arms {', '.join(arms) or 'none'}: give one or more, each once")
    if not 0 <= first < len(arms):
        raise ValueError(f"first {first}: give the place of one of {len(arms)} arms, from 0")
    turned = [*arms[first:], *arms[:first]]
    return [(place + 1, arm) for place in range(pairs) for arm in _turn(place, turned)]


def _turn(place: int, arms: Sequence[str]) -> list[str]:
    count = len(arms)
    if count == 2:
        return list(arms) if place % 2 == 0 else list(arms)[::-1]
    begin = place % count
    turned = [*arms[begin:], *arms[:begin]]
    return turned if place // count % 2 == 0 else turned[::-1]


def self_test_queries(queries: Sequence[Query], night_number: int) -> tuple[Query, Query]:
    """Return the queries for the A/A pairs and for the seeded slowdown of a night.

    The A/A query moves on by one every night. The other is as far from it as the number of rounds
    so far says, so that in time every two queries meet: (n - 1) * n nights. They are different
    where there are two; a single query is both. ValueError for none.
    """
    count = len(queries)
    if count == 0:
        raise ValueError("no queries to test the gate with; give one or more")
    round_, place = divmod(night_number, count)
    apart = 1 + (round_ + count // 2 - 1) % (count - 1) if count > 1 else 0
    return queries[place], queries[(place + apart) % count]


__all__ = ["ARMS", "arm_order", "query_order", "self_test_queries"]
