"""`nexmark bench queries --hot-methods` records the threads that compute."""

from __future__ import annotations

from pathlib import Path

from pyspark.sql import SparkSession

from bench.hot_methods import recorded, write


def test_what_a_session_computes_is_recorded(spark: SparkSession, tmp_path: Path) -> None:
    with recorded(spark) as counts:
        spark.range(30_000_000).selectExpr("bit_xor(xxhash64(id, id + 1))").collect()
    assert any("XXH64" in frame for stack in counts for frame in stack)
    write(tmp_path / "new", "q0", counts)
    assert "XXH64" in (tmp_path / "new" / "q0.txt").read_text()
