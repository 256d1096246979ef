"""A night that is followed while it runs, so that faults hit it where they shall."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import yaml

from tests.cluster.testbed import Testbed
from tests.site import Site, run_of

_POLL_S = 0.05
WAIT_S = 1200  # what is waited for comes sooner, but on a busy machine


class FollowedNight:
    """`nexmark run --cluster namespaces` of a site, and what it has printed so far."""

    def __init__(self, site: Site, testbed: Testbed, *queries: str) -> None:
        """Start it."""
        self.site, self.testbed = site, testbed
        self.process = subprocess.Popen(
            site.command("--cluster", testbed.cluster.name, "--queries", ",".join(queries)),
            env=site.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        self.begin = time.monotonic()
        self._lines: list[tuple[float, str]] = []
        self._reader = threading.Thread(target=self._read)
        self._reader.start()

    def __enter__(self) -> FollowedNight:
        """The night itself, which is killed at the end if it still runs."""
        return self

    def __exit__(self, *_: object) -> None:
        """Kill it if it still runs, and show what it printed."""
        self.kill()
        print(self.text)

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self._lines.append((time.monotonic() - self.begin, line.rstrip()))

    @property
    def text(self) -> str:
        """All lines, each with the second it came."""
        return "\n".join(f"{second:6.1f} {line}" for second, line in self._lines)

    def line(self, pattern: str) -> str | None:
        """The first line that has `pattern` (a regular expression)."""
        found = (line for _, line in self._lines if re.search(pattern, line))
        return next(found, None)

    def wait_line(self, pattern: str) -> str:
        """Wait for such a line."""
        self.wait(lambda: self.line(pattern) is not None, f"no line has {pattern!r}")
        return self.line(pattern) or ""

    def wait_running(self, application: str, batches: int = 2) -> None:
        """Wait until an application (`q0-verify`, `q0-rep-1`) has done `batches` batches."""
        running = partial(under_way, self.testbed, application, batches)
        self.wait(running, f"{application} is not under way")

    def wait(self, condition: Callable[[], object], otherwise: str) -> None:
        """Wait for `condition`; AssertionError with the night's output if the night ends first."""
        deadline = time.monotonic() + WAIT_S
        while not condition():
            assert self.process.poll() is None, f"the night has ended: {otherwise}\n{self.text}"
            assert time.monotonic() < deadline, f"{otherwise}\n{self.text}"
            time.sleep(_POLL_S)

    def has_executor(self, testbed: Testbed, host: str, query: str) -> bool:
        """Whether the first timed repetition of `query` has an executor process on a host."""
        if self.driver_of(query) is None:
            return False
        commands = [process.command for process in testbed.processes(host)]
        return any("CoarseGrainedExecutorBackend" in command for command in commands)

    def driver(self, query: str) -> int:
        """The pid of the driver of the first timed repetition of `query`."""
        found = self.driver_of(query)
        assert found is not None, f"{query} has no driver\n{self.text}"
        return found

    def driver_of(self, query: str) -> int | None:
        """The same, None if there is none."""
        result = f"{query}/rep-1/result.json".encode()
        for file in Path("/proc").glob("[0-9]*/cmdline"):
            try:
                words = file.read_bytes()
            except OSError:
                continue
            if b"deploy.SparkSubmit\0" in words and result in words:
                return int(file.parent.name)
        return None

    def end(self) -> int:
        """Wait for its end and return its exit code."""
        code = self.process.wait(timeout=WAIT_S)
        self._reader.join()
        return code

    def kill(self) -> None:
        """Kill it with the process that its tasks run in, at once."""
        self.process.kill()
        self.end()

    def outcomes(self) -> dict[str, Outcome]:
        """What was recorded of each query, which has one repetition."""
        run = run_of(self.text)
        with self.site.store() as store:
            verdicts = {row.query: row.value for row in store.verdicts(run)}
            return {
                row.query: Outcome(row.status, verdicts[row.query], row.reason, row.digest)
                for row in store.repetitions(run)
            }


def under_way(testbed: Testbed, application: str, batches: int = 2) -> bool:
    """Whether an application (`q0-rep-1`) runs and has done at least `batches` batches."""
    commit = f"*/checkpoints/{application}/*/checkpoint/commits/{batches - 1}"
    return any(Path(testbed.cluster.shared).glob(commit))


@dataclass(frozen=True)
class Outcome:
    """Of a query: `status` of its repetition (ok, invalid, failed), and its verdict."""

    status: str
    verdict: str
    reason: str | None
    digest: str | None


def workload(site: Site, **changes: Any) -> None:
    """One repetition of some ten seconds, in thirty batches, whose rows are verified."""
    events = {"events": 60_000, "tps": 2_000}
    content = {
        **events,
        "rows_per_batch": 2_000,
        "verify": {**events, "rows_per_batch": 30_000},
        "repetitions": 1,
        "warmup_batches": 1,
        "sampling_interval_s": 0.5,
        "conf_profile": "quick",
        **changes,
    }
    path = site.conf / "workloads.yaml"
    path.write_text(yaml.safe_dump({"workloads": {"tiny": content}}))


def kill_process(pid: int) -> None:
    """Kill a process of this machine."""
    os.kill(pid, signal.SIGKILL)


__all__ = ["WAIT_S", "FollowedNight", "Outcome", "kill_process", "under_way", "workload"]
