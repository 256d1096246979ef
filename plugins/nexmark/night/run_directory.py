"""The files of a night: every name is here, and how each small file is written and read.

    <home>/runs/<dag id>/<run id>/      RunDirectory
        <query>, round_2/ .. or flames/ GroupDirectory: what belongs to all of its applications
            <run>/                      ApplicationDirectory: what one application leaves

A model that is kept as JSON is read and written by its own class (`Night`, `Deployments`,
`Verification`), from and to the path that stands here.
"""

import json
import shutil
import socket
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeAlias

from pydantic import BaseModel, JsonValue, TypeAdapter

from nexmark.config import paths
from nexmark.config.fields import Model
from nexmark.home import write_text
from nexmark.model import FIRST_ROUND, FLAMES, PROFILED, Arm, RunKey, round_group
from nexmark.reason import reason_of

if TYPE_CHECKING:
    from nexmark.measure.result_file import RunResult
    from nexmark.verdict.measured_night import Sample

#: The run of a query whose rows are compared with the reference.
VERIFY = "verify"
#: A JSON object.
Json: TypeAlias = dict[str, JsonValue]
#: Readings of the canary: by host, the value of each metric.
CanaryReadings = list[dict[str, dict[str, float]]]
Moment = Literal["before", "after"]

_CANARY = TypeAdapter(CanaryReadings)
_HOSTS = TypeAdapter(dict[str, Json])
#: The position of the turn of each mapped instance, by the number of the instance as text.
_CLAIMS = TypeAdapter(dict[str, int])
_SAMPLES, _CLOCKS = "samples-{}.jsonl", "clock-{}.json"


class Run(Model):
    """One timed application: repetition `number` (from 1) of an arm, in a stage of the gate."""

    query: str
    number: int
    arm: str = Arm.CANDIDATE
    stage: int = FIRST_ROUND

    @property
    def name(self) -> str:
        """Its directory below the query's directory: `rep-1`, `baseline-rep-1`, `round-2-rep-1`."""
        arm = "" if self.arm == Arm.CANDIDATE else f"{self.arm}-"
        prefixes = {FIRST_ROUND: "", PROFILED: "recorded-"}
        prefix = prefixes.get(self.stage, f"round-{self.stage}-")
        return f"{prefix}{arm}rep-{self.number}"

    @property
    def label(self) -> str:
        """What messages and `applications.jsonl` call it: `q5 baseline-rep-2`."""
        return f"{self.query} {self.name}"

    @property
    def cluster_arm(self) -> str:
        """The arm on whose cluster, and of whose build, it runs."""
        return Arm.CANDIDATE if self.arm == Arm.CANDIDATE else Arm.BASELINE

    @property
    def group(self) -> str:
        """The group that it is sampled in: its query, a later round, or the flame graphs."""
        if self.stage == PROFILED:
            return FLAMES
        return self.query if self.stage == FIRST_ROUND else round_group(self.stage)


_RUNS = TypeAdapter(list[Run])


class TimeSpent(NamedTuple):
    """The time of a night, from its first application to the end of its last one.

    ``around_s`` are the seconds between applications, ``timed`` is the number of timed ones.
    """

    whole_s: float
    around_s: float
    timed: int


class ApplicationSpan(Model):
    """When an application ran, in epoch seconds; `timed` if it was a repetition of `query`."""

    label: str
    start: float
    end: float
    timed: bool = False
    query: str = ""


class UpgradeOutcome(Model):
    """Whether a running query survives the change from a baseline build to the candidate.

    Attributes:
        baseline_build: the id of the build that began the query.
        outcome: the class (`nexmark.compatibility.results.UpgradeClass`).
        red: whether the outcome fails the night.
        reason: why the outcome is not `same`, in one line.
        plans: how the plans differ.
        forward, backward: how the candidate went on from the baseline's checkpoint, and back.
        checkpoint: the confs that the checkpoint carries, in words.
        baseline_plan, candidate_plan: the plans as text; None where there is none.
    """

    query: str
    baseline_build: str
    outcome: str
    red: bool
    reason: str
    plans: str = "-"
    forward: str = "-"
    backward: str = "-"
    checkpoint: str = ""
    baseline_plan: str | None = None
    candidate_plan: str | None = None


_UPGRADE_OUTCOMES = TypeAdapter(list[UpgradeOutcome])


class PacedFigures(BaseModel):
    """The figures of a paced repetition that a night uses; times in milliseconds.

    Attributes:
        events: how many bids have a latency.
        p50, p99: percentiles of the latency.
        invalid: why the figures cannot be believed; '' if they can.
        histogram: all latencies, as HdrHistogram encodes them in base64.
        sent: how many events were sent, the warm-up included.
        first_ms, last_ms: when the first and the last event were due, since 1970.
    """

    events: int
    p50: float
    p99: float
    invalid: str
    histogram: str
    sent: int
    first_ms: int
    last_ms: int


class _BrokerUse(BaseModel):
    cpu_s: float


class CpuTimes(BaseModel):
    """The CPU-seconds per million events of a repetition; None for what was not measured.

    Attributes:
        steady: of the executors in the steady state.
        application: of the executors in their whole life.
        tasks: of the tasks with their Python workers, in the steady state where there is one.
    """

    steady: float | None
    application: float
    tasks: float | None


class KillCost(BaseModel):
    """The cost of a kill in seconds; None for a part that the engine does not report.

    Attributes:
        load_s: how long state stores were loaded, summed over the stores.
        first_commit_s: the time from the start of the first batch after the kill to its commit.
        interruption_s: the time without a commit, less the regular gap between commits.
        catch_up_s: the time until the query was as punctual as before; None if it never was, or if
            its batches were not paced.
    """

    load_s: float | None
    first_commit_s: float | None
    interruption_s: float | None
    catch_up_s: float | None


class OperatorCommit(BaseModel):
    """The seconds that the commit of a stateful operator took in a batch."""

    batch: int
    commit_s: float


class RecoverySplits(BaseModel):
    """What kills and commits cost a query, of the parts that `recovery.recovery_run` writes.

    Attributes:
        kills: the cost of each kill.
        commit: the commits of every batch and stateful operator.
        regular_gap_s: the median seconds between commits without a kill; None if there is none.
        failures: what is wrong with the table; [] if it is right.
        batches: the batches of all processes, as pages show them.
    """

    kills: list[KillCost]
    commit: list[OperatorCommit]
    regular_gap_s: float | None
    failures: list[str]
    batches: list[JsonValue] = []


class ClockReading(BaseModel):
    """By how many seconds the clock of a host was ahead of this machine's, give or take."""

    offset_s: float
    uncertainty_s: float


class _ClockReadings(BaseModel):
    readings: list[ClockReading]


@dataclass(frozen=True)
class TaskDirectory:
    """A directory in which it stands why its work failed, if it did."""

    path: Path

    @property
    def has_failed(self) -> bool:
        """Tell whether it stands here why the work failed."""
        return self._failure.exists()

    @property
    def verification(self) -> Path:
        """The file with what the expectations say of a query's output (`Verification`)."""
        return self.path / "verification.json"

    @property
    def _failure(self) -> Path:
        return self.path / "failure.txt"

    def failure(self, unknown: str = "it was not started, or was killed") -> str:
        """Return why the work failed, in one line; `unknown` where nothing says it.

        On a full disk the file is made, and nothing can be written into it.
        """
        try:
            return self._failure.read_text() or "the reason could not be written: is the disk full?"
        except FileNotFoundError:
            return unknown

    def write_failure(self, why: str) -> None:
        """Write why the work failed, because there is no result."""
        self.path.mkdir(parents=True, exist_ok=True)
        self._failure.write_text(why)

    def forget_failure(self) -> None:
        """Remove what an earlier try has written."""
        self._failure.unlink(missing_ok=True)


@contextmanager
def failure_kept(*directories: TaskDirectory) -> Iterator[None]:
    """Write into `directories` why the context has failed, whatever the error, and raise it again.

    That a task was stopped, by a person or because its time was over, is a reason, too.
    """
    try:
        yield
    except BaseException as error:
        with suppress(OSError):  # the error itself says more
            for directory in directories:
                directory.write_failure(reason_of(error))
        raise


def prepare(directories: Sequence[Path]) -> None:
    """Replace `directories` by empty ones; the application fills them."""
    for directory in directories:
        shutil.rmtree(directory, ignore_errors=True)
    for directory in directories:
        directory.mkdir(parents=True, exist_ok=True)


@dataclass(frozen=True)
class ApplicationDirectory(TaskDirectory):
    """What one application, and the task that runs it, leave for the tasks behind it.

    `dropped` is beside the directory, which every try empties.
    """

    @property
    def result_file(self) -> Path:
        """The result file of the query job."""
        return self.path / "result.json"

    @property
    def events(self) -> Path:
        """The directory of Spark's event log."""
        return self.path / "events"

    @property
    def recordings(self) -> Path:
        """The flight recordings: a directory for each host."""
        return self.path / "recordings"

    @property
    def attempts(self) -> Path:
        """Result, progress and last words of each process of a repetition that is killed."""
        return self.path / "attempts"

    @property
    def started(self) -> Path:
        """The file that a paced query makes when it runs."""
        return self.path / "started"

    @property
    def stop(self) -> Path:
        """The file that ends a paced query."""
        return self.path / "stop"

    @property
    def job_file(self) -> Path:
        """What a paced query says at its end."""
        return self.path / "job.json"

    @property
    def latency_file(self) -> Path:
        """The figures of a paced repetition, with the whole histogram."""
        return self.path / "latency.json"

    @property
    def recovery_file(self) -> Path:
        """What kills and commits cost a repetition, and what is wrong with its table."""
        return self.path / "recovery.json"

    @property
    def pauses(self) -> Path:
        """The directory of the file that says that a query is held between batches."""
        return self.path / "pauses"

    @property
    def ageing_file(self) -> Path:
        """What the JVMs of a soak repetition held in each pause, a line of JSON for each."""
        return self.path / "ageing.jsonl"

    @property
    def warmup_file(self) -> Path:
        """The number of the first batch after the warm-up of a soak repetition."""
        return self.path / "warmup.json"

    def ageing(self) -> "list[Sample]":
        """Return the samples of a soak repetition; none if it has none."""
        path = self.ageing_file
        return list(map(json.loads, path.read_text().splitlines())) if path.exists() else []

    def result(self) -> Json | None:
        """Return the content of the result file; None if the application has left none."""
        return dict(json.loads(self.result_file.read_text())) if self.result_file.exists() else None

    def parsed_result(self) -> "RunResult":
        """Return the result that the application left; NexmarkError for a bad one."""
        from nexmark.measure.result_file import parse_result

        return parse_result(json.loads(self.result_file.read_text()), str(self.result_file))

    def write_result(self, result: Mapping[str, JsonValue]) -> None:
        """Write the result of a repetition whose applications leave only parts of it."""
        self.result_file.write_text(json.dumps(result, indent=1) + "\n")

    def latency(self) -> PacedFigures | None:
        """Return the figures of a paced repetition, None if it has none."""
        path = self.latency_file
        return PacedFigures.model_validate_json(path.read_bytes()) if path.exists() else None

    def recovery(self) -> RecoverySplits | None:
        """Return what kills and commits cost, None for a repetition that was not killed."""
        path = self.recovery_file
        return RecoverySplits.model_validate_json(path.read_bytes()) if path.exists() else None

    @property
    def _broker(self) -> Path:
        return self.path / "broker.json"

    def broker_cpu_s(self) -> float | None:
        """Return the CPU seconds of the night's broker meanwhile; None where it has none."""
        path = self._broker
        return _BrokerUse.model_validate_json(path.read_bytes()).cpu_s if path.exists() else None

    def write_broker_cpu_s(self, seconds: float) -> None:
        """Write the CPU seconds of the night's broker while the application ran."""
        self._broker.write_text(json.dumps({"cpu_s": seconds}))

    @property
    def _cpu_times(self) -> Path:
        return self.path / "cpu_times.json"

    def cpu_times(self) -> CpuTimes | None:
        """Return the CPU times that are kept of the application; None if there are none yet."""
        path = self._cpu_times
        return CpuTimes.model_validate_json(path.read_bytes()) if path.exists() else None

    def write_cpu_times(self, times: CpuTimes) -> None:
        """Keep the CPU times of the application, which take long to measure."""
        write_text(self._cpu_times, times.model_dump_json())

    @property
    def _dropped(self) -> Path:
        return self.path.with_name(f"{self.path.name}-dropped.txt")

    def dropped(self) -> str | None:
        """Return why the first measurement was dropped, None if it was not."""
        return self._dropped.read_text() if self._dropped.exists() else None

    def write_dropped(self, why: str) -> None:
        """Write why the first measurement is dropped."""
        self._dropped.write_text(why)


@dataclass(frozen=True)
class TurnFile:
    """What the instances of a mapped task run, in this order, and which instance runs which.

    Airflow starts mapped instances in any order, but the arms of a query have to take turns.
    """

    path: Path

    @property
    def _claims(self) -> Path:
        return self.path.with_name(f"{self.path.stem}-claims.json")

    def write(self, turns: Sequence[Mapping[str, JsonValue]]) -> None:
        """Write what is to run; no instance has a turn yet."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self.path.write_text(json.dumps(turns))
        self._claims.unlink(missing_ok=True)

    def claim(self, instance: int) -> Json:
        """Return what a mapped instance runs: its own turn if it is tried again, else the next."""
        claims = _CLAIMS.validate_json(self._claims.read_bytes()) if self._claims.exists() else {}
        position = claims.setdefault(str(instance), len(claims))
        write_text(self._claims, json.dumps(claims))
        return dict(json.loads(self.path.read_text())[position])


@dataclass(frozen=True)
class GroupDirectory(TaskDirectory):
    """What belongs to all applications of a query, of a later round, or of the flame graphs."""

    @property
    def turns(self) -> TurnFile:
        """The submissions of the repetitions, in their order."""
        return TurnFile(self.path / "sequence.json")

    @property
    def _runs(self) -> Path:
        return self.path / "runs.json"

    def runs(self) -> list[Run]:
        """Return what a later round or the flame graphs run; [] before it is planned."""
        return _RUNS.validate_json(self._runs.read_bytes()) if self._runs.exists() else []

    def write_runs(self, runs: Sequence[Run]) -> None:
        """Write what a later round or the flame graphs run, in this order."""
        self.path.mkdir(parents=True, exist_ok=True)
        self._runs.write_bytes(_RUNS.dump_json(list(runs), indent=1))

    @property
    def verify(self) -> ApplicationDirectory:
        """The directory of the verification run."""
        return self.application(VERIFY)

    @property
    def verify_baseline(self) -> ApplicationDirectory:
        """The directory of the baseline's verification run, of a job without a reference."""
        return self.application(f"{VERIFY}_baseline")

    @property
    def fetched_samples(self) -> TaskDirectory:
        """Where it stands why the samples of the hosts could not be fetched."""
        return TaskDirectory(self.path / "fetching")

    @property
    def layout(self) -> TaskDirectory:
        """Where it stands why the tables of a job could not be laid out."""
        return TaskDirectory(self.path / "layout")

    @property
    def driver_samples(self) -> Path:
        """The samples of this machine."""
        return self.path / _SAMPLES.format(f"driver-{socket.gethostname()}")

    @property
    def sampler_log(self) -> Path:
        """What the sampler of this machine prints."""
        return self.path / "sampler.log"

    @property
    def sampler_pid(self) -> Path:
        """The process id of the sampler of this machine, once it samples."""
        return self.path / "sampler.pid"

    def application(self, name: str) -> ApplicationDirectory:
        """Return the directory of an application of the query."""
        return ApplicationDirectory(self.path / name)

    def samples(self, host: str) -> Path:
        """Return the file of the samples of another host."""
        return self.path / _SAMPLES.format(host)

    def all_samples(self) -> list[Path]:
        """Return the files of samples that are there."""
        return sorted(self.path.glob(_SAMPLES.format("*")))

    def clock_readings(self, host: str) -> list[ClockReading]:
        """Return the readings of a host's clock; OSError or ValueError where there are none."""
        text = (self.path / _CLOCKS.format(host)).read_text()
        return _ClockReadings.model_validate_json(text).readings

    def remove_samples(self) -> None:
        """Remove the samples and the readings of clocks of an earlier try."""
        for stale in (*self.all_samples(), *self.path.glob(_CLOCKS.format("*"))):
            stale.unlink()

    def canary(self, moment: Moment) -> tuple[CanaryReadings, datetime] | None:
        """Return the readings of the canary and when they were taken; None without any."""
        path = self._canary(moment)
        if not path.exists():
            return None
        taken = datetime.fromtimestamp(path.stat().st_mtime, UTC)
        return _CANARY.validate_json(path.read_bytes()), taken

    def write_canary(self, moment: Moment, readings: CanaryReadings) -> None:
        """Write the readings of the canary before or after the applications."""
        self.path.mkdir(parents=True, exist_ok=True)
        self._canary(moment).write_text(json.dumps(readings))

    def _canary(self, moment: Moment) -> Path:
        return self.path / f"canary-{moment}.json"


def host_of_samples(path: Path) -> str:
    """Return the host of a file of samples, as `clusters.yaml` names it."""
    return path.stem.removeprefix(_SAMPLES.partition("{")[0])


@dataclass(frozen=True)
class RunDirectory:
    """The directory of one DAG run."""

    path: Path

    @classmethod
    def of(cls, dag_id: str, run_id: str) -> "RunDirectory":
        """Return the directory of a DAG run."""
        return cls(paths.run_dir(dag_id, run_id))

    @classmethod
    def of_night(cls, name: str) -> "RunDirectory":
        """Return the directory of a night of the results database."""
        return cls.of(*RunKey.parse(name))

    @classmethod
    def planned(cls, dag_id: str = "*") -> "list[RunDirectory]":
        """Return the directories with a plan, the newest plan first; of one DAG or of all."""
        plans = (paths.home() / "runs").glob(f"{dag_id}/*/{cls._NIGHT}")
        newest = sorted(plans, key=lambda path: path.stat().st_mtime, reverse=True)
        return [cls(path.parent) for path in newest]

    _NIGHT = "night.json"

    @property
    def night(self) -> Path:
        """The plan (`Night`)."""
        return self.path / self._NIGHT

    @property
    def deployment(self) -> Path:
        """The builds and the jobs that were deployed (`Deployments`)."""
        return self.path / "deployment.json"

    @property
    def kafka(self) -> Path:
        """The Kafka that the applications of the night read (`NightKafka`)."""
        return self.path / "kafka.json"

    @property
    def topic_events(self) -> Path:
        """Where events are generated before they are written to the topics."""
        return self.path / "topics"

    @property
    def paced_events(self) -> Path:
        """The events that paced repetitions are sent."""
        return self.path / "paced-events"

    @property
    def verify(self) -> Path:
        """What the application that verifies all queries leaves; every try empties it."""
        return self.path / VERIFY

    @property
    def verify_plan(self) -> Path:
        """What the application that verifies all queries still has to run."""
        return self.path / "verify.json"

    @property
    def verify_log(self) -> Path:
        """Its log: which query has begun, is done, has failed."""
        return self.path / "verify.jsonl"

    @property
    def exit_code(self) -> Path:
        """The exit code of the application that runs, or has run last."""
        return self.path / "exit-code.txt"

    @property
    def data_docs(self) -> Path:
        """The Data Docs of Great Expectations."""
        return self.path / "data_docs"

    @property
    def report(self) -> Path:
        """The report, and the evidence so far."""
        return self.path / "report"

    @property
    def evidence(self) -> Path:
        """The page of the evidence in the report."""
        return self.report / "evidence.html"

    @property
    def signoff(self) -> Path:
        """The bundle of a sign-off."""
        return self.path / "signoff"

    @property
    def flames(self) -> Path:
        """The flame graphs."""
        return self.path / FLAMES

    @property
    def compatibility(self) -> Path:
        """Whether running queries survive, with the plans of both arms."""
        return self.path / "compatibility.json"

    @property
    def experiment_steps(self) -> TurnFile:
        """The applications of an experiment, in their order."""
        return TurnFile(self.path / "steps.json")

    @property
    def experiment_applications(self) -> Path:
        """What the applications of an experiment leave."""
        return self.path / "applications"

    def group(self, name: str) -> GroupDirectory:
        """Return the directory of a query, of a later round, or of the flame graphs."""
        return GroupDirectory(self.path / name)

    def application(self, run: Run) -> ApplicationDirectory:
        """Return the directory of a repetition."""
        return self.group(run.query).application(run.name)

    def event_logs(self) -> list[Path]:
        """Return the directories of repetitions in which there are event logs of Spark."""
        directories = (ApplicationDirectory(path).events for path in self.path.glob("*/*"))
        return sorted(path for path in directories if path.is_dir())

    def cluster(self, arm: str) -> Path:
        """Return the directory of the logs of the cluster of an arm."""
        return self.path / "cluster" / arm

    @property
    def _applications(self) -> Path:
        return self.path / "applications.jsonl"

    def add_application(self, span: ApplicationSpan) -> None:
        """Note when an application ran."""
        with self._applications.open("a", encoding="utf-8") as file:
            file.write(span.model_dump_json() + "\n")

    def applications(self) -> list[ApplicationSpan]:
        """Return when each application ran, in the order in which they ended."""
        return [ApplicationSpan.model_validate(line) for line in json_lines(self._applications)]

    def last_spans(self) -> dict[str, ApplicationSpan]:
        """Return when each application ran last, by its label."""
        return {span.label: span for span in self.applications()}

    def time_spent(self) -> TimeSpent | None:
        """Return the time that the applications so far took; None if none ran."""
        if not (ran := self.applications()):
            return None
        whole_s = max(each.end for each in ran) - min(each.start for each in ran)
        applications_s = sum(each.end - each.start for each in ran)
        return TimeSpent(whole_s, whole_s - applications_s, sum(each.timed for each in ran))

    @property
    def _hosts(self) -> Path:
        return self.path / "hosts.json"

    def hosts(self) -> dict[str, Json]:
        """Return kernel, CPU, JDK and so on by host; {} where the night has not noted them."""
        try:
            return _HOSTS.validate_json(self._hosts.read_bytes())
        except (OSError, ValueError):
            return {}

    def write_hosts(self, facts: Mapping[str, Json]) -> None:
        """Write the kernel, CPU, JDK and so on of each host."""
        self._hosts.write_text(json.dumps(facts, indent=1))

    @property
    def _upgrade_outcomes(self) -> Path:
        return self.path / "compatibility-rows.json"

    def upgrade_outcomes(self) -> list[UpgradeOutcome]:
        """Return whether running queries survive; [] where it was not checked."""
        path = self._upgrade_outcomes
        return _UPGRADE_OUTCOMES.validate_json(path.read_bytes()) if path.exists() else []

    def write_upgrade_outcomes(self, outcomes: Sequence[UpgradeOutcome]) -> None:
        """Write whether running queries survive."""
        text = _UPGRADE_OUTCOMES.dump_json(list(outcomes), indent=1).decode()
        write_text(self._upgrade_outcomes, text)

    @property
    def _rollout(self) -> Path:
        return self.path / "rollout.txt"

    def rollout(self) -> str | None:
        """Return the name of the rollout that the run is a stage of, None before it is known."""
        return self._rollout.read_text() if self._rollout.exists() else None

    def write_rollout(self, name: str) -> None:
        """Write the name of the rollout that the run is a stage of."""
        self.path.mkdir(parents=True, exist_ok=True)
        write_text(self._rollout, name)


def json_lines(path: Path) -> list[Json]:
    """Return the objects of a file that has one JSON object per line; [] if there is no file."""
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    return [json.loads(line) for line in lines]
