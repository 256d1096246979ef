"""Check whether an application of a person's own goes on in another build, and back.

1. The first side runs it to its end: this says how many batches it has, and which rows are right.
2. A side runs it from the start, and SIGTERM stops it after half of these batches, as a person
   stops an application for an upgrade.
3. The other side goes on with the same checkpoint and output, to the end of the application.

A stop may fall into a batch, and not every application writes the rows of such a batch once. So
where the other side fails or puts out other rows, the side that was stopped goes on, too, from a
copy of the same checkpoint and output. Only what differs then is the upgrade's.
"""

import shutil
import signal
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

from nexmark.compatibility.cases import Side, case_of_job
from nexmark.compatibility.plans import QueryPlan, carried_confs, compare, overruled
from nexmark.compatibility.results import Compatibility, Restart, RestartOutcome
from nexmark.config import Job
from nexmark.config.application_models import JobApplication
from nexmark.engines import local_environment
from nexmark.engines.jvm import temporary_files
from nexmark.engines.launcher import ProcessGroup, check_places, logged_cause, start
from nexmark.engines.short_runs import untimed_options
from nexmark.expectations.written_rows import OutputError, WrittenRows, written_rows
from nexmark.home import write_private
from nexmark.interrupts import temporary_directory, undisturbed
from nexmark.measure.log_follower import LogFollower
from nexmark.measure.streaming_log import StreamingLog, StreamingLogError
from nexmark.model import Say
from nexmark.night.followed_application import (
    CHECKPOINT_LOCATION,
    IDLE_INTERVAL,
    IDLE_MS,
    LABEL,
    Driver,
    Following,
    Places,
    is_done,
)
from nexmark.night.private_confs import as_properties
from nexmark.secrets import hidden_arguments, remember, without_secrets
from nexmark_jobs.errors import one_line
from nexmark_jobs.host.processes import OWNER_VARIABLE, end, owned
from nexmark_jobs.redaction import is_secret

_PREFIX = "nexmark-compat-"
#: As in the check of queries: the cluster of the night has other values.
_CONFS = {
    "spark.master": "local[2]",
    "spark.driver.memory": "1g",
    "spark.ui.enabled": "false",
    "spark.log.level": "ERROR",
    "spark.eventLog.enabled": "true",
    "spark.eventLog.compress": "false",
}
_POLL_S = 0.2
#: How long a run may have no further batch.
_SILENCE_S = 900.0
_BEGAN_AGAIN = (
    "a streaming query began again, and did not go on from its checkpoint; give each writeStream a"
    " checkpointLocation below {{ checkpoint }}"
)
_ONLY_OPENED = "all its batches had run before it was stopped: its checkpoint was only opened"
_NO_ROWS = "it names no output, so its rows are not compared"
_ALIKE = "after this stop, both builds put out the same rows, which an uninterrupted run does not"


def why_left_out(job: Job) -> str:
    """Return why an application cannot be checked on this machine, in one line; '' if it can."""
    assert job.application is not None
    if "checkpoint" not in job.application.places:
        return "no argument and no conf of it has {{ checkpoint }}, so it cannot go on"
    return job.missing_input()


def check_application(
    first: Side, second: Side, say: Say, *, below: Path | None = None
) -> Compatibility:
    """Stop an application on each side and go on with it on the other one.

    All files are in a temporary directory. No file and no process is left, however this ends.

    Args:
        first: the side that it runs on now, with its job and all its confs.
        second: the side that it goes on with.
        say: called with each line of progress.
        below: the parent of the temporary directory; the system's by default.
    """
    assert first.job is not None
    assert second.job is not None
    case = case_of_job(first.job, second.job)
    with temporary_directory(_PREFIX, below) as work:
        check = _Check(work, say)
        whole = check.run(first, "uninterrupted run", is_done)
        if whole.problem:
            not_begun = Restart(RestartOutcome.NOT_BEGUN, whole.error_class, whole.problem)
            return Compatibility(case, (whole.plan, None), None, not_begun)
        forward = check.way("forward", first, second, whole)
        ways = [forward]
        if first != second:
            ways.append(check.way("backward", second, first, whole))
        one, other = ways[0].begun.plan, ways[-1].begun.plan
        same_build = first.build == second.build
        ignored = overruled(forward.carried, second.confs, "the second side")
        return Compatibility(
            case,
            (one, other),
            compare(one, other, same_build=same_build) if one and other else None,
            forward.restart,
            ways[1].restart if ways[1:] else None,
            forward.carried,
            tuple(ignored),
        )


@dataclass(frozen=True)
class _Ended:
    """How a run ended.

    Attributes:
        log: what its event log says.
        rows: the rows that are in its output; None if the application names none, or was stopped
            before it had put out all.
        problem: why it did not end as it should, in one line; '' if it did.
        error_class: Spark's class of that error; '' without one.
    """

    log: StreamingLog
    rows: WrittenRows | None = None
    problem: str = ""
    error_class: str = ""

    @property
    def queries(self) -> frozenset[str]:
        """The ids of its streaming queries, which their checkpoints have."""
        return frozenset(stream.id for stream in self.log.streams.values())

    @property
    def plan(self) -> QueryPlan | None:
        """The plans that most of its batches ran; None if none ran."""
        plan = self.log.plan()
        return QueryPlan(plan.text, plan.skeleton, plan.exchanges, ()) if plan else None


@dataclass(frozen=True)
class _Way:
    """A way from one side to the other: how it ended, its first run, the confs it carried."""

    restart: Restart
    begun: _Ended
    carried: Mapping[str, str] = field(default_factory=dict)


@dataclass
class _Check:
    """The runs of a check.

    The checkpoint and the output of all runs have the same paths, since Spark's file sink writes
    the paths of its files into its log.

    Attributes:
        work: the directory of the check.
        say: called with each line of progress.
        count: the number of runs so far.
    """

    work: Path
    say: Say
    count: int = 0

    def __post_init__(self) -> None:
        """Raise NexmarkError for a directory in which Spark cannot work."""
        check_places(self.work)

    @property
    def _written(self) -> Path:
        return self.work / "own"

    @property
    def _kept(self) -> Path:
        return self.work / "kept"

    def way(self, name: str, begins: Side, goes_on: Side, whole: _Ended) -> _Way:
        """Stop the application on a side after half of its batches, and go on on another side.

        Args:
            name: "forward" or "backward".
            begins: the side that runs the first half.
            goes_on: the side that goes on.
            whole: the run that was not interrupted.
        """
        half = max(1, whole.log.batches // 2)
        begun = self.run(
            begins, f"{name}, first run", lambda _, log: log.batches >= half, reads_rows=False
        )
        if begun.problem:
            problem = Restart(RestartOutcome.NOT_BEGUN, begun.error_class, begun.problem)
            return _Way(problem, begun)
        carried = self._carried()
        shutil.rmtree(self._kept, ignore_errors=True)
        shutil.copytree(self._written, self._kept)
        resumed = self.run(goes_on, f"{name}, resumed run", _has_gone_on, goes_on=True)
        restart = _restart(begun, resumed, whole)
        if restart.outcome is not RestartOutcome.RIGHT and begins != goes_on:
            shutil.rmtree(self._written)
            shutil.move(self._kept, self._written)
            control = self.run(begins, f"{name}, resumed by itself", _has_gone_on, goes_on=True)
            restart = _beside(restart, resumed, _restart(begun, control, whole), control)
        return _Way(restart, begun, carried)

    def _carried(self) -> dict[str, str]:
        """Return the confs in the checkpoints of its streaming queries; the first one's count."""
        confs: dict[str, str] = {}
        for offsets in sorted(self._written.rglob("offsets"), reverse=True):
            confs |= carried_confs(offsets.parent)
        return confs

    def run(
        self,
        side: Side,
        name: str,
        is_over: Callable[[JobApplication, StreamingLog], bool],
        *,
        goes_on: bool = False,
        reads_rows: bool = True,
    ) -> _Ended:
        """Run the application on a side until it ends, or until it is to be stopped.

        Args:
            side: The side.
            name: What messages call the run.
            is_over: Tells whether it is to be stopped.
            goes_on: Go on with the checkpoint and the output of the run before.
            reads_rows: Read what is in its output when it has ended.
        """
        job = side.job
        assert job is not None
        assert job.application is not None
        if not goes_on:
            shutil.rmtree(self._written, ignore_errors=True)
            self._written.mkdir()
        self.count += 1
        run = _Run(side, job, job.application, self.work, self._written, f"run-{self.count}")
        label = f"Spark {side.build.version}: {job.name}, {name}"
        ended = run.ended(label, partial(is_over, job.application))
        ended = run.with_rows(ended) if reads_rows else ended
        self.say(f"{label}: {ended.problem or f'{ended.log.batches} batches'}")
        return ended


@dataclass(frozen=True)
class _Run:
    """One run of an application on this machine.

    Attributes:
        side: its build and confs.
        job: the job.
        application: what runs.
        work: the directory of the check.
        written: the directory of its checkpoint and output.
        name: the name of the run, and of the directory of its other files.
    """

    side: Side
    job: Job
    application: JobApplication
    work: Path
    written: Path
    name: str

    @property
    def _directory(self) -> Path:
        return self.work / self.name

    @property
    def _jobs(self) -> Path:
        return self.work / "jobs" / self.job.formulation

    @property
    def _program(self) -> Path:
        return self._jobs / self.job.name / self.application.file_name

    @property
    def _places(self) -> Places:
        return Places(self.application.input or "", self.written)

    @property
    def _mark(self) -> str:
        return f"{self.work}|compat"

    def ended(self, label: str, is_over: Callable[[StreamingLog], bool]) -> _Ended:
        """Run it to its end, and return how it ended."""
        for directory in (self._directory, *map(self._directory.joinpath, ("events", "tmp"))):
            directory.mkdir()
        if not self._jobs.exists():
            self.job.write(self._jobs)
        log = StreamingLog()
        reader = LogFollower(self._directory / "events", log.handlers)
        driver = Driver(self._mark, (f"{LABEL}={self.name}", str(self._program)))
        following = Following(label, "", is_over, log, reader, driver, _silent, _silent)
        output = self._directory / "output"
        environment = local_environment(self.side.build.spark_home, self._directory / "tmp")
        environment |= {OWNER_VARIABLE: self._mark}
        process = start(
            self._command(), environment, output, self._directory, with_parent=signal.SIGKILL
        )
        try:
            with following.beside():
                has_gone_on = _wait(process, log)
        finally:
            with undisturbed():
                end(owned(self._mark))
                process.wait()
        if not has_gone_on:
            return _Ended(log, problem=f"had no further batch for {_SILENCE_S:.0f} s")
        return self._outcome(following, process.returncode, output)

    def _outcome(self, following: Following, code: int, output: Path) -> _Ended:
        """Return how the application has ended.

        Args:
            following: What followed it.
            code: Its exit code.
            output: The log of its driver.
        """
        following.reader.read()
        log, was_stopped = following.log, following.stopped.is_set()
        failed = [stream for stream in log.streams.values() if stream.error and not was_stopped]
        if failed:
            problem = without_secrets(one_line(str(failed[0].error)))
            return _Ended(log, problem=problem, error_class=failed[0].error_class)
        if code != 0 and not was_stopped:
            return _Ended(log, problem=without_secrets(logged_cause(output, code)))
        try:
            following.check()
        except StreamingLogError as error:
            return _Ended(log, problem=str(error).removeprefix(f"{following.label}: "))
        return _Ended(log)

    def with_rows(self, ended: _Ended) -> _Ended:
        """Return how it ended, with the rows that are in its output."""
        if ended.problem or not self.application.output:
            return ended
        try:
            rows = written_rows(self._places.output, self.application.output)
        except OutputError as error:
            return replace(ended, problem=str(error).replace(f"{self.written}/", ""))
        return replace(ended, rows=rows)

    def _command(self) -> list[str]:
        """Return the command line; the confs are in a file, since some may be secrets."""
        file = self._directory / "spark.conf"
        write_private(file, as_properties(self._confs()))
        words = [str(self.side.build.spark_home / "bin" / "spark-submit")]
        words += ["--properties-file", str(file), "--conf", f"{LABEL}={self.name}"]
        if self.application.java_class:
            words += ["--class", self.application.java_class]
        return [*words, str(self._program), *map(self._places.fill, self.application.args)]

    def _confs(self) -> dict[str, str]:
        build, places, temporary = self.side.build, self._places, self._directory / "tmp"
        options = untimed_options(build.spark_home, build.version)
        given = {name: places.fill(value) for name, value in self.side.confs.items()}
        return {
            IDLE_INTERVAL: str(IDLE_MS),
            "spark.sql.shuffle.partitions": "2",
            **given,
            **self.job.file_confs(self._jobs, given),
            **_CONFS,
            "spark.driver.defaultJavaOptions": f"{options} {temporary_files(temporary)}",
            "spark.sql.warehouse.dir": str(self._directory / "warehouse"),
            "spark.eventLog.dir": (self._directory / "events").as_uri(),
            CHECKPOINT_LOCATION: f"file://{places.checkpoint}",
        }


def hide_secrets(job: Job) -> None:
    """Let no message show the secrets in the arguments and the confs of an application."""
    assert job.application is not None
    confs = job.application.confs
    remember(value for name, value in confs.items() if is_secret(name, value))
    remember(hidden_arguments(job.application.args)[1])


def _wait(process: ProcessGroup, log: StreamingLog) -> bool:
    """Wait until a process has ended; return False if its log had no batch for too long."""
    seen, since = log.batches, time.monotonic()
    while process.poll() is None:
        if log.batches != seen:
            seen, since = log.batches, time.monotonic()
        elif time.monotonic() - since > _SILENCE_S:
            return False
        time.sleep(_POLL_S)
    return True


def _has_gone_on(application: JobApplication, log: StreamingLog) -> bool:
    """Tell whether an application that went on is to be stopped: there may be no row left."""
    if application.ends_itself:
        return False
    batches = application.batches
    has_batches = batches is not None and log.has_batches(batches)
    return has_batches or log.has_read_input(least_rows=0)


def _restart(begun: _Ended, resumed: _Ended, whole: _Ended) -> Restart:
    """Return how the application went on.

    Args:
        begun: the run that was stopped.
        resumed: the run that went on.
        whole: the run that was not interrupted.
    """
    if resumed.problem:
        has_class = bool(resumed.error_class)
        outcome = RestartOutcome.REFUSED if has_class else RestartOutcome.NOT_ENDED
        return Restart(outcome, resumed.error_class, resumed.problem)
    if not begun.queries <= resumed.queries:
        return Restart(RestartOutcome.NOT_BEGUN, reason=_BEGAN_AGAIN)
    if resumed.rows != whole.rows:
        assert resumed.rows is not None
        assert whole.rows is not None
        there, right = resumed.rows.rows, whole.rows.rows
        reason = f"{there:,} rows, an uninterrupted run has {right:,}"
        if there == right:
            reason = f"other rows than an uninterrupted run: {there:,} each, not all equal"
        return Restart(RestartOutcome.WRONG, reason=reason)
    notes = [_ONLY_OPENED] if begun.log.batches >= whole.log.batches else []
    notes += [_NO_ROWS] if whole.rows is None else []
    return Restart(RestartOutcome.RIGHT, reason="; ".join(notes))


def _beside(restart: Restart, resumed: _Ended, other: Restart, control: _Ended) -> Restart:
    """Return what is the upgrade's of how an application went on.

    Args:
        restart: How it went on on the other side.
        resumed: The run that did.
        other: How it went on, after the same stop, on the side that was stopped.
        control: The run that did.
    """
    if other.outcome is RestartOutcome.RIGHT:
        return restart
    both_wrong = restart.outcome is other.outcome is RestartOutcome.WRONG
    if both_wrong and resumed.rows == control.rows:
        return Restart(RestartOutcome.RIGHT, reason=_ALIKE)
    problem = f"it does not go on after a stop where it was stopped, either: {other.reason}"
    return Restart(RestartOutcome.NOT_BEGUN, other.error_class, problem)


def _silent(_: str) -> None:
    """Say nothing: a run has one line, when it has ended."""
