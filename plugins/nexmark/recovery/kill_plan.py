"""When a query is killed: moments drawn from a seed, spread over its batches."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Literal

Aim = Literal["any", "upload", "restart", "restore"]
_AIMS: tuple[Aim, ...] = ("any", "upload", "restore", "any", "upload", "restart")


@dataclass(frozen=True)
class Kill:
    """A kill to come.

    Attributes:
        after_batch: the batch whose commit it waits for; -1 is the start of the query.
        delay: how long it then waits, in parts of the time from one commit to the next: 0 to 1.
        aim: any: nothing else. upload: it waits until state is being uploaded. restart, restore: it
            waits for no commit, but hits the restart after the kill before, at a random moment or
            while state is being loaded.
    """

    after_batch: int
    delay: float
    aim: Aim

    @property
    def of_restart(self) -> bool:
        """Whether it hits the restart after the kill before."""
        return self.aim in ("restart", "restore")


def spread_kills(batches: int, at: float, times: int) -> list[Kill]:
    """`times` kills, each half-way between two commits: the first after the part `at` of a run."""
    step = (1 - at) / times
    after = (round(batches * (at + step * number)) - 1 for number in range(times))
    return [Kill(min(batch, batches - 2), 0.5, "any") for batch in after]


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
        aim = _AIMS[number % len(_AIMS)]
        plan.append(Kill(min(after, batches - 1), draws.random(), aim))
    return plan
