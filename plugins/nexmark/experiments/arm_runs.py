"""One arm measured once: a fresh application over the input of a size, and its figures.

The applications run on this machine, one at a time, each with a CPU sampler beside it.
"""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from nexmark.attribution.explained import Observed, Plan
from nexmark.config import Experiment
from nexmark.engines import Build, local_environment
from nexmark.engines.launcher import JOBS, ProcessGroup, last_words, start, submitted
from nexmark.engines.short_runs import C1, untimed_options
from nexmark.errors import NexmarkError
from nexmark.interrupts import undisturbed
from nexmark.measure.cpu import application_cpu
from nexmark.measure.event_log import EventLogError
from nexmark.measure.executed_plan import Part
from nexmark.measure.measurement import Measurement, measure_series
from nexmark.measure.operator_times import repetition_parts
from nexmark.measure.result_file import parse_result
from nexmark.measure.samples import read_samples
from nexmark.model import Basis
from nexmark.recovery.remote_storage import RemoteStorage
from nexmark_jobs.host.processes import OWNER_VARIABLE, end, owned

_FEWEST = 2
_CHECKPOINTS = "spark.sql.streaming.checkpointLocation"
SAMPLES, RESULT, EVENT_LOG = "samples.jsonl", "result.json", "events"
_INTERVAL_S, _RUN_S, _SAMPLER_S, _POLL_S = 0.2, 3600.0, 30.0, 0.05
_JAVA_OPTIONS = "spark.driver.extraJavaOptions"
_CONFS = {
    "spark.master": "local[2]",
    "spark.ui.enabled": "false",
    "spark.log.level": "ERROR",
    "spark.eventLog.compress": "true",
    "spark.eventLog.compression.codec": "zstd",
}


class ExperimentError(NexmarkError):
    """An application of an experiment that did not come to its end; one line with the reason."""


@dataclass(frozen=True)
class LocalApplications:
    """Runs programs of `nexmark_jobs`, which write below `work`.

    `proven`: keys of trials with digests of rows that equal the reference.
    """

    work: Path
    proven: set[tuple[str, str | None]] = field(default_factory=set)

    @property
    def _mark(self) -> str:
        return f"{self.work}|experiment"

    def run(
        self,
        build: Build,
        program: str,
        arguments: Sequence[str],
        *,
        confs: Mapping[str, str],
        memory: str,
        name: str,
        sampled: bool = False,
    ) -> Path:
        """Run a program to its end; returns the directory of the application.

        With `sampled`, its samples and event log are beside its result, which it is to write to
        RESULT; otherwise its time does not count, and its JVM starts as quickly as it can.
        ExperimentError: it failed; with its last words.
        """
        place, scratch = self.work / name, self.work / "tmp"
        shutil.rmtree(place, ignore_errors=True)  # of a try before this one
        (place / EVENT_LOG).mkdir(parents=True)
        scratch.mkdir(exist_ok=True)
        own = {"spark.driver.memory": memory, **_CONFS, **confs}
        quick = "" if sampled else untimed_options(build.spark_home, build.version)
        options = (f"-Djava.io.tmpdir={scratch}", quick, confs.get(_JAVA_OPTIONS, ""))
        own[_JAVA_OPTIONS] = " ".join(filter(None, options))
        if sampled:
            own |= {"spark.eventLog.enabled": "true", "spark.eventLog.dir": f"file:{place}/events"}
        command = submitted(build.spark_home, program, arguments, own)
        log = place / "log.txt"
        try:
            if sampled:
                self._start_sampler(place)
            process = self._started(command, local_environment(build.spark_home, scratch), log)
            if process.wait(_RUN_S) != 0:
                raise ExperimentError(f"{name}: {last_words(log)}")
        except subprocess.TimeoutExpired:
            raise ExperimentError(f"{name}: no end after {_RUN_S:.0f} s") from None
        finally:
            with undisturbed():
                end(owned(self._mark))
                shutil.rmtree(scratch, ignore_errors=True)
        return place

    def _start_sampler(self, place: Path) -> None:
        """Start the sampler; it runs when this returns."""
        ready, log = place / "sampler.pid", place / "sampler.txt"
        command = [
            *(sys.executable, str(JOBS / "cpu_sampler.py"), "--out", str(place / SAMPLES)),
            *("--pid-file", str(ready), "--interval", str(_INTERVAL_S)),
            *("--max-seconds", str(_RUN_S)),
        ]
        process = self._started(command, os.environ, log)
        deadline = time.monotonic() + _SAMPLER_S
        while not ready.exists():
            if process.poll() is not None or time.monotonic() > deadline:
                raise ExperimentError(f"experiment: no CPU sampler: {last_words(log)}")
            time.sleep(_POLL_S)

    def _started(self, command: list[str], variables: Mapping[str, str], log: Path) -> ProcessGroup:
        marked = {**variables, OWNER_VARIABLE: self._mark}
        return start(command, marked, log, self.work, with_parent=signal.SIGTERM)


@dataclass(frozen=True)
class ArmRun:
    """The figures of one application of an arm, and what an attribution needs of it."""

    arm: str
    pair: int
    measurement: Measurement
    observed: Observed

    def __str__(self) -> str:
        """Return its figures, as progress."""
        one = self.measurement
        return f"{one.cpu_s_per_mevent:.1f} CPU-s per million events, {one.wall_s:.1f} s"

    def over_application(self) -> "ArmRun":
        """The same run with the CPU time of its whole life: where there is no steady state."""
        cpu = self.measurement.cpu_s_per_mevent_application
        changes: dict[str, Any] = {"basis": Basis.APPLICATION, "cpu_s_per_mevent": cpu}
        observed = replace(self.observed, **changes, events=self.measurement.events, parts=())
        return replace(self, measurement=replace(self.measurement, **changes), observed=observed)


def quick(experiment: Experiment) -> Experiment:
    """The same to see that all arms run and agree: two small batches, compiled by C1 only."""
    arms = {}
    for name, arm in experiment.arms.items():
        options = f"{C1} {arm.conf.get(_JAVA_OPTIONS, '')}".strip()
        arms[name] = arm.model_copy(update={"conf": {**arm.conf, _JAVA_OPTIONS: options}})
    small = {"sizes": (2000,), "batches": 2, "warmup_batches": 1}
    return experiment.model_copy(update={"arms": arms, **small})


@dataclass(frozen=True)
class Trial:
    """One query of an experiment at one size (events per micro-batch); `builds` is by arm."""

    experiment: Experiment
    query: str
    size: int
    builds: Mapping[str, Build]
    applications: LocalApplications

    @property
    def events(self) -> int:
        """How many events a run reads."""
        return self.size * self.experiment.batches

    @property
    def name(self) -> str:
        """The trial as a directory and as a person reads it."""
        return f"{self.experiment.name}-{self.query}-{self.size}"

    @property
    def key(self) -> str:
        """The query and its events: the same rows are right for every build, conf and source."""
        return " ".join([self.query, *self.generated])

    @property
    def generated(self) -> list[str]:
        """The arguments of the generator."""
        tps, seed = self.experiment.tps, self.experiment.seed
        return ["--events", str(self.events), "--tps", str(tps), "--seed", str(seed)]

    def place_of(self, arm: str, pair: int) -> Path:
        """The directory of an application."""
        return self.applications.work / self.name / f"{pair}-{arm}"

    def run(self, arm: str, pair: int) -> ArmRun:
        """Measure an arm; ExperimentError where it fails."""
        place = self._submit(arm, f"{self.name}/{pair}-{arm}", "noop", sampled=True)
        try:
            return arm_run(arm, pair, place, self.experiment.warmup_batches)
        except (OSError, ValueError, NexmarkError) as error:
            raise ExperimentError(f"{self.name}: {arm}: {error}") from None

    def table_of(self, arm: str) -> Path:
        """Run an arm for its final table; beside the directory is the result file."""
        place = self.applications.work / self.name / f"table-{arm}"
        self._submit(arm, f"{self.name}/table-{arm}", f"parquet:{place}/table", sampled=False)
        return place

    def dumped(self, kind: str, rows: int) -> Path:
        """The events in files of `kind`, a file per micro-batch; written once."""
        entry = self.experiment
        name = f"events-{self.events}-{entry.tps}-{entry.seed}-{rows}-{kind}"
        target = self.applications.work / name
        if not target.is_dir():
            build, place = next(iter(self.builds.values())), f"{name}.dump"
            arguments = [*self.generated, "--out", str(target), "--format", kind]
            arguments += ["--events-per-file", str(rows)]
            self.applications.run(
                build, "dump_events.py", arguments, confs={}, memory=entry.memory, name=place
            )
        return target

    def _submit(self, arm: str, name: str, sink: str, *, sampled: bool) -> Path:
        one, build = self.experiment.arms[arm], self.builds[arm]
        rows, kind = one.rows_per_batch or self.size, self.experiment.kind_of(arm)
        arguments = ["--query", self.query, "--sink", sink]
        arguments += ["--formulation", one.formulation] if one.formulation else []
        if kind == "generated":
            arguments += [*self.generated, "--rows-per-batch", str(rows)]
        else:
            arguments += ["--source", f"files:{self.dumped(kind, rows)}"]
        confs = {"spark.sql.shuffle.partitions": str(self.experiment.shuffle_partitions)}
        if one.checkpoint == "remote":
            storage = RemoteStorage(seed=self.experiment.seed)
            confs |= storage.confs(build, None)
            confs[_CHECKPOINTS] = storage.url(self.applications.work / "remote")
        confs |= one.conf
        memory = one.memory or self.experiment.memory
        arguments += ["--result", str(self.applications.work / name / RESULT)]
        return self.applications.run(
            build, "run_query.py", arguments, confs=confs, memory=memory, name=name, sampled=sampled
        )


def arm_run(arm: str, pair: int, place: Path, warmup_batches: int) -> ArmRun:
    """The figures of an application from what it and its sampler left in `place`.

    Driver and executor are one process in local mode: its CPU is all that the application used.
    """
    path = place / RESULT
    result = json.loads(path.read_text())
    run = parse_result(result, str(path))
    series = application_cpu(read_samples(place / SAMPLES), run.application_id, str(path))
    if series.driver is None:
        raise ExperimentError(f"{path}: the sampler has not seen the application; run it again")
    whole = replace(series, driver=None, executors=series.driver, executor_count=1)
    measured = measure_series(run, [whole], warmup_batches=warmup_batches, min_intervals=_FEWEST)
    plan, parts, problem = result["plan"], tuple[Part, ...](), ""
    try:
        parts = tuple(repetition_parts(place / EVENT_LOG, result, measured))
    except EventLogError as error:
        problem = str(error)
    observed = Observed(
        number=pair,
        stage=1,
        basis=measured.basis,
        events=measured.steady_events or measured.events,
        cpu_s_per_mevent=measured.cpu_s_per_mevent,
        wall_s=measured.wall_s,
        plan=Plan(plan["text"], plan["skeleton"], plan["skeleton_hash"]),
        formulation=measured.formulation,
        confs=result["confs"],
        parts=parts,
        problem=problem or None,
    )
    return ArmRun(arm, pair, measured, observed)
