"""How many pairs, and in which order, so that no build has the better hours.

All follows from a stored seed, so that a night can be run again as it was.
"""

import math
import random
from collections.abc import Sequence
from typing import TypeVar

from nexmark.config import Gate

Query = TypeVar("Query")

MIN_FRESH_PAIRS = 4
"""Below this nothing is confirmed: 3 that agree are chance once in 8 (``location.agree``)."""


def rounds_from(first: int, rules: Gate) -> tuple[int, ...]:
    """Return the pairs of each round of a night whose first round has ``first`` pairs.

    The later rounds grow and shrink with the first one; no round is empty.
    """
    usual = rules.rounds[0]
    return first, *(max(math.ceil(pairs * first / usual), 1) for pairs in rules.rounds[1:])


def query_order(queries: Sequence[Query], seed: int) -> list[Query]:
    """Return the queries shuffled by ``random.Random(seed)``, the same for the same seed."""
    shuffled = list(queries)
    random.Random(seed).shuffle(shuffled)
    return shuffled


def arm_order(pairs: int, arms: Sequence[str], seed: str) -> list[tuple[int, str]]:
    """Return (pair, arm) in the order of running; pairs count from 1.

    Two arms, in blocks of two pairs: A B B A or B A A B, so that a host that slowly changes favours
    neither. More arms: each pair begins with the next arm, and once all have begun the same again
    backwards, so that over a block every arm is in every place twice and as often before as behind
    any other. Which arm begins a block is drawn from the seed: a load that comes as often as a
    block, like a job of every minute, would always meet one arm.
    """
    drawn = random.Random(seed)
    block = 2 if len(arms) == 2 else 2 * len(arms)
    order = []
    for place in range(pairs):
        if place % block == 0:
            first = drawn.randrange(len(arms))
        begin = (first + place % block) % len(arms)
        turned = [*arms[begin:], *arms[:begin]]
        backwards = place % block >= len(arms)
        order += [(place + 1, arm) for arm in (turned[::-1] if backwards else turned)]
    return order


def self_test_queries(queries: Sequence[Query], night_number: int) -> tuple[Query, Query]:
    """Return the queries for the A/A pairs and for the seeded slowdown of a night.

    The first moves on by one every night, the other is as far from it as the number of rounds so
    far says, so that in time every two meet. A single query is both.
    """
    count = len(queries)
    round_, place = divmod(night_number, count)
    apart = 1 + (round_ + count // 2 - 1) % max(count - 1, 1)
    return queries[place], queries[(place + apart) % count]
