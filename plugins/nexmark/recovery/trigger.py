"""Tells when the next kill is due, from the files of the query that runs."""

from __future__ import annotations

import random
import time
from pathlib import Path

from nexmark.recovery.checkpoint_files import (
    Place,
    commits,
    gaps,
    is_committed,
    is_restoring,
    is_uploading,
    planned,
)
from nexmark.recovery.kill_plan import Kill

_DEFAULT_GAP_S = 1.0
_RESTART_S = 12.0
"""A kill of a restart comes at most so long after it: session, plan and state take about this."""
_AIM_GAPS = 3.0
"""It waits for a moment to aim at no longer than this many gaps, or parts of a restart."""


class Trigger:
    """One kill to come, of a query that was started, or lost an executor, at `since`."""

    def __init__(
        self, kill: Kill, checkpoint: Place, scratch: Path, since: float, draws: random.Random
    ) -> None:
        """Look at Spark's `checkpoint` and its local directory `scratch`."""
        self._kill = kill
        self._checkpoint = checkpoint
        self._scratch = scratch
        self._since = since
        self._delay = draws.uniform(1.0, _RESTART_S)
        self._due: float | None = None
        self._given_up: float | None = None

    def is_due(self) -> bool:
        """Whether the moment is there."""
        if self._kill.of_restart:
            return self._is_restart_due()
        if self._due is None and self._has_committed():
            gap = min(self._gap(), _RESTART_S)
            self._due = time.monotonic() + self._kill.delay * gap
            self._given_up = time.monotonic() + _AIM_GAPS * gap
        if self._due is None or self._given_up is None:
            return False
        if self._kill.aim == "upload" and time.monotonic() < self._given_up:
            return is_uploading(self._checkpoint, max(commits(self._checkpoint), default=-1) + 1)
        return time.monotonic() >= self._due

    def _is_restart_due(self) -> bool:
        away = time.time() - self._since
        if self._kill.aim == "restart":
            return away >= self._delay
        committed = commits(self._checkpoint)
        if not committed or max(committed.values()) > self._since:
            return away >= self._delay
        return is_restoring(self._scratch, self._since) or away >= _AIM_GAPS * _RESTART_S

    def _gap(self) -> float:
        known = gaps(commits(self._checkpoint))
        return known[max(known)] if known else _DEFAULT_GAP_S

    def _has_committed(self) -> bool:
        batch = self._kill.after_batch
        if batch < 0:
            return bool(planned(self._checkpoint))
        return is_committed(self._checkpoint, batch)
