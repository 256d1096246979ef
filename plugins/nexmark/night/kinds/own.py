"""Repetitions of an application of a person's own, which `spark-submit` runs as it is.

What is measured comes from Spark's event log, and from the samplers as for every repetition. While
the application runs, its task follows the log. Where the job says so (`ends`), the task stops it by
SIGTERM: Spark's shutdown hook then stops the context, so the log is whole, and the exit code of
such an end is no failure.
"""

import contextlib
import os
import shutil
import signal
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from nexmark.config import Job
from nexmark.config.application_models import INPUT_READ, JobApplication, filled
from nexmark.config.document import display
from nexmark.config.own_jobs import read_job
from nexmark.errors import NexmarkError
from nexmark.model import Arm
from nexmark.night.kinds.bounded import Bounded
from nexmark.night.kinds.night_kind import JobProgram, Ready
from nexmark.night.night_plan import Night
from nexmark.night.night_progress import say, say_for_now
from nexmark.night.run_directory import Run, RunDirectory
from nexmark.night.submission import Repetition
from nexmark.secrets import fingerprinted, hidden_arguments, load_key
from nexmark_jobs.errors import one_line
from nexmark_jobs.host.processes import Process, with_word

if TYPE_CHECKING:
    from nexmark.kafka.topics import KafkaCluster
    from nexmark.measure.log_follower import LogFollower
    from nexmark.measure.streaming_log import StreamingLog

#: A Spark conf on the command line of the driver, by which samplers and this task recognise it.
LABEL = "spark.nexmark.label"
#: Spark tells of a trigger without rows once in this time, and by itself once in 10 s.
_IDLE_INTERVAL = "spark.sql.streaming.noDataProgressEventInterval"
_IDLE_MS = 1000
#: The directory of a repetition for its checkpoint and output.
WRITTEN = "own"
_POLL_S = 0.2
_TELL_S = 2.0
#: How long a driver may take to stop its context.
_GRACE_S = 30.0


@dataclass(frozen=True)
class Places:
    """Where one repetition reads and writes, on a disk that executors see."""

    input: str
    directory: Path

    @classmethod
    def of(cls, night: Night, run: Run, application: JobApplication) -> "Places":
        """Return the places of a repetition."""
        of_run = RunDirectory(night.data_dir).application(run).path
        return cls(application.input or "", of_run / WRITTEN)

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


class OwnApplication(Bounded):
    """Repetitions of an application of a person's own, in a bounded night."""

    has_slowed_arm = False
    has_short_starts = False

    def program(self, night: Night, run: Run) -> JobProgram:
        """Return the application; in place of a secret argument is its fingerprint."""
        application = planned(night, run)
        places = Places.of(night, run, application)
        arguments = map(places.fill, application.args)
        return JobProgram(
            name=f"own/{run.query}/{application.file_name}",
            arguments=tuple(arguments),
            java_class=application.java_class,
        )

    def confs(self, night: Night, run: Run) -> dict[str, str]:
        """Return the confs of the application, and by what its driver is recognised.

        The confs of the candidate alone go before them: such a night tests these.
        """
        application = planned(night, run)
        places = Places.of(night, run, application)
        idle = {_IDLE_INTERVAL: str(_IDLE_MS)} if application.ends == INPUT_READ else {}
        tested = night.candidate_conf if run.cluster_arm == Arm.CANDIDATE else {}
        return {
            **idle,
            **{name: places.fill(value) for name, value in application.confs.items()},
            **tested,
            "spark.sql.streaming.checkpointLocation": f"file://{places.checkpoint}",
            LABEL: str(night.files.application(run).result_file),
        }

    def directories(self, night: Night, run: Run) -> tuple[Path, ...]:
        """Return the directory of checkpoint and output."""
        return (Places.of(night, run, planned(night, run)).directory,)

    def run(
        self,
        night: Night,
        submission: Repetition,
        ready: Ready,
        connect: Callable[[], "KafkaCluster"],
    ) -> None:
        """Run the application to its end, or stop it, and write its result."""
        from nexmark.expectations.written_rows import DIGEST_KIND, written_rows
        from nexmark.measure.log_follower import LogFollower
        from nexmark.measure.streaming_log import StreamingLog

        run, directory = submission.run, submission.directory
        application = current(night, run)
        places = Places.of(night, run, application)
        arguments = [places.fill(argument) for argument in application.args]
        submit, log = ready(arguments, {}), StreamingLog()
        words = (f"{LABEL}={directory.result_file}", submission.application.program)
        driver = _Driver(night.clusters[submission.application.arm].mark, words)
        reader = LogFollower(directory.events, log.handlers)
        following = _Following(submission.label, application, log, reader, driver)
        with following.beside():
            try:
                submit()
            except Exception:  # whatever raises it: of a driver that was stopped, it is no failure
                if not following.stopped.is_set():
                    raise
        following.check()
        result = log.result(run.query, night.conf_profile, load_key(), application.batches)
        result["formulation"] = _job(night, run).formulation
        if application.output:
            rows = written_rows(places.output, application.output)
            result |= {"output_rows": rows.rows, "digest": rows.digest, "digest_kind": DIGEST_KIND}
        directory.write_result(result)
        shutil.rmtree(places.directory, ignore_errors=True)


def to_plan(job: Job) -> Job:
    """Return a job as the plan of a night may keep it: without the secrets of an application."""
    if (application := job.application) is None:
        return job
    arguments, _ = hidden_arguments(application.args)
    hidden = {"args": tuple(arguments), "confs": fingerprinted(application.confs)}
    return job.model_copy(update={"application": application.model_copy(update=hidden)})


def planned(night: Night, run: Run) -> JobApplication:
    """Return the application that the night planned for an arm, without its secrets."""
    application = _job(night, run).application
    assert application is not None
    return application


def current(night: Night, run: Run) -> JobApplication:
    """Return an application as it is now, with its secrets; NexmarkError if it was changed."""
    file = night.job_file(run.cluster_arm, run.query)
    job = read_job(file) if file.is_file() else None
    if job is None or to_plan(job) != _job(night, run):
        problem = f"{run.query} is not what it was when the night was planned"
        raise NexmarkError(f"{display(file)}: {problem}; start the DAG run again")
    assert job.application is not None
    return job.application


def _job(night: Night, run: Run) -> Job:
    """Return the version of the application that an arm runs."""
    job = night.job_of(run.cluster_arm, run.query)
    assert job is not None
    return job


@dataclass(frozen=True)
class _Driver:
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
class _Following:
    """Follows the event log of an application beside it, and stops it where the job says so.

    Attributes:
        label: what messages call the repetition.
        application: the application.
        log: what is known of it.
        reader: reads the log into it.
        driver: its processes.
        stopped: set when it is stopped.
    """

    label: str
    application: JobApplication
    log: "StreamingLog"
    reader: "LogFollower"
    driver: _Driver
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
                if self._is_done():
                    self._stop()
                    return
        except Exception as error:  # a thread has nobody to tell
            self._error = error
            self.stopped.set()
            self.driver.kill()

    def _is_done(self) -> bool:
        if self.application.ends_itself:
            return False
        if (batches := self.application.batches) is not None:
            return self.log.has_batches(batches)
        return self.log.has_read_input()

    def _stop(self) -> None:
        say(f"{self.label}: {self.application.ends}: is stopped")
        self.stopped.set()
        self.driver.stop()
        if not self._over.wait(_GRACE_S):
            self._killed = True
            self.driver.kill()

    def _tell(self) -> None:
        if time.monotonic() < self._said_at + _TELL_S:
            return
        self._said_at = time.monotonic()
        streams = self.log.streams.values()
        batches = sum(len(stream.progress) for stream in streams)
        rows = sum(stream.rows for stream in streams)
        say_for_now(f"{self.label}: {batches} batches, {rows:,} rows")

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
