"""When a query is killed: moments drawn from a seed, spread over its batches."""

from __future__ import annotations

import random
from dataclasses import dataclass


@dataclass(frozen=True)
class Kill:
    """A kill to come.

    Attributes:
        after_batch: the batch whose commit it waits for; -1 is the start of the query.
        delay: how long it then waits, in parts of the time from one commit to the next: 0 to 1.
        of_restart: whether it does not wait for a commit, but hits the restart after the kill
            before, so that state is being loaded or the session being made.
    """

    after_batch: int
    delay: float
    of_restart: bool


def kill_plan(kills: int, batches: int, seed: int) -> list[Kill]:
    """`kills` moments in a run of `batches` batches with events, in their order.

    The run is cut into as many parts as there are kills, and each part has one. From the second one
    on, every third kill hits a restart.
    """
    draws = random.Random(seed)
    plan = []
    for number in range(kills):
        low, high = (batches * part // kills for part in (number, number + 1))
        after = draws.randrange(low, max(high, low + 1)) - 1
        plan.append(Kill(min(after, batches - 1), draws.random(), of_restart=number % 3 == 2))
    return plan
