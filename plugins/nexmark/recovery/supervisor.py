"""Runs a query to its end, kills it on the way, and starts it again from its checkpoint.

The moments of the kills are drawn from a seed.
"""

import contextlib
import random
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import InitVar, dataclass, field
from pathlib import Path
from typing import Any, Literal, Protocol

from nexmark.engines.launcher import last_words, log_of, progress
from nexmark.errors import NexmarkError
from nexmark.recovery import checkpoint_files as files
from nexmark.recovery.remote_storage import SEED_CONF
from nexmark.recovery.splits import KillRecord
from nexmark_jobs.ending import error_class

What = Literal["driver", "executor", "worker", "both"]
Aim = Literal["any", "upload", "restart", "restore"]
_AIMS: tuple[Aim, ...] = ("any", "upload", "restore", "any", "upload", "restart")
_DEFAULT_GAP_S = 1.0
_RESTART_S = 12.0
"""A kill of a restart comes at most so long after it: session, plan and state take about this."""
_AIM_GAPS = 3.0
"""It waits for a moment to aim at no longer than this many gaps, or parts of a restart."""
WORKER = "deploy.worker.Worker"
EXECUTOR = "CoarseGrainedExecutorBackend"
_REPLACED = {"executor": EXECUTOR, "worker": WORKER}
"""What the driver outlives, by a word of its command line."""
_POLL_S, _RUN_S = 0.02, 3600.0
_MOST_ENDS, _WRONG_ARGUMENTS = 20, 2


@dataclass(frozen=True)
class Kill:
    """A kill to come.

    It waits for the commit of `after_batch` (-1: the start of the query), then for `delay` (0 to 1)
    of the time from one commit to the next, and with the aim upload until state is being uploaded.
    With the aims restart and restore it waits for no commit, but hits the restart after the kill
    before, at a random moment or while state is being loaded.
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


@dataclass
class Trigger:
    """One kill to come, of a query that was started, or lost an executor, at `since`.

    It looks at Spark's `checkpoint` and its local directory `scratch`.
    """

    kill: Kill
    checkpoint: files.Place
    scratch: Path
    since: float
    draws: InitVar[random.Random]
    _due: float | None = field(default=None, init=False)

    def __post_init__(self, draws: random.Random) -> None:
        """Draw when after the restart before."""
        self._delay = draws.uniform(1.0, _RESTART_S)

    def is_due(self) -> bool:
        """Whether the moment is there."""
        if self.kill.of_restart:
            return self._is_restart_due()
        if self._due is None:
            if not self._has_committed():
                return False
            known = files.gaps(files.commits(self.checkpoint))
            gap = min(known[max(known)] if known else _DEFAULT_GAP_S, _RESTART_S)
            self._due = time.monotonic() + self.kill.delay * gap
            self._given_up = time.monotonic() + _AIM_GAPS * gap
        if self.kill.aim == "upload" and time.monotonic() < self._given_up:
            newest = max(files.commits(self.checkpoint), default=-1)
            return files.is_uploading(self.checkpoint, newest + 1)
        return time.monotonic() >= self._due

    def _is_restart_due(self) -> bool:
        away = time.time() - self.since
        if self.kill.aim == "restart":
            return away >= self._delay
        committed = files.commits(self.checkpoint)
        if not committed or max(committed.values()) > self.since:
            return away >= self._delay
        return files.is_restoring(self.scratch, self.since) or away >= _AIM_GAPS * _RESTART_S

    def _has_committed(self) -> bool:
        if self.kill.after_batch < 0:
            return bool(files.planned(self.checkpoint))
        return files.is_committed(self.checkpoint, self.kill.after_batch)


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

    `arguments` of `run_query.py` are without --result and --checkpoint; `url` is the directory
    `checkpoint` as Spark is to name it. The final `table` is there once the query is at its end. A
    kill hits the processes `what`. `fault_file` is written at the first commit, for a fault of the
    storage; None without one.
    """

    launcher: Starter
    arguments: Sequence[str]
    checkpoint: files.Place
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
        self, process: Running, result: Path, left: list[Kill], story: Story, draws: random.Random
    ) -> bool:
        """Wait for the end of the process, or kill it; returns whether it ended by itself."""
        scratch, since = self.launcher.scratch(result), time.time()
        committed = max(files.commits(self._spark()), default=-1)
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
                what, batch = files.moment(self._spark(), committed, scratch, since)
                again = None if self.what in _REPLACED else at
                attempt = len(story.attempts) + (again is not None)
                behind = sum(files.size(store) for store in files.local_stores(scratch))
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
        if self.fault_file and not self.fault_file.exists() and files.commits(self._spark()):
            self.fault_file.touch()
            self.say("the fault of the storage begins")

    def _note_end(self, code: int | None, result: Path, story: Story) -> None:
        reason = last_words(log_of(result))
        expected = self.fault_file is not None or (self.what in _REPLACED and story.killed)
        if code == _WRONG_ARGUMENTS or not expected or len(story.ends) >= _MOST_ENDS:
            raise NexmarkError(f"recovery: {reason}")
        end = {
            "at_s": round(time.time() - story.attempts[0].started, 3),
            "batch": max(files.commits(self._spark()), default=-1) + 1,
            "error_class": error_class(reason),
            "reason": reason,
        }
        story.ends.append(end)
        self.say(f"the query ended by itself in batch {end['batch']}: {reason[:200]}")

    def _spark(self) -> files.Place:
        """Where Spark has its checkpoint."""
        return self.checkpoint / "checkpoint"
