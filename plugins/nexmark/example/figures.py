"""Make the rows of simulated repetitions: figures, batches, CPU over time, recorded plans.

``recorded.json`` has executed plans, and the parts that an event log knew, of a night of Spark
4.3.0. The CPU time of the parts is scaled to the figure of the repetition.
"""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any

from nexmark.measure.cpu_series import CpuSeries
from nexmark.measure.executed_plan import OPERATOR, Part
from nexmark.measure.measurement import Measurement
from nexmark.model import TASK_CPU, Basis
from nexmark.store import BuildRecord, RepetitionRecord
from nexmark.store.table_rows import CanaryRow

EVENTS = 10_000_000
HOSTS = ("nexmark02", "nexmark03")
CORES = 6.5
"""The cores that a query uses."""
BATCHES = 10
_STATE_BYTES = 9_000_000
OF_TASKS = 0.7
"""The share of the executors' CPU time that the tasks have; the rest is as noisy as they are."""
_READINGS = 60
_APART_S = 90
_SLOWER_PART = "StateStoreSave"
"""The operator that costs more in the plan that changed."""
_CANARY = {"cpu_s": 0.0131, "cpu_memory_s": 0.0062, "fsync_s": 0.0021, "load_1m": 0.4}
_BROKEN = 1.8


@dataclass(frozen=True)
class SimulatedRun:
    """A repetition to be made: its place in the night, its build and its figure.

    ``figure`` is in CPU-seconds per million events. ``traced`` is the ratio by which one operator
    made it slower, 1 where none did. ``deep``: whether it has batches, CPU over time and parts.
    """

    run: str
    query: str
    arm: str
    stage: int
    number: int
    build: BuildRecord
    figure: float
    started: datetime
    deep: bool = False
    traced: float = 1.0

    @property
    def task_figure(self) -> float:
        """The CPU-seconds of the tasks per million events."""
        return self.figure * OF_TASKS

    @property
    def wall_s(self) -> float:
        """The wall-clock time in seconds."""
        return self.figure * EVENTS / 1e6 / CORES

    def record(self, position: int, place: int) -> RepetitionRecord:
        """Return the repetition.

        Args:
            position: Its place in the order of its query and round, from 1.
            place: Its place in the order of the night.
        """
        recorded = _recorded().get(self.query)
        start = self.started.timestamp() + _APART_S * place
        measurement = _measurement(self, recorded, start)
        result: dict[str, object] = {"confs": {"spark.sql.shuffle.partitions": "8"}}
        if recorded is not None:
            result["plan"] = _plan(recorded, changed=self.traced > 1)
        if self.deep:
            result["batches"] = _batches(measurement)
        return RepetitionRecord(
            self.run,
            self.query,
            self.number,
            arm=self.arm,
            stage=self.stage,
            position=position,
            measurement=measurement,
            result=result,
            series=[(_series(measurement, host), Path("samples")) for host in HOSTS if self.deep],
            parts=_parts(self, recorded, measurement.cpu_s) if self.deep and recorded else (),
        )


def canary_rows(queries: Sequence[str], taken: datetime, broken: str | None) -> list[CanaryRow]:
    """Return the readings of the canary around each query; a host slows down during ``broken``."""
    rows: list[CanaryRow] = []
    for group in queries:
        for host, moment in ((host, moment) for host in HOSTS for moment in ("before", "after")):
            slow = group == broken and host == HOSTS[0] and moment == "after"
            wobble = 1 + 0.004 * math.sin(len(rows))
            for metric, value in _CANARY.items():
                factor = wobble * (_BROKEN if slow else 1)
                row = CanaryRow(host=host, group=group, moment=moment, metric=metric, taken=taken)
                row.value = value * factor
                rows.append(row)
    return rows


@cache
def _recorded() -> Mapping[str, Mapping[str, Any]]:
    """Return what was recorded of each query."""
    text = resources.files("nexmark.example").joinpath("recorded.json").read_text("utf-8")
    recorded: Mapping[str, Mapping[str, Any]] = json.loads(text)
    return recorded


def _measurement(
    run: SimulatedRun, recorded: Mapping[str, Any] | None, start: float
) -> Measurement:
    """Return the figures of a repetition.

    Args:
        run: The repetition.
        recorded: What was recorded of its query; None for nothing.
        start: When it started, in epoch seconds.
    """
    cpu_s = run.figure * EVENTS / 1e6
    wall_s = run.wall_s
    steady = 1 - 2 / BATCHES
    stateful = recorded["stateful_operators"] if recorded else 0
    state_bytes = _STATE_BYTES * (1 + len(run.query)) if stateful else 0
    batch_ms = 1000 * wall_s / BATCHES
    return Measurement(
        query=run.query,
        formulation=recorded["formulation"] if recorded else "native",
        build=run.build.id,
        spark_version=run.build.version,
        conf_profile="default",
        application_id=f"app-{run.started:%Y%m%d%H%M%S}-{run.number:04d}",
        start=start,
        end=start + wall_s,
        input_rows=EVENTS,
        output_rows=EVENTS // 100,
        digest="e" * 16,
        digest_kind="sum64(xxhash64)",
        late_rows=0,
        state_rows_max=state_bytes // 90,
        state_rows_final=state_bytes // 180,
        state_bytes_max=state_bytes,
        state_commit_ms=40.0,
        plan_skeleton_hash=_plan(recorded, run.traced > 1)["skeleton_hash"] if recorded else "",
        exchanges=recorded["exchanges"] if recorded else 0,
        stateful_operators=stateful,
        events=EVENTS,
        wall_s=wall_s,
        cores=CORES,
        cpu_s=cpu_s,
        cpu_executors_s=cpu_s,
        cpu_python_s=0.0,
        cpu_driver_s=6.0,
        cpu_application_s=cpu_s + 14,
        throughput=EVENTS / wall_s,
        throughput_per_core=EVENTS / cpu_s,
        basis=Basis.STEADY,
        cpu_s_per_mevent=run.figure,
        cpu_s_per_mevent_steady=run.figure,
        cpu_s_per_mevent_application=run.figure + 14 * 1e6 / EVENTS,
        warmup_batches=2,
        steady_events=int(EVENTS * steady),
        steady_wall_s=wall_s * steady,
        steady_cpu_s=cpu_s * steady,
        steady_throughput=EVENTS / wall_s,
        steady_throughput_per_core=EVENTS / cpu_s,
        batches=BATCHES,
        batch_ms_p50=batch_ms,
        batch_ms_p95=batch_ms * 1.2,
        batch_ms_p99=batch_ms * 1.4,
        hosts=HOSTS,
        sampling_interval_s=1.0,
        sampler_cores=0.003,
        other_cores=0.02,
        steal_cores=0.0,
        figures={TASK_CPU: run.task_figure},
    )


def _batches(measurement: Measurement) -> list[dict[str, object]]:
    """Return the batches of a repetition; the first one is slow."""
    usual_ms = measurement.batch_ms_p50
    return [
        {
            "id": number,
            "phase": "data",
            "input_rows": EVENTS // BATCHES,
            "duration_ms": round(usual_ms * (2.2 if number == 0 else 1 + 0.1 * math.sin(number))),
            "state_rows": measurement.state_rows_max * (number + 1) // BATCHES,
            "state_bytes": measurement.state_bytes_max * (number + 1) // BATCHES,
        }
        for number in range(BATCHES)
    ]


def _series(measurement: Measurement, host: str) -> CpuSeries:
    """Return the CPU time of a repetition on one of its hosts."""
    wall_s, share = measurement.wall_s, measurement.cpu_s / len(HOSTS)
    steps = [number / (_READINGS - 1) for number in range(_READINGS)]
    times = tuple(round(measurement.start + wall_s * step, 3) for step in steps)
    used = tuple(share * (step + 0.01 * math.sin(40 * step)) for step in steps)
    nothing = (0.0,) * _READINGS
    return CpuSeries(host, wall_s / _READINGS, times, used, nothing, None, used, nothing, 1, 0.003)


def _plan(recorded: Mapping[str, Any], changed: bool) -> dict[str, str]:
    """Return a recorded plan; a plan that has changed sorts before its first operator."""
    plan = recorded["plan"]
    text, skeleton = list(plan["text"]), list(plan["skeleton"])
    if changed:
        text = [
            text[0],
            "  Sort [window_start ASC NULLS FIRST], true",
            *(f"  {line}" for line in text[1:]),
        ]
        skeleton = [skeleton[0], "  Sort", *(f"  {line}" for line in skeleton[1:])]
    name = plan["skeleton_hash"]
    return {
        "text": "\n".join(text),
        "skeleton": "\n".join(skeleton),
        "skeleton_hash": f"{name[:-1]}s" if changed else name,
    }


def _parts(run: SimulatedRun, recorded: Mapping[str, Any], cpu_s: float) -> list[Part]:
    """Return the parts of a repetition: one operator has the whole cost of a traced change."""
    parts = [
        Part(**{**part, "covers": tuple(part.get("covers", ()))}) for part in recorded["parts"]
    ]
    total = sum(part.cpu_s or 0 for part in parts)
    if not total:
        return []
    usual = cpu_s / run.traced
    first = next(
        (part.place for part in parts if part.name == _SLOWER_PART and part.kind == OPERATOR), None
    )
    return [
        part
        if part.cpu_s is None
        else replace(
            part,
            cpu_s=part.cpu_s / total * usual + (cpu_s - usual if part.place == first else 0),
        )
        for part in parts
    ]
