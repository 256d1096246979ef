"""Turn Spark's reports of micro-batches into records, and digest the rows of a query.

The digest does not depend on the order of rows.

Every row is hashed (xxhash64 over all columns, computed inside the generated code of the query's
last stage); the digest is the sum of the hashes modulo 2^64. A sum, unlike an exclusive or, also
sees rows that come in pairs. The two halves of the hash are summed apart, because the sum of whole
ones overflows, which newer Sparks report as an error. A micro-batch may hold 2^31 rows.

xxhash64 passes over NULL, so two rows that differ only in which of two columns is NULL collide.
Spark hashes no MAP: in its place, its entries are hashed in the order of their keys.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from pyspark.sql import Column, DataFrame, Observation
from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType, DataType, MapType, StructType

from nexmark_jobs.state_metrics import LOAD_MS, state_metric

DIGEST_KIND = "sum64(xxhash64)"
"""Names the algorithm; digests of different kinds do not compare."""

OBSERVATION = "nexmark_output"
"""Name under which the counts of a batch appear in its progress."""

_HASH = "__row_hash"
_HALF = 32
_MASK = (1 << _HALF) - 1


def observe(frame: DataFrame, *, digest: bool, by: str | Observation = OBSERVATION) -> DataFrame:
    """Count (and with `digest` hash) the rows that `frame` yields, leaving them as they are."""
    if not digest:
        return frame.observe(by, F.count(F.lit(1)).alias("rows"))
    columns = [_without_maps(F.col(_quoted(each.name)), each.dataType) for each in frame.schema]
    hashed = frame.withColumn(_HASH, F.xxhash64(*columns))
    return hashed.observe(
        by,
        F.count(F.lit(1)).alias("rows"),
        F.sum(F.col(_HASH).bitwiseAND(_MASK)).alias("low"),
        F.sum(F.shiftrightunsigned(F.col(_HASH), _HALF)).alias("high"),
    ).drop(_HASH)


def _without_maps(column: Column, kind: DataType) -> Column:
    """Return a column that is equal for equal maps, in a type that Spark hashes.

    A column without maps stays as it is, so that its hash does.

    Args:
        column: the column, or a part of one.
        kind: its type.
    """
    if not _has_map(kind):
        return column
    if isinstance(kind, MapType):
        if _has_map(values := kind.valueType):
            column = F.transform_values(column, lambda _, value: _without_maps(value, values))
        return F.sort_array(F.map_entries(column))
    if isinstance(kind, ArrayType):
        elements = kind.elementType
        return F.transform(column, lambda element: _without_maps(element, elements))
    assert isinstance(kind, StructType)
    fields = [_without_maps(column.getField(each.name), each.dataType) for each in kind]
    return F.struct(*fields)


def _has_map(kind: DataType) -> bool:
    """Tell whether a type is a MAP, or has one in it."""
    if isinstance(kind, ArrayType):
        return _has_map(kind.elementType)
    if isinstance(kind, StructType):
        return any(_has_map(each.dataType) for each in kind)
    return isinstance(kind, MapType)


def _quoted(name: str) -> str:
    """Return the name of a column in backticks."""
    return f"`{name.replace('`', '``')}`"


def combine(batches: Iterable[Mapping[str, int | None]]) -> str:
    """Return the digest, 16 hexadecimal digits, of all batches' observed metrics."""
    total = sum((m.get("low") or 0) + ((m.get("high") or 0) << _HALF) for m in batches)
    return format(total % (1 << 64), "016x")


@dataclass(frozen=True)
class StatefulOperator:
    """A stateful operator after a batch; sizes in rows and bytes."""

    name: str
    rows: int
    bytes: int
    commit_ms: int


@dataclass(frozen=True)
class Batch:
    """A finished micro-batch; times are UTC."""

    id: int
    phase: str
    start: datetime
    end: datetime
    input_rows: int  # events of the input, without sentinels
    duration_ms: int
    steps_ms: dict[str, int]
    watermark: str | None
    operators: tuple[StatefulOperator, ...] = ()
    observed: dict[str, int | None] = field(default_factory=dict)  # the counts of `observe`
    state_rows: int = 0  # in all state stores after the batch
    state_bytes: int = 0
    state_commit_ms: int = 0  # summed over tasks
    state_restore_ms: int | None = None  # RocksDB loaded stores, over tasks; None: not reported
    late_rows: int = 0  # dropped, because they were older than the watermark


def is_batch(progress: Mapping[str, Any]) -> bool:
    """Return whether a batch ran; a trigger without new data reports progress too."""
    return "addBatch" in progress.get("durationMs", {})


def watermark(progress: Mapping[str, Any]) -> str | None:
    """Return the watermark the batch ran with, as UTC ISO text; None where there is none."""
    text = progress.get("eventTime", {}).get("watermark")
    return None if text is None else str(text)


def late_rows(progress: Mapping[str, Any]) -> int:
    """Return how many rows a batch dropped because they came behind the watermark."""
    return sum(
        operator.get("numRowsDroppedByWatermark", 0)
        for operator in progress.get("stateOperators", [])
    )


def batch(progress: Mapping[str, Any], phase: str, input_rows: int) -> Batch:
    """Return the record of a finished batch."""
    start = datetime.fromisoformat(progress["timestamp"])
    steps = {name: int(value) for name, value in progress["durationMs"].items()}
    duration = steps["triggerExecution"]
    stateful = progress.get("stateOperators", [])
    operators = tuple(
        StatefulOperator(
            operator["operatorName"],
            operator["numRowsTotal"],
            operator["memoryUsedBytes"],
            operator.get("commitTimeMs", 0),
        )
        for operator in stateful
    )
    loads = (state_metric(operator, LOAD_MS) for operator in stateful)
    restored = [ms for ms in loads if ms is not None]
    return Batch(
        id=progress["batchId"],
        phase=phase,
        start=start,
        end=start + timedelta(milliseconds=duration),
        input_rows=input_rows,
        duration_ms=duration,
        steps_ms=steps,
        watermark=watermark(progress),
        operators=operators,
        observed=dict(progress.get("observedMetrics", {}).get(OBSERVATION, {})),
        state_rows=sum(operator.rows for operator in operators),
        state_bytes=sum(operator.bytes for operator in operators),
        state_commit_ms=sum(operator.commit_ms for operator in operators),
        state_restore_ms=sum(restored) if restored else None,
        late_rows=late_rows(progress),
    )
