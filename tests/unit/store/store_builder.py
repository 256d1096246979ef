"""Small builders of records, so that a test states only what matters to it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, get_args, get_type_hints

from sqlalchemy import event

from nexmark.measure.cpu_series import CpuSeries
from nexmark.measure.measurement import Measurement
from nexmark.model import Mode, Value
from nexmark.store import (
    BuildRecord,
    NightRecord,
    RepetitionRecord,
    Store,
    ValidationRecord,
)
from nexmark.verdict.verdict import Verdict

DAG = "nexmark_spark_4_3_0"
STARTED = datetime(2026, 11, 21, 4, tzinfo=UTC)
_BY_TYPE: dict[Any, Any] = {int: 1, float: 1.0, str: "x", tuple[str, ...]: ("nexmark02",)}
_BY_TYPE |= {Mapping[str, float]: {}, type(None): None}


@contextmanager
def statements(store: Store) -> Iterator[list[str]]:
    """Yield a list that takes every SQL statement the store executes."""
    made: list[str] = []

    def taken(*arguments: Any) -> None:
        made.append(arguments[2])

    event.listen(store._engine, "before_cursor_execute", taken)
    yield made
    event.remove(store._engine, "before_cursor_execute", taken)


def measurement(steady: float | None = 10.0, **changes: Any) -> Measurement:
    """A measurement in which every figure is 1, but for the metric of record."""
    values = {
        name: next(_BY_TYPE[x] for x in (kind, *get_args(kind)) if x in _BY_TYPE)
        for name, kind in get_type_hints(Measurement).items()
    }
    basis = "application" if steady is None else "steady"
    metric = {
        "latency": None,
        "basis": basis,
        "cpu_s_per_mevent": 20.0 if steady is None else steady,
        "cpu_s_per_mevent_steady": steady,
        "cpu_s_per_mevent_application": 20.0,
    }
    return Measurement(**{**values, **metric, **changes})


def night(number: int = 1, **changes: Any) -> NightRecord:
    values: dict[str, Any] = {
        "dag_id": DAG,
        "run_id": f"manual__2026-11-{20 + number}",
        "engine": "spark-4.3.0",
        "workload": "smoke",
        "cluster": "local",
        "build": BuildRecord("sha-430", "4.3.0", "pypi:4.3.0"),
        "jobs": "sha-jobs",
        "workload_spec": {"events": 100_000, "seed": 1, "repetitions": 1},
        "cluster_spec": {"executors": 1, "master_port": 17077},
        "queries": ["q0", "q5"],
        "repetitions": 1,
        "directory": Path("runs") / str(number),
        "started": STARTED + timedelta(days=number),
    }
    return NightRecord(**{**values, **changes})


def repetition(run: str, query: str, number: int = 1, **changes: Any) -> RepetitionRecord:
    if not changes.keys() & {"measurement", "failed", "invalid"}:
        changes["measurement"] = measurement()
    return RepetitionRecord(run, query, number, **changes)


def record(store: Store, record: NightRecord, figure: float = 10.0, **wrong: str) -> str:
    """Record a night, one right repetition per query, but for the wrong ones; return its name."""
    store.record_night(record)
    for query in record.queries:
        row = repetition(record.run, query, measurement=measurement(figure))
        store.record_repetition(row)
        failures = [wrong[query]] if query in wrong else []
        validation = ValidationRecord(record.run, query, not failures, failures, 9, {"rows": 5})
        store.record_validation(validation)
    return record.run


def by_bounds(
    query: str,
    value: Value,
    reason: str = "r",
    *,
    metric: str = "m",
    version: int = 1,
    ratio: float | None = None,
    **figures: Any,
) -> Verdict:
    """A verdict by bounds."""
    said = (query, metric, value, reason, Mode.BOUNDS, version)
    return Verdict("", *said, ratio=ratio, bound=1.1, **figures)


def series(host: str = "nexmark02") -> tuple[CpuSeries, Path]:
    times = (1000.0, 1001.001, 1002.0)
    cpu = CpuSeries(
        host,
        1.0,
        times,
        (0.0, 1.5, 3.25),
        (0.0, 0.0, 0.1),
        None,
        (9.0, 10.0, 12.5),
        None,
        1,
        0.001,
    )
    return cpu, Path(f"q5/samples-{host}.jsonl")
