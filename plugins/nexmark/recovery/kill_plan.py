"""Draw from a seed the moments at which a query is killed, and tell when the next one has come."""

from __future__ import annotations

import random
import time
from dataclasses import InitVar, dataclass, field
from pathlib import Path
from typing import Literal

from nexmark.recovery.checkpoint_files import (
    CheckpointDirectory,
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
"""The gap between two commits, in seconds, as long as fewer than two batches are committed."""
_RESTART_S = 12.0
"""Seconds from a restart to the latest moment of a kill that hits it.

Spark needs about this long to start its session, plan the query and load its state.
"""
_AIM_GAPS = 3.0
"""A kill with an aim waits for it at most this many gaps (or times `_RESTART_S`); then it comes."""


@dataclass(frozen=True)
class Kill:
    """A kill to come.

    Attributes:
        after_batch: The kill waits for the commit of this batch; -1 is the start of the query.
        delay: How long it waits after that commit: a part, from 0 to 1, of the gap between two
            commits.
        aim: What it waits for in addition. any: nothing. upload: until state is being uploaded.
            restart, restore: it waits for no commit. It hits the restart after the previous kill,
            at a random moment (restart) or while state is being loaded (restore).
    """

    after_batch: int
    delay: float
    aim: Aim

    @property
    def of_restart(self) -> bool:
        """Tell whether the kill hits the restart after the previous kill."""
        return self.aim in ("restart", "restore")


def spread_kills(batches: int, at: float, times: int) -> list[Kill]:
    """Return `times` kills at equal distances, each half-way between two commits.

    `batches` is the number of batches of the run. The first kill comes after the part `at`
    (0 to 1) of them.
    """
    step = (1 - at) / times
    after = (round(batches * (at + step * number)) - 1 for number in range(times))
    return [Kill(min(batch, batches - 2), 0.5, "any") for batch in after]


def kill_plan(kills: int, batches: int, seed: int) -> list[Kill]:
    """Draw `kills` kills for a run of `batches` batches with events; return them in their order.

    The run is cut into as many parts as there are kills, and each part has one kill. Every third
    kill hits the restart after the kill before it. `seed` decides the moments.
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
    """The trigger of the next kill.

    Attributes:
        kill: The kill to come.
        checkpoint: The directory of the checkpoint, in which Spark has its own files.
        scratch: The local directory with the stores of the process.
        since: When the process, or its executors, were started, in seconds since 1970.
        draws: Draws how long after the restart the kill comes.
    """

    kill: Kill
    checkpoint: CheckpointDirectory
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
        elapsed_s = time.time() - self.since
        if self.kill.aim == "restart":
            return elapsed_s >= self._delay
        committed = commits(self.checkpoint)
        if not committed or max(committed.values()) > self.since:
            return elapsed_s >= self._delay
        return is_restoring(self.scratch, self.since) or elapsed_s >= _AIM_GAPS * _RESTART_S

    def _has_committed(self) -> bool:
        if self.kill.after_batch < 0:
            return bool(planned(self.checkpoint))
        return is_committed(self.checkpoint, self.kill.after_batch)
