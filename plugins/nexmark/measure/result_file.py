"""The result file of a query run (``run_query.py --result``, schema version 1), typed."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, TypeVar

from nexmark.measure.samples import MeasurementError

SCHEMA_VERSION = 1

T = TypeVar("T")


@dataclass(frozen=True)
class ResultBatch:
    """One micro-batch; ``start`` and ``end`` in epoch seconds, ``duration_ms`` as Spark tells."""

    number: int
    is_data: bool
    start: float
    end: float
    input_rows: int
    duration_ms: float


@dataclass(frozen=True)
class RunFacts:
    """The result file of a run; times in epoch seconds, sizes in bytes."""

    query: str
    formulation: str
    build: str | None
    spark_version: str
    conf_profile: str
    application_id: str
    start: float
    end: float
    input_rows: int
    output_rows: int
    digest: str | None
    digest_kind: str | None
    late_rows: int
    state_rows_max: int
    state_rows_final: int
    state_bytes_max: int
    state_commit_ms: float
    plan_skeleton_hash: str
    exchanges: int
    stateful_operators: int


@dataclass(frozen=True)
class RunResult(RunFacts):
    """The facts of a run, with its plan, its batches and how many events it was to read."""

    events: int | None
    batches: tuple[ResultBatch, ...]
    plan_text: str
    plan_skeleton: str


def parse_result(result: Mapping[str, Any], source: str = "result") -> RunResult:
    """Return the typed result; MeasurementError naming the field that is missing or wrong."""
    take = _Taker(result, source)
    version = take("schema_version", int)
    if version != SCHEMA_VERSION:
        raise MeasurementError(
            f"{source}: schema_version {version}, this package reads {SCHEMA_VERSION};"
            " run the query with the jobs of the same package"
        )
    events = result.get("workload", {}).get("events")
    digest = result.get("digest")
    parsed = RunResult(
        query=take("query", str),
        formulation=take("formulation", str),
        build=result.get("build"),
        spark_version=take("spark_version", str),
        conf_profile=take("conf_profile", str),
        application_id=take("application_id", str),
        start=take.instant("start"),
        end=take.instant("end"),
        events=events,
        input_rows=take("input_rows", int),
        output_rows=take("output_rows", int),
        digest=digest,
        digest_kind=result.get("digest_kind") if digest else None,
        late_rows=take("late_rows", int),
        batches=tuple(_batch(x, f"{source}: batches") for x in take("batches", list)),
        state_rows_max=take("state.rows_max", int),
        state_rows_final=take("state.rows_final", int),
        state_bytes_max=take("state.bytes_max", int),
        state_commit_ms=take.number("state.commit_ms_total"),
        plan_text=take("plan.text", str),
        plan_skeleton=take("plan.skeleton", str),
        plan_skeleton_hash=take("plan.skeleton_hash", str),
        exchanges=take("plan.exchanges", int),
        stateful_operators=take("plan.stateful_operators", int),
    )
    _check(parsed, source)
    return parsed


def _check(result: RunResult, source: str) -> None:
    if result.end <= result.start:
        raise MeasurementError(f"{source}: it ended before it started; check the driver's clock")
    if result.input_rows <= 0:
        raise MeasurementError(f"{source}: it read no events; see the log of the query")
    if result.events is not None and result.events != result.input_rows:
        raise MeasurementError(
            f"{source}: it read {result.input_rows:,} of {result.events:,} events;"
            " see the log of the query"
        )


def _batch(batch: Mapping[str, Any], source: str) -> ResultBatch:
    take = _Taker(batch, source)
    return ResultBatch(
        number=take("id", int),
        is_data=take("phase", str) == "data",
        start=take.instant("start"),
        end=take.instant("end"),
        input_rows=take("input_rows", int),
        duration_ms=take.number("duration_ms"),
    )


class _Taker:
    """Takes fields by dotted name and checks their types."""

    def __init__(self, record: Mapping[str, Any], source: str) -> None:
        self._record = record
        self._source = source

    def __call__(self, name: str, kind: type[T]) -> T:
        value: Any = self._record
        for part in name.split("."):
            value = value.get(part) if isinstance(value, Mapping) else None
        if not isinstance(value, kind) or isinstance(value, bool):
            raise MeasurementError(
                f"{self._source}: {name} is {value!r}, {kind.__name__} expected;"
                " run the query with the jobs of the same package"
            )
        return value

    def number(self, name: str) -> float:
        try:
            return float(self(name, int))
        except MeasurementError:
            return self(name, float)

    def instant(self, name: str) -> float:
        text = self(name, str)
        try:
            moment = datetime.fromisoformat(text)
        except ValueError as error:
            raise MeasurementError(f"{self._source}: {name}: not a time: {text!r}") from error
        if moment.tzinfo is None:
            raise MeasurementError(f"{self._source}: {name}: {text!r} has no time zone, Z expected")
        return moment.timestamp()


def data_batches(batches: Sequence[ResultBatch]) -> list[ResultBatch]:
    """Return the data batches in order, without the batches that mark the end of the input."""
    return sorted((batch for batch in batches if batch.is_data), key=lambda batch: batch.number)
