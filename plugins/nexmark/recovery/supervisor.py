"""Runs a query to its end, kills it on the way, and starts it again from its checkpoint."""

from __future__ import annotations

import contextlib
import random
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, Protocol

from nexmark.engines.launcher import last_words, log_of, progress
from nexmark.errors import NexmarkError
from nexmark.recovery.checkpoint_files import Place, commits, local_stores, moment, size
from nexmark.recovery.daemons import WORKER
from nexmark.recovery.kill_plan import Kill, Trigger
from nexmark.recovery.remote_storage import SEED_CONF
from nexmark.recovery.splits import KillRecord
from nexmark_jobs.ending import error_class

What = Literal["driver", "executor", "worker", "both"]
EXECUTOR = "CoarseGrainedExecutorBackend"
_REPLACED = {"executor": EXECUTOR, "worker": WORKER}
"""What the driver outlives, by a word of its command line."""

_POLL_S = 0.02
_RUN_S = 3600.0
_MOST_ENDS = 20
_WRONG_ARGUMENTS = 2


class Running(Protocol):
    """A process of a query."""

    @property
    def returncode(self) -> int | None:
        """Its exit code; None while it runs."""

    def poll(self) -> int | None:
        """Look again, and return its exit code."""

    def kill(self) -> None:
        """SIGKILL to it and its children, and wait for their end."""


class Starter(Protocol):
    """How processes of a query are started; see `Launcher`."""

    @property
    def work(self) -> Path:
        """A directory for logs, results and all that is written beside."""

    def started(
        self, arguments: Sequence[str], result: Path, *, confs: Mapping[str, str]
    ) -> contextlib.AbstractContextManager[Running]:
        """A process; the context ends it."""

    def scratch(self, result: Path) -> Path:
        """Where the process with this result file has its temporary files."""

    def kill_one(self, word: str, draws: random.Random, *, again: bool) -> bool:
        """See `nexmark.cluster.SparkCluster.kill_one`."""


@dataclass(frozen=True)
class Attempt:
    """One process of the query: when it was started, and Spark's progress of its batches."""

    started: float
    progress: list[dict[str, Any]]


@dataclass
class Story:
    """The course of a query that was killed.

    `ends`: where it ended by itself before its end: when, and by which class of error.
    """

    attempts: list[Attempt] = field(default_factory=list)
    killed: list[KillRecord] = field(default_factory=list)
    ends: list[dict[str, Any]] = field(default_factory=list)


@dataclass(frozen=True)
class Supervisor:
    """The supervisor of one query.

    Attributes:
        arguments: of `run_query.py`, without --result and --checkpoint.
        checkpoint: the directory of the checkpoint.
        url: the same, as Spark is to name it.
        table: the directory of the final table, which is there once the query is at its end.
        what: the processes that a kill hits.
        fault_file: written at the first commit, for a fault of the storage; None without one.
    """

    launcher: Starter
    arguments: Sequence[str]
    checkpoint: Place
    url: str
    table: Path
    what: What
    fault_file: Path | None
    say: Callable[[str], None] = field(repr=False)

    def run(self, plan: Sequence[Kill], seed: int) -> Story:
        """Run to the end, with the kills of `plan`; those after the end do not happen.

        A query with a fault of its storage, or with lost executors, may end by itself: it is
        started again. NexmarkError: the query failed by itself.
        """
        draws = random.Random(seed)
        story, left = Story(), list(plan)
        while True:
            result = self.launcher.work / f"attempt-{len(story.attempts)}.json"
            given = [*self.arguments, "--checkpoint", self.url, "--result", str(result)]
            # With the seed of the process before, the call that ended that one would fail again.
            confs = {SEED_CONF: str(seed + len(story.attempts))}
            with self.launcher.started(given, result, confs=confs) as process:
                started = time.time()
                ended = self._follow(process, result, left, story, draws)
            story.attempts.append(Attempt(started, progress(result)))
            if ended and process.returncode != 0:
                self._note_end(process.returncode, result, story)
            elif ended or self.table.is_dir():
                return story

    def _follow(
        self,
        process: Running,
        result: Path,
        left: list[Kill],
        story: Story,
        draws: random.Random,
    ) -> bool:
        """Wait for the end of the process, or kill it; returns whether it ended by itself."""
        scratch, since = self.launcher.scratch(result), time.time()
        committed = max(commits(self._spark()), default=-1)
        deadline = time.monotonic() + _RUN_S
        trigger: Trigger | None = None
        while process.poll() is None:
            self._break_storage()
            if left and trigger is None:
                trigger = Trigger(left[0], self._spark(), scratch, since, draws)
            if trigger is not None and trigger.is_due() and self._kill(process, draws):
                at = time.time()
                left.pop(0)
                trigger = None
                what, batch = moment(self._spark(), committed, scratch, since)
                again = None if self.what in _REPLACED else at
                attempt = len(story.attempts) + (again is not None)
                behind = sum(size(store) for store in local_stores(scratch))
                story.killed.append(KillRecord(at, again, batch, what, self.what, attempt, behind))
                number = len(story.killed)
                self.say(f"kill {number} of {number + len(left)}: in the {what} of batch {batch}")
                if again is not None:
                    return False
                since = at
            if time.monotonic() > deadline:
                raise NexmarkError(f"recovery: no end after {_RUN_S:.0f} s")
            time.sleep(_POLL_S)
        return True

    def _kill(self, process: Running, draws: random.Random) -> bool:
        """Kill; returns False if there is no such process."""
        if self.what not in _REPLACED:
            process.kill()
            return True
        word, again = _REPLACED[self.what], self.what == "worker"
        return self.launcher.kill_one(word, draws, again=again)

    def _break_storage(self) -> None:
        if self.fault_file and not self.fault_file.exists() and commits(self._spark()):
            self.fault_file.touch()
            self.say("the fault of the storage begins")

    def _note_end(self, code: int | None, result: Path, story: Story) -> None:
        reason = last_words(log_of(result), code)
        expected = self.fault_file is not None or (self.what in _REPLACED and story.killed)
        if code == _WRONG_ARGUMENTS or not expected or len(story.ends) >= _MOST_ENDS:
            raise NexmarkError(f"recovery: {reason}")
        end = {
            "at_s": round(time.time() - story.attempts[0].started, 3),
            "batch": max(commits(self._spark()), default=-1) + 1,
            "error_class": error_class(reason),
            "reason": reason,
        }
        story.ends.append(end)
        self.say(f"the query ended by itself in batch {end['batch']}: {reason[:200]}")

    def _spark(self) -> Place:
        """Where Spark has its checkpoint."""
        return self.checkpoint / "checkpoint"
