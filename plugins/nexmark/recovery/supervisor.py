"""Run a query to its end, kill it on the way, and start it again from its checkpoint."""

from __future__ import annotations

import contextlib
import random
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, Protocol

from nexmark.engines.launcher import log_of, logged_cause, progress
from nexmark.errors import NexmarkError
from nexmark.model import Say
from nexmark.recovery.checkpoint_files import (
    CheckpointDirectory,
    commits,
    local_stores,
    moment,
    size,
)
from nexmark.recovery.daemons import WORKER
from nexmark.recovery.kill_plan import Kill, Trigger
from nexmark.recovery.remote_storage import SEED_CONF
from nexmark.recovery.splits import KillRecord
from nexmark_jobs.errors import error_class

What = Literal["driver", "executor", "worker", "both"]
EXECUTOR = "CoarseGrainedExecutorBackend"
_REPLACED = {"executor": EXECUTOR, "worker": WORKER}
"""The kills that the driver outlives, each with a word of the killed process's command line."""

_POLL_S = 0.02
_RUN_S = 3600.0
_MOST_ENDS = 20
_WRONG_ARGUMENTS = 2


class Running(Protocol):
    """A process of a query."""

    @property
    def returncode(self) -> int | None:
        """Return the exit code of the process; None while it runs."""

    def poll(self) -> int | None:
        """Look whether the process has ended; return its exit code, None while it runs."""

    def kill(self) -> None:
        """Send SIGKILL to the process and its children, and wait for their end."""


class Starter(Protocol):
    """Starts the processes of a query; see `Launcher`."""

    @property
    def work(self) -> Path:
        """Return the directory for logs, results and all other files of the run."""

    def started(
        self, arguments: Sequence[str], result: Path, *, confs: Mapping[str, str]
    ) -> contextlib.AbstractContextManager[Running]:
        """Start a process; the context ends it.

        `arguments` are the arguments of `run_query.py`, `result` is the file for its result.
        """

    def scratch(self, result: Path) -> Path:
        """Return the directory for the temporary files of the process with this result file."""

    def kill_one(self, word: str, draws: random.Random, *, again: bool) -> bool:
        """Kill one process; see `nexmark.cluster.SparkCluster.kill_one`."""


@dataclass(frozen=True)
class Attempt:
    """One process of the query.

    Attributes:
        started: When it was started, in seconds since 1970.
        progress: Spark's progress of each of its batches.
    """

    started: float
    progress: list[dict[str, Any]]


@dataclass
class Story:
    """The course of a query that was killed.

    Attributes:
        attempts: Its processes, in their order.
        killed: Its kills, in their order.
        ends: The processes that ended by themselves before the query's end: when each ended, in
            which batch, and with which error.
    """

    attempts: list[Attempt] = field(default_factory=list)
    killed: list[KillRecord] = field(default_factory=list)
    ends: list[dict[str, Any]] = field(default_factory=list)


@dataclass(frozen=True)
class Supervisor:
    """Runs one query to its end, kills it on the way, and starts it again.

    Attributes:
        launcher: Starts its processes.
        arguments: The arguments of `run_query.py`, without --checkpoint and --result.
        checkpoint: The directory of the checkpoint.
        url: The URL of the same directory, as Spark takes it.
        table: The directory of the final table, which exists once the query is at its end.
        what: The processes that a kill hits.
        fault_file: The file that begins a fault of the storage; it is written after the first
            commit. None for no fault.
        say: Called with each line of progress.
    """

    launcher: Starter
    arguments: Sequence[str]
    checkpoint: CheckpointDirectory
    url: str
    table: Path
    what: What
    fault_file: Path | None
    say: Say = field(repr=False)

    def run(self, plan: Sequence[Kill], seed: int) -> Story:
        """Run the query to its end, with the kills of `plan` that come before this end.

        A query with a fault of its storage, or with lost executors, may end by itself: then it is
        started again.

        Raises:
            NexmarkError: The query failed by itself, without a fault or a lost executor.
        """
        draws = random.Random(seed)
        story, left = Story(), list(plan)
        while True:
            result = self.launcher.work / f"attempt-{len(story.attempts)}.json"
            arguments = [*self.arguments, "--checkpoint", self.url, "--result", str(result)]
            # With the seed of the previous process, the call that ended it would fail again.
            confs = {SEED_CONF: str(seed + len(story.attempts))}
            with self.launcher.started(arguments, result, confs=confs) as process:
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
        """Wait for the end of the process, or kill it; return whether it ended by itself.

        Args:
            process: The process.
            result: Its result file.
            left: The kills to come; a kill that happened is removed.
            story: The course of the query, which gets the kills.
            draws: Draws which process is killed, if there are several, and when a restart is hit.
        """
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
                doing, batch = moment(self._spark(), committed, scratch, since)
                restarted = None if self.what in _REPLACED else at
                attempt = len(story.attempts) + (restarted is not None)
                left_behind = sum(size(store) for store in local_stores(scratch))
                kill = KillRecord(at, restarted, batch, doing, self.what, attempt, left_behind)
                story.killed.append(kill)
                number = len(story.killed)
                self.say(f"kill {number} of {number + len(left)}: in the {doing} of batch {batch}")
                if restarted is not None:
                    return False
                since = at
            if time.monotonic() > deadline:
                raise NexmarkError(f"recovery: no end after {_RUN_S:.0f} s")
            time.sleep(_POLL_S)
        return True

    def _kill(self, process: Running, draws: random.Random) -> bool:
        """Kill the processes that a kill hits; return False if none of them runs."""
        if self.what not in _REPLACED:
            process.kill()
            return True
        word, again = _REPLACED[self.what], self.what == "worker"
        return self.launcher.kill_one(word, draws, again=again)

    def _break_storage(self) -> None:
        """Begin the fault of the storage, if there is one, after the first commit."""
        if self.fault_file and not self.fault_file.exists() and commits(self._spark()):
            self.fault_file.touch()
            self.say("the fault of the storage begins")

    def _note_end(self, code: int | None, result: Path, story: Story) -> None:
        """Add the end of a process to the story; NexmarkError if this end was not expected."""
        reason = logged_cause(log_of(result), code)
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

    def _spark(self) -> CheckpointDirectory:
        """Return the directory below `checkpoint` in which Spark has its own files."""
        return self.checkpoint / "checkpoint"
