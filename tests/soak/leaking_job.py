"""A job of a person's own over Nexmark's bids, and a changed version that loses by running on.

The listener of the changed version keeps a buffer after each batch, starts a thread that does not
end, and leaves a file open, all in the JVM of the driver. Its `foreachBatch` caches a frame and
does not release it, and computes a number that gets longer with the number of the batch.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

import yaml

JOB = "passed_bids"
STEADY = """\
def build(spark, tables):
    return tables["bid"].select("auction", "bidder", "price")
"""
LEAKING = """\
from pyspark.sql.streaming import StreamingQueryListener

BYTES = 200_000


class Keeper(StreamingQueryListener):
    def __init__(self, jvm):
        self.jvm, self.kept = jvm, []

    def onQueryProgress(self, event):
        java = self.jvm.java
        self.kept.append(java.nio.ByteBuffer.allocate(BYTES))
        self.kept.append(java.util.Timer("reporter", True))
        self.kept.append(java.io.FileInputStream("/etc/hostname"))

    def onQueryStarted(self, event):
        pass

    def onQueryIdle(self, event):
        pass

    def onQueryTerminated(self, event):
        pass


def build(spark, tables):
    spark.streams.addListener(Keeper(spark._jvm))
    return tables["bid"].select("auction", "bidder", "price")


def each(rows, batch):
    rows.sparkSession._jvm.java.math.BigInteger.valueOf(3).pow(12 * batch**3)
    padding = "repeat(sha2(CAST(price AS STRING), 512), 50) AS padding"
    return rows.selectExpr("*", padding).persist().drop("padding")
"""
#: What is counted and grows, with what it is made up of.
COUNTED = {
    "live heap of the driver": r" byte\[\] \d\d %",
    "live heap of the executor": r" byte\[\] \d\d %",
    "threads of the driver": r" reporter \d+ %",
    "open files of the driver": r" /etc \d+ %",
}
#: The same with the batch that gets dearer.
GROWS = {**COUNTED, "CPU time of a batch": r" since batch \d+, baseline "}


def write_steady(jobs: Path) -> None:
    """Write the job into the directory of a configuration."""
    _write(jobs, STEADY)


def write_leaking(directory: Path) -> None:
    """Write the changed version into a directory of its own."""
    directory.mkdir()
    _write(directory, LEAKING, foreach_batch="each")


def _write(directory: Path, program: str, **keys: str) -> None:
    job = {"tables": "nexmark", "python": f"{JOB}.py:build", "reference": f"{JOB}.duckdb.sql"}
    (directory / f"{JOB}.yaml").write_text(yaml.safe_dump(job | keys))
    (directory / f"{JOB}.duckdb.sql").write_text("SELECT auction, bidder, price FROM bid")
    (directory / f"{JOB}.py").write_text(program)


def assert_names(reason: str, grows: Mapping[str, str]) -> None:
    """Assert that the reason of a verdict names what grows, with its causes.

    On a busy machine something else may have grown, too.
    """
    start, *_ = reason.partition(": ")
    assert start == "grows in 2 pairs", reason
    grown = reason.partition(": ")[2].split("; ")
    by_name = {line.partition(" +")[0]: line for line in grown}
    assert by_name.keys() >= grows.keys(), reason
    for name, cause in grows.items():
        assert re.search(cause, by_name[name]), by_name[name]
