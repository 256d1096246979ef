"""The digest of rows says whether two results are equal, whatever columns they have."""

from __future__ import annotations

import pytest
from pyspark.sql import DataFrame, Observation, SparkSession
from pyspark.sql import functions as F

from nexmark_jobs.progress import combine, observe

pytestmark = pytest.mark.spark

MAP = "map({}, {})"
ONE, OTHER = "'a', 1", "'b', 2"


def digest(frame: DataFrame) -> str:
    """The digest of a frame, computed as it is for a micro-batch."""
    observation = Observation()
    observed = observe(frame, digest=True, by=observation)
    assert observed.schema == frame.schema
    observed.write.format("noop").mode("overwrite").save()
    return combine([observation.get])


@pytest.mark.parametrize(
    "value",
    [
        "{}",
        "named_struct('of', {}, 'n', 1)",
        "array({}, {})",
        "map('outer', {})",
        "map('outer', array(named_struct('of', {})))",
    ],
)
def test_equal_maps_have_one_digest_and_others_another(spark: SparkSession, value: str) -> None:
    """The entries of equal maps may come in any order."""
    maps = (MAP.format(ONE, OTHER), MAP.format(OTHER, ONE), MAP.format("'a', 1", "'b', 3"))
    digests = [
        digest(spark.sql(f"SELECT 7 AS n, {value.replace('{}', each)} AS value")) for each in maps
    ]
    assert digests[0] == digests[1] != digests[2]


def test_no_map_and_maps_without_a_value_are_digested(spark: SparkSession) -> None:
    nothing = "CAST(NULL AS MAP<STRING, MAP<STRING, INT>>)"
    for value in (nothing, "map('a', CAST(NULL AS MAP<STRING, INT>))", f"array({nothing})"):
        assert len(digest(spark.sql(f"SELECT {value} AS value"))) == 16


def test_rows_without_maps_keep_the_digest_they_had(spark: SparkSession) -> None:
    """Digests of earlier nights go on to compare."""
    made = ["array(id) AS list", "named_struct('a', id, 'b', 'x') AS `struct of`", "1.5D AS real"]
    frame = spark.range(100).selectExpr("id", "CAST(id AS STRING) AS text", *made)
    hashes = frame.select(F.xxhash64("id", "text", "list", "`struct of`", "real")).collect()
    assert digest(frame) == format(sum(row[0] for row in hashes) % (1 << 64), "016x")
