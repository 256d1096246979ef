"""Draw the moments at which a query is killed from a seed, and tell when the next one has come."""

from __future__ import annotations

import random
import time
from dataclasses import InitVar, dataclass, field
from pathlib import Path
from typing import Literal

from nexmark.recovery.checkpoint_files import (
    Place,
    commits,
    gaps,
    is_committed,
    is_restoring,
    is_uploading,
    planned,
)

Aim = Literal["any", "upload", "restart", "restore"]
_AIMS: tuple[Aim, ...] = ("any", "upload", "restore", "any", "upload", "restart")
_DEFAULT_GAP_S = 1.0
_RESTART_S = 12.0
"""Seconds after a restart by which its kill comes: session, plan and state take so long."""
_AIM_GAPS = 3.0
"""A kill with an aim waits at most this many gaps, or times `_RESTART_S`, and then comes anyway."""


@dataclass(frozen=True)
class Kill:
    """A kill to come.

    Attributes:
        after_batch: The kill waits for the commit of this batch; -1 is the start of the query.
        delay: How long it waits after that commit, from 0 to 1 times the gap between two commits.
        aim: What it waits for in addition. any: nothing. upload: until state is being uploaded.
            restart, restore: it waits for no commit; it hits the restart after the previous kill,
            at a random moment or while state is being loaded.
    """

    after_batch: int
    delay: float
    aim: Aim

    @property
    def of_restart(self) -> bool:
        """Tell whether the kill hits the restart after the previous kill."""
        return self.aim in ("restart", "restore")


def spread_kills(batches: int, at: float, times: int) -> list[Kill]:
    """Return `times` kills, each half-way between two commits.

    The first kill comes after the part `at` (0 to 1) of the batches.
    """
    step = (1 - at) / times
    after = (round(batches * (at + step * number)) - 1 for number in range(times))
    return [Kill(min(batch, batches - 2), 0.5, "any") for batch in after]


def kill_plan(kills: int, batches: int, seed: int) -> list[Kill]:
    """Draw `kills` moments in a run of `batches` batches with events, in their order.

    The run is cut into as many parts as there are kills, and each part has one kill. From the
    second one on, every third kill hits a restart.
    """
    draws = random.Random(seed)
    plan = []
    for number in range(kills):
        low, high = (batches * part // kills for part in (number, number + 1))
        after = draws.randrange(low, max(high, low + 1)) - 1
        aim = _AIMS[number % len(_AIMS)]
        plan.append(Kill(min(after, batches - 1), draws.random(), aim))
    return plan


@dataclass
class Trigger:
    """The trigger of the next kill, for a process or executors that were started at `since`.

    It looks at Spark's `checkpoint` and at its local directory `scratch`.
    """

    kill: Kill
    checkpoint: Place
    scratch: Path
    since: float
    draws: InitVar[random.Random]
    _due: float | None = field(default=None, init=False)

    def __post_init__(self, draws: random.Random) -> None:
        """Draw how long after the restart the kill comes."""
        self._delay = draws.uniform(1.0, _RESTART_S)

    def is_due(self) -> bool:
        """Tell whether the moment of the kill has come."""
        if self.kill.of_restart:
            return self._is_restart_due()
        if self._due is None:
            if not self._has_committed():
                return False
            known = gaps(commits(self.checkpoint))
            gap = min(known[max(known)] if known else _DEFAULT_GAP_S, _RESTART_S)
            self._due = time.monotonic() + self.kill.delay * gap
            self._given_up = time.monotonic() + _AIM_GAPS * gap
        if self.kill.aim == "upload" and time.monotonic() < self._given_up:
            return is_uploading(self.checkpoint, max(commits(self.checkpoint), default=-1) + 1)
        return time.monotonic() >= self._due

    def _is_restart_due(self) -> bool:
        away = time.time() - self.since
        if self.kill.aim == "restart":
            return away >= self._delay
        committed = commits(self.checkpoint)
        if not committed or max(committed.values()) > self.since:
            return away >= self._delay
        return is_restoring(self.scratch, self.since) or away >= _AIM_GAPS * _RESTART_S

    def _has_committed(self) -> bool:
        if self.kill.after_batch < 0:
            return bool(planned(self.checkpoint))
        return is_committed(self.checkpoint, self.kill.after_batch)
