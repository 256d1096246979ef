"""The result file of a query run (``run_query.py --result``, schema version 1), typed."""

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Any, TypeAlias

from pydantic import AliasPath, BeforeValidator, Field, TypeAdapter, ValidationError

from nexmark.measure.host_samples import MeasurementError

SCHEMA_VERSION = 1


def _instant(text: object) -> float:
    moment = datetime.fromisoformat(text) if isinstance(text, str) else None
    if moment is None or moment.tzinfo is None:
        raise ValueError("not a time with its time zone")
    return moment.timestamp()


def _at(*path: str) -> Any:
    """Return a field that is at this path in the file."""
    return Field(validation_alias=AliasPath(*path))


Instant: TypeAlias = Annotated[float, BeforeValidator(_instant)]


@dataclass(frozen=True)
class ResultBatch:
    """One micro-batch; ``start`` and ``end`` in epoch seconds, ``duration_ms`` from Spark.

    ``run`` is the run id of its streaming query, '' where the application has only one.
    """

    number: Annotated[int, _at("id")]
    phase: str
    start: Instant
    end: Instant
    input_rows: int
    duration_ms: float
    run: str = ""


@dataclass(frozen=True)
class RunFacts:
    """The result file of a run; times in epoch seconds, sizes in bytes."""

    query: str
    formulation: str
    build: str | None
    spark_version: str
    conf_profile: str
    application_id: str
    start: Instant
    end: Instant
    input_rows: int
    output_rows: int
    digest: str | None
    digest_kind: str | None
    late_rows: int
    state_rows_max: Annotated[int, _at("state", "rows_max")]
    state_rows_final: Annotated[int, _at("state", "rows_final")]
    state_bytes_max: Annotated[int, _at("state", "bytes_max")]
    state_commit_ms: Annotated[float, _at("state", "commit_ms_total")]
    plan_skeleton_hash: Annotated[str, _at("plan", "skeleton_hash")]
    exchanges: Annotated[int, _at("plan", "exchanges")]
    stateful_operators: Annotated[int, _at("plan", "stateful_operators")]


@dataclass(frozen=True)
class RunResult(RunFacts):
    """The facts of a run, its plan, its batches, and the number of events that it had to read."""

    batches: tuple[ResultBatch, ...]
    plan_text: Annotated[str, _at("plan", "text")]
    events: Annotated[int | None, _at("workload", "events")] = None

    @property
    def work(self) -> tuple[float, float]:
        """The period in which all executors have to live: from the first data batch to the end."""
        batches = data_batches(self.batches)
        return batches[0].start if batches else self.start, self.end

    def warm_up(self, batches: int) -> int:
        """Return how many data batches come before every streaming query has had `batches`.

        With one streaming query it is `batches`.
        """
        data = data_batches(self.batches)
        had, left = Counter[str](), {batch.run for batch in data}
        if len(left) < 2 or not batches:
            return batches
        for place, batch in enumerate(data):
            if not left:
                return place
            had[batch.run] += 1
            if had[batch.run] == batches:
                left.discard(batch.run)
        return len(data)


_UNKNOWN = {"build": None, "digest": None, "digest_kind": None}
"""Facts that a file may lack."""
_RESULT = TypeAdapter(RunResult)


def parse_result(result: Mapping[str, Any], source: str = "result") -> RunResult:
    """Return the typed result; MeasurementError naming the field that is missing or wrong."""
    version = result.get("schema_version")
    if version != SCHEMA_VERSION:
        raise MeasurementError(
            f"{source}: schema_version {version}, this package reads {SCHEMA_VERSION};"
            " run the query with the jobs of the same package"
        )
    try:
        # As JSON, since strict validation of Python objects accepts no dict for a dataclass.
        parsed = _RESULT.validate_json(json.dumps({**_UNKNOWN, **result}), strict=True)
    except ValidationError as error:
        first = error.errors()[0]
        value = None if first["type"] == "missing" else first["input"]
        raise MeasurementError(
            f"{source}: {'.'.join(map(str, first['loc']))} is {value!r}: {first['msg']};"
            " run the query with the jobs of the same package"
        ) from None
    if parsed.end <= parsed.start:
        raise MeasurementError(f"{source}: it ended before it started; check the driver's clock")
    if parsed.input_rows <= 0:
        raise MeasurementError(f"{source}: it read no events; see the log of the query")
    if parsed.events not in (None, parsed.input_rows):
        raise MeasurementError(
            f"{source}: it read {parsed.input_rows:,} of {parsed.events:,} events;"
            " see the log of the query"
        )
    return parsed


def data_batches(batches: Sequence[ResultBatch]) -> list[ResultBatch]:
    """Return the data batches in order, without the batches that mark the end of the input."""
    data = (batch for batch in batches if batch.phase == "data")
    return sorted(data, key=lambda batch: batch.number)
