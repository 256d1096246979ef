"""An order-free digest of a query's rows, computed while the query runs.

Every row is hashed (xxhash64 over all columns, computed inside the generated code of the query's
last stage); the digest is the sum of the hashes modulo 2^64. A sum, unlike an exclusive or, also
sees rows that come in pairs. The two halves of the hash are summed apart, because the sum of whole
ones overflows, which newer Sparks report as an error. A micro-batch may hold 2^31 rows.

xxhash64 passes over NULL, so two rows that differ only in which of two columns is NULL collide.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from pyspark.sql import DataFrame, Observation
from pyspark.sql import functions as F

KIND = "sum64(xxhash64)"
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
    hashed = frame.withColumn(_HASH, F.xxhash64(*frame.columns))
    return hashed.observe(
        by,
        F.count(F.lit(1)).alias("rows"),
        F.sum(F.col(_HASH).bitwiseAND(_MASK)).alias("low"),
        F.sum(F.shiftrightunsigned(F.col(_HASH), _HALF)).alias("high"),
    ).drop(_HASH)


def combine(batches: Iterable[Mapping[str, int | None]]) -> str:
    """The digest, 16 hexadecimal digits, of all batches' observed metrics."""
    total = sum((m.get("low") or 0) + ((m.get("high") or 0) << _HALF) for m in batches)
    return format(total % (1 << 64), "016x")
