"""Runs a query to its end, kills it on the way, and starts it again from its checkpoint."""

from __future__ import annotations

import contextlib
import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from nexmark.config import paths
from nexmark.engines import Build
from nexmark.errors import NexmarkError
from nexmark.recovery.checkpoint_files import commits, gaps, moment
from nexmark.recovery.kill_plan import Kill
from nexmark.recovery.splits import KillRecord

_POLL_S = 0.02
_DEFAULT_GAP_S = 1.0
_RESTART_S = 12.0
"""A kill of a restart comes at most so long after it: session, plan and state take about this."""
_RUN_S = 3600.0
_CONFS = {"spark.ui.enabled": "false", "spark.log.level": "ERROR"}


class RecoveryError(NexmarkError):
    """A query that did not come to its end; one line with the reason."""


@dataclass(frozen=True)
class Attempt:
    """One process of the query: when it was started, and Spark's progress of its batches."""

    started: float
    progress: list[dict[str, Any]]


@dataclass(frozen=True)
class Supervisor:
    """The supervisor of one query.

    Attributes:
        build: the build that runs it.
        confs: its Spark confs.
        arguments: of `run_query.py`, without --result.
        checkpoint: the directory given as --checkpoint.
        table: the directory of the final table, which is there once the query is at its end.
        work: a directory for logs, results and all that Spark writes beside.
        mark: the variable that marks its processes.
        say: told what happens.
    """

    build: Build
    confs: Mapping[str, str]
    arguments: Sequence[str]
    checkpoint: Path
    table: Path
    work: Path
    mark: Mapping[str, str]
    say: Callable[[str], None] = field(repr=False)

    def run(self, plan: Sequence[Kill], seed: int) -> tuple[list[Attempt], list[KillRecord]]:
        """Run to the end, with the kills of `plan`; those after the end do not happen.

        Raises:
            RecoveryError: The query failed by itself.
        """
        draws = random.Random(seed)
        attempts: list[Attempt] = []
        killed: list[KillRecord] = []
        left = list(plan)
        while True:
            kill = left.pop(0) if left else None
            result = self.work / f"attempt-{len(attempts)}.json"
            with self._process(result) as process:
                started = time.time()
                committed = max(commits(self._spark()), default=-1)
                done = self._follow(process, kill, draws)
            attempts.append(Attempt(started, _progress(result)))
            if done:
                if process.returncode != 0:
                    raise RecoveryError(f"recovery: {self._reason(result)}")
                return attempts, killed
            what, batch = moment(self._spark(), committed)
            at = time.time()
            killed.append(KillRecord(at, at, batch, what))
            self.say(f"kill {len(killed)} of {len(plan)}: in the {what} of batch {batch}")
            if self.table.is_dir():
                return attempts, killed

    def _follow(
        self, process: subprocess.Popen[bytes], kill: Kill | None, draws: random.Random
    ) -> bool:
        """Wait for the end of the process, or kill it; returns whether it ended by itself."""
        deadline = time.monotonic() + _RUN_S
        due = (
            time.monotonic() + draws.uniform(1.0, _RESTART_S) if kill and kill.of_restart else None
        )
        while process.poll() is None:
            if kill and due is None and self._has_committed(kill.after_batch):
                known = gaps(commits(self._spark()))
                gap = known[max(known)] if known else _DEFAULT_GAP_S
                due = time.monotonic() + kill.delay * min(gap, _RESTART_S)
            if due is not None and time.monotonic() >= due:
                _kill(process)
                return False
            if time.monotonic() > deadline:
                raise RecoveryError(f"recovery: no end after {_RUN_S:.0f} s")
            time.sleep(_POLL_S)
        return True

    def _has_committed(self, batch: int) -> bool:
        if batch < 0:
            return any((self._spark() / "offsets").glob("[0-9]*"))
        return (self._spark() / "commits" / str(batch)).exists()

    def _spark(self) -> Path:
        """Where Spark has its checkpoint."""
        return self.checkpoint / "checkpoint"

    @contextlib.contextmanager
    def _process(self, result: Path) -> Iterator[subprocess.Popen[bytes]]:
        """A process of the query, in a group of its own, which ends with the context."""
        scratch = result.with_suffix(".tmp")
        scratch.mkdir()
        confs = {
            **_CONFS,
            "spark.driver.extraJavaOptions": f"-XX:TieredStopAtLevel=1 -Djava.io.tmpdir={scratch}",
            **self.confs,
        }
        job = str(paths.repository() / "nexmark_jobs" / "run_query.py")
        command = [
            *(str(self.build.spark_home / "bin" / "spark-submit"), "--master", "local[2]"),
            *(word for pair in confs.items() for word in ("--conf", "=".join(pair))),
            *(job, *self.arguments, "--checkpoint", str(self.checkpoint), "--result", str(result)),
        ]
        with result.with_suffix(".log").open("wb") as log:
            process = subprocess.Popen(
                command,
                env=self.environment(scratch),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        try:
            yield process
        finally:
            _kill(process)

    def environment(self, scratch: Path) -> dict[str, str]:
        """The environment of a process that writes its temporary files to `scratch`."""
        kept = {k: v for k, v in os.environ.items() if not k.startswith(("SPARK_", "PYSPARK_"))}
        return {
            **kept,
            **self.mark,
            "SPARK_HOME": str(self.build.spark_home),
            "SPARK_LOCAL_IP": "127.0.0.1",
            "SPARK_LOCAL_DIRS": str(scratch),
            "TMPDIR": str(scratch),
            "PYSPARK_PYTHON": sys.executable,
            "PYTHONPATH": "",
        }

    def _reason(self, result: Path) -> str:
        lines = result.with_suffix(".log").read_text(errors="replace").splitlines()
        told = [line for line in lines if line.startswith("run_query.py: error: ")]
        return (told or lines or ["the query ended without a word"])[-1]


def _kill(process: subprocess.Popen[bytes]) -> None:
    """SIGKILL to the whole group, as if the host was lost."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def _progress(result: Path) -> list[dict[str, Any]]:
    """The progress that a process has written; a last line that was cut off is left out."""
    path = result.with_name(f"{result.name}.progress")
    lines = path.read_text().split("\n")[:-1] if path.exists() else []
    return [json.loads(line) for line in lines]
