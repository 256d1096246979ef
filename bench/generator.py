"""Measure the generator: events per CPU-second of the whole JVM, in steady state.

Streams each case into a noop sink, as a query does, in local mode. CPU is user and system time of
the JVM, which is driver and executor, from the end of the warm-up batches to the end of the last
batch. It is read from /proc, so this works on Linux only. `events` counts events of all kinds, as
the throughput of a query does, although a case of bids generates only 46 of 50 events.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

if __name__ == "__main__":  # spark-submit puts this file's own directory first
    sys.path[0] = str(Path(__file__).resolve().parent.parent)

from pyspark.sql import DataFrame, SparkSession

from bench.jvm_clock import JvmClock
from nexmark_jobs.generator import GeneratorConfig
from nexmark_jobs.sources.datagen import Datagen

_ENDLESS = 10**12
_COLUMNS = {
    "bids, all columns": ("auction", "bidder", "price", "channel", "url", "dateTime", "extra"),
    "bids, columns of q0": ("auction", "bidder", "price", "dateTime", "extra"),
    "bids, auction and price": ("auction", "price"),
    "bids, dateTime": ("dateTime",),
    "bids, extra": ("extra",),
    "bids, channel": ("channel",),
    "bids, url": ("url",),
}


@dataclass(frozen=True)
class GeneratorRates:
    """The CPU time and the wall-clock time of a case, in nanoseconds per event of all kinds."""

    cpu_ns: float
    wall_ns: float


def cases(source: Datagen) -> Iterator[tuple[str, DataFrame]]:
    """Yield each case: its name, and the stream that is measured."""
    bids = source.of_kind("bid")
    for name, columns in _COLUMNS.items():
        yield name, bids.select(*columns)
    yield "auctions, all columns", source.of_kind("auction").drop("n")
    yield "persons, all columns", source.of_kind("person").drop("n")


def measure(frame: DataFrame, events_per_batch: int, warm_up: int, batches: int) -> GeneratorRates:
    """Stream a case into a noop sink and measure some of its batches.

    Args:
        frame: The stream of the case.
        events_per_batch: The number of events of all kinds in a batch.
        warm_up: The number of batches that are run first and not measured.
        batches: The number of batches that are measured.
    """
    clock = JvmClock(frame.sparkSession)
    query = frame.writeStream.format("noop").trigger(processingTime="0 seconds").start()
    try:
        first = _wait_for(query, warm_up)
        cpu, wall = clock.cpu_s(), time.monotonic()
        last = _wait_for(query, first + batches)
        events = (last - first) * events_per_batch
        return GeneratorRates(
            (clock.cpu_s() - cpu) / events * 1e9, (time.monotonic() - wall) / events * 1e9
        )
    finally:
        query.stop()


def _wait_for(query: object, batches: int) -> int:
    """Wait until at least `batches` batches are done; return how many are done."""
    while True:
        progress = query._jsq.lastProgress()  # type: ignore[attr-defined]
        done = 0 if progress is None else int(progress.batchId()) + 1
        if done >= batches:
            return done
        time.sleep(0.01)


def main(arguments: Sequence[str] | None = None) -> None:
    """Print a table with a line for each case."""
    parser = argparse.ArgumentParser(prog="nexmark bench generator", description=__doc__)
    parser.add_argument("--events-per-batch", type=int, default=2_000_000, metavar="N")
    parser.add_argument("--warm-up", type=int, default=8, metavar="BATCHES")
    parser.add_argument("--batches", type=int, default=8, metavar="BATCHES")
    parser.add_argument("--cores", type=int, default=2, metavar="N")
    parser.add_argument("--only", default="", metavar="TEXT", help="cases whose name holds TEXT")
    given = parser.parse_args(arguments)
    builder = SparkSession.builder.master(f"local[{given.cores}]").appName("bench_generator")
    builder = builder.config("spark.ui.showConsoleProgress", "false")
    spark = builder.config("spark.ui.enabled", "false").getOrCreate()
    spark.sparkContext.setLogLevel("OFF")
    source = Datagen(spark, GeneratorConfig(), _ENDLESS, given.events_per_batch)
    print(f"Spark {spark.version}, {given.events_per_batch} events per batch")
    print(f"{'':28}{'CPU ns/event':>14}{'M events/CPU-s':>16}{'wall ns/event':>15}")
    for name, frame in cases(source):
        if given.only in name:
            rates = measure(frame, given.events_per_batch, given.warm_up, given.batches)
            speed = 1000 / rates.cpu_ns
            print(f"{name:28}{rates.cpu_ns:14.0f}{speed:16.2f}{rates.wall_ns:15.0f}", flush=True)
    spark.stop()


if __name__ == "__main__":
    main()
