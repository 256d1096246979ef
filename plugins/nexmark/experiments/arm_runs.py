"""Measure one arm once: run a fresh application over the input of a size, read its figures."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from nexmark.attribution.explained import Observed, Plan
from nexmark.config import Experiment
from nexmark.engines import Build
from nexmark.engines.short_runs import C1
from nexmark.errors import NexmarkError
from nexmark.experiments.local_applications import (
    EVENT_LOG,
    RESULT,
    SAMPLES,
    ExperimentError,
    LocalApplications,
)
from nexmark.measure.cpu import application_cpu
from nexmark.measure.event_log import EventLogError
from nexmark.measure.executed_plan import Part
from nexmark.measure.host_samples import read_samples
from nexmark.measure.measurement import Measurement, measure_series
from nexmark.measure.operator_times import repetition_parts
from nexmark.measure.result_file import parse_result
from nexmark.model import CPU, Basis, metric_of
from nexmark.recovery.remote_storage import RemoteStorage

_MIN_INTERVALS = 2
_CHECKPOINTS = "spark.sql.streaming.checkpointLocation"
_JAVA_OPTIONS = "spark.driver.extraJavaOptions"


@dataclass(frozen=True)
class ArmRun:
    """The figures of one application of an arm, and what an attribution needs of it."""

    arm: str
    pair: int
    measurement: Measurement
    observed: Observed

    def __str__(self) -> str:
        """Return its figures, as progress."""
        one, cpu = self.measurement, metric_of(CPU)
        return f"{cpu.text(one.cpu_s_per_mevent)} {cpu.unit}, {one.wall_s:.1f} s"

    def over_application(self) -> ArmRun:
        """Return the run with the CPU time of the whole application, without its operators."""
        cpu = self.measurement.cpu_s_per_mevent_application
        changes: dict[str, Any] = {"basis": Basis.APPLICATION, "cpu_s_per_mevent": cpu}
        return replace(
            self,
            measurement=replace(self.measurement, **changes),
            observed=replace(self.observed, **changes, events=self.measurement.events, parts=()),
        )


def quick(experiment: Experiment) -> Experiment:
    """Return the experiment with two small batches, to see quickly whether all arms agree.

    Its JVMs compile with C1 only, so its figures say nothing.
    """
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
        """The name of the trial: of its directory, and for people."""
        return f"{self.experiment.name}-{self.query}-{self.size}"

    @property
    def key(self) -> str:
        """The query and its events, which decide what rows are right: builds and confs do not."""
        return " ".join([self.query, *self.generated])

    @property
    def generated(self) -> list[str]:
        """The arguments for the generator of events."""
        tps, seed = self.experiment.tps, self.experiment.seed
        return ["--events", str(self.events), "--tps", str(tps), "--seed", str(seed)]

    def place_of(self, arm: str, pair: int) -> Path:
        """Return the directory of the application of an arm in a pair."""
        return self.applications.work / self.name / f"{pair}-{arm}"

    def run(self, arm: str, pair: int) -> ArmRun:
        """Measure an arm; ExperimentError where it fails."""
        place = self._submit(arm, f"{self.name}/{pair}-{arm}", "noop", sampled=True)
        try:
            return arm_run(arm, pair, place, self.experiment.warmup_batches)
        except (OSError, ValueError, NexmarkError) as error:
            raise ExperimentError(f"{self.name}: {arm}: {error}") from None

    def table_of(self, arm: str) -> Path:
        """Run an arm for its final table, and return the directory of the table and its result."""
        place = self.applications.work / self.name / f"table-{arm}"
        self._submit(arm, f"{self.name}/table-{arm}", f"parquet:{place}/table", sampled=False)
        return place

    def dumped(self, kind: str, rows: int) -> Path:
        """Return the directory of the events in files of a `kind`, with `rows` events in each.

        A micro-batch reads one file. The files are written only once.
        """
        entry = self.experiment
        name = f"events-{self.events}-{entry.tps}-{entry.seed}-{rows}-{kind}"
        target = self.applications.work / name
        if not target.is_dir():
            arguments = [*self.generated, "--out", str(target), "--format", kind]
            self.applications.run(
                next(iter(self.builds.values())),
                "dump_events.py",
                [*arguments, "--events-per-file", str(rows)],
                confs={},
                memory=entry.memory,
                name=f"{name}.dump",
            )
        return target

    def _submit(self, arm: str, name: str, sink: str, *, sampled: bool) -> Path:
        """Run the query of the trial as an arm, and return the directory of the application.

        Args:
            arm: The arm.
            name: The directory of the application, below the directory of all applications.
            sink: The sink of the query, as `run_query.py --sink` takes it.
            sampled: Whether a CPU sampler and an event log measure it.
        """
        one = self.experiment.arms[arm]
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
            confs |= storage.confs(self.builds[arm], None)
            confs[_CHECKPOINTS] = storage.url(self.applications.work / "remote")
        return self.applications.run(
            self.builds[arm],
            "run_query.py",
            [*arguments, "--result", str(self.applications.work / name / RESULT)],
            confs=confs | dict(one.conf),
            memory=one.memory or self.experiment.memory,
            name=name,
            sampled=sampled,
        )


def arm_run(arm: str, pair: int, place: Path, warmup_batches: int) -> ArmRun:
    """Return the figures of an application from the files that it and its sampler have written.

    In local mode, driver and executor are one process: its CPU time counts as the executor's.

    Args:
        arm: The arm that it ran.
        pair: The number of its pair.
        place: The directory of the application.
        warmup_batches: How many data batches are left out of the steady state.

    Raises:
        ExperimentError: The sampler has not seen the application.
        MeasurementError: The files are not right, or the query cannot be measured by them.
    """
    path = place / RESULT
    result = json.loads(path.read_text())
    run = parse_result(result, str(path))
    series = application_cpu(read_samples(place / SAMPLES), run.application_id, str(path))
    if series.driver is None:
        raise ExperimentError(f"{path}: the sampler has not seen the application; run it again")
    whole = replace(series, driver=None, executors=series.driver, executor_count=1)
    measurement = measure_series(
        run, [whole], warmup_batches=warmup_batches, min_intervals=_MIN_INTERVALS
    )
    return ArmRun(arm, pair, measurement, _observed(pair, place, result, measurement))


def _observed(
    pair: int, place: Path, result: Mapping[str, Any], measurement: Measurement
) -> Observed:
    """Return what an attribution needs of an application.

    Args:
        pair: The number of its pair.
        place: The directory of the application, which has its event log.
        result: Its result file.
        measurement: Its figures.
    """
    plan = result["plan"]
    problem: str | None = None
    parts: tuple[Part, ...] = ()
    try:
        parts = tuple(repetition_parts(place / EVENT_LOG, result, measurement))
    except EventLogError as error:
        problem = str(error)
    return Observed(
        number=pair,
        stage=1,
        basis=measurement.basis,
        events=measurement.steady_events or measurement.events,
        cpu_s_per_mevent=measurement.cpu_s_per_mevent,
        wall_s=measurement.wall_s,
        plan=Plan(plan["text"], plan["skeleton"], plan["skeleton_hash"]),
        formulation=measurement.formulation,
        confs=result["confs"],
        parts=parts,
        problem=problem,
    )
