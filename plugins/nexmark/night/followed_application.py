"""Follow an application of a person's own beside it: its places, its event log, and its end.

Where it does not end by itself, it is stopped by SIGTERM: Spark's shutdown hook then stops the
context, so the log is whole, and the exit code of such an end is no failure.
"""

import contextlib
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from nexmark.config.application_models import JobApplication, filled
from nexmark.model import Say
from nexmark_jobs.errors import one_line
from nexmark_jobs.host.processes import Process, with_word

if TYPE_CHECKING:
    from nexmark.measure.log_follower import LogFollower
    from nexmark.measure.streaming_log import StreamingLog

#: A Spark conf on the command line of the driver, by which samplers and `Driver` recognise it.
LABEL = "spark.nexmark.label"
#: Spark tells of a trigger without rows once in this time, and by itself once in 10 s.
IDLE_INTERVAL = "spark.sql.streaming.noDataProgressEventInterval"
IDLE_MS = 1000
CHECKPOINT_LOCATION = "spark.sql.streaming.checkpointLocation"
_POLL_S = 0.2
_TELL_S = 2.0
#: How long a driver may take to stop its context.
_GRACE_S = 30.0


@dataclass(frozen=True)
class Places:
    """Where an application reads and writes, on a disk that executors see.

    Attributes:
        input: what `{{ input }}` stands for.
        directory: the directory of its checkpoint and its output.
    """

    input: str
    directory: Path

    @property
    def output(self) -> Path:
        """What `{{ output }}` stands for; it is not there at the start."""
        return self.directory / "output"

    @property
    def checkpoint(self) -> Path:
        """What `{{ checkpoint }}` stands for."""
        return self.directory / "checkpoint"

    def fill(self, text: str) -> str:
        """Return an argument or the value of a conf with these places in it."""
        places = {
            "input": self.input,
            "output": str(self.output),
            "checkpoint": str(self.checkpoint),
        }
        return filled(text, places)


@dataclass(frozen=True)
class Driver:
    """The processes of a driver: its JVM, and the Python that runs a script.

    Attributes:
        mark: the mark of all processes of the cluster.
        words: what the command lines of the JVM and of Python have.
    """

    mark: str
    words: tuple[str, str]

    def stop(self) -> None:
        """Ask the JVM to end, as `kill` does."""
        self._signal(with_word(self.mark, self.words[0]), signal.SIGTERM)

    def kill(self) -> None:
        """Kill what is left of it."""
        for word in self.words:
            self._signal(with_word(self.mark, word), signal.SIGKILL)

    @staticmethod
    def _signal(processes: list[Process], number: signal.Signals) -> None:
        for process in processes:
            with contextlib.suppress(ProcessLookupError):
                os.kill(process.pid, number)


@dataclass
class Following:
    """Follows the event log of an application beside it, and stops it when it is done.

    Attributes:
        label: what messages call the application.
        ends: when it is stopped, in words.
        is_done: tells by its log whether it is to be stopped; it may end by itself before.
        log: what is known of it.
        reader: reads the event log into `log`.
        driver: its processes.
        say: called with each line that stays.
        say_for_now: called with each line that the next one replaces.
        stopped: set when it is stopped.
    """

    label: str
    ends: str
    is_done: Callable[["StreamingLog"], bool]
    log: "StreamingLog"
    reader: "LogFollower"
    driver: Driver
    say: Say
    say_for_now: Say
    stopped: threading.Event = field(default_factory=threading.Event)
    _over: threading.Event = field(default_factory=threading.Event)
    _error: Exception | None = None
    _killed: bool = False
    _said_at: float = 0.0

    @contextlib.contextmanager
    def beside(self) -> Iterator[None]:
        """Follow the log while the context runs; nothing of the application is left behind it."""
        thread = threading.Thread(target=self._follow, daemon=True)
        thread.start()
        try:
            yield
        finally:
            self._over.set()
            thread.join()
            self.driver.kill()

    def _follow(self) -> None:
        try:
            while not self._over.wait(_POLL_S):
                self.reader.read()
                self._tell()
                if self.is_done(self.log):
                    self._stop()
                    return
        except Exception as error:  # a thread has nobody to tell
            self._error = error
            self.stopped.set()
            self.driver.kill()

    def _stop(self) -> None:
        self.say(f"{self.label}: {self.ends}: is stopped")
        self.stopped.set()
        self.driver.stop()
        if not self._over.wait(_GRACE_S):
            self._killed = True
            self.driver.kill()

    def _tell(self) -> None:
        if time.monotonic() < self._said_at + _TELL_S:
            return
        self._said_at = time.monotonic()
        rows = sum(stream.rows for stream in self.log.streams.values())
        self.say_for_now(f"{self.label}: {self.log.batches} batches, {rows:,} rows")

    def check(self) -> None:
        """Read the end of the log; NexmarkError if the application did not run as it should."""
        from nexmark.measure.streaming_log import StreamingLogError

        if self._error is not None:
            raise self._error
        self.reader.read()
        if not self.log.application_id:
            raise StreamingLogError(
                f"{self.label}: wrote no event log; leave spark.eventLog and spark.master to"
                " spark-submit, and make a Spark session"
            )
        if self._killed:
            raise StreamingLogError(
                f"{self.label}: did not end within {_GRACE_S:.0f} s of SIGTERM, so its event log"
                " is not whole; let SIGTERM end it"
            )
        if not self.log.ended:
            raise StreamingLogError(
                f"{self.label}: ended and did not stop Spark, so its event log is not whole; let"
                " it end by itself or by SIGTERM, not by SIGKILL"
            )
        failed = [stream for stream in self.log.streams.values() if stream.error]
        if failed and not self.stopped.is_set():
            why = one_line(str(failed[0].error))
            raise StreamingLogError(f"{self.label}: a streaming query failed: {why}")


def is_done(application: JobApplication, log: "StreamingLog") -> bool:
    """Tell whether an application is to be stopped, as its job says."""
    if application.ends_itself:
        return False
    if (batches := application.batches) is not None:
        return log.has_batches(batches)
    return log.has_read_input()
