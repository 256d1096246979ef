"""Compare what a query costs from Kafka and from the generator: `nexmark bench kafka-source`.

Starts a broker, fills a topic with generated events, and prints the CPU time of the client that
fills it. Then each query reads the topic, and the same events from the generator, in a JVM of its
own: once as a warm-up, and once to be measured, without the first two batches. To show where the
time goes, the JVM also only reads the topic, and then reads and parses it. CPU is user and system
time of the JVM (Linux only). Prints the bars; the exit code is 1 if one is missed.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path

import pyspark
from pyspark.sql import DataFrame, SparkSession

from bench import queries
from bench.arguments import Parser, whole
from bench.gate import GateBar
from bench.jvm_clock import CpuRecorder, JvmClock
from nexmark.config import paths
from nexmark.kafka import broker
from nexmark.kafka.filling import fill
from nexmark.kafka.jars import connector
from nexmark.kafka.topics import KafkaCluster
from nexmark.terminal import show_line
from nexmark_jobs.options import Options, parse
from nexmark_jobs.queries import QUERIES
from nexmark_jobs.run_query import run
from nexmark_jobs.sources import CONSUMER
from nexmark_jobs.sources.kafka import parsed

TOPIC, PARTITIONS = "nexmark", 8
BATCH = 200_000
"""Events per batch: with smaller batches, the fixed cost of a batch would weigh most."""
Q0, FILL = 110, 400
"""The bars: thousands of events per CPU-second."""


@dataclass(frozen=True)
class SourceRates:
    """Thousands of events per CPU-second of one query, and of reading (and parsing) alone."""

    kafka: float
    datagen: float
    read: float
    parse: float


def measured(given: argparse.Namespace, servers: str, jars: str, name: str) -> SourceRates:
    """Measure a query in this process.

    Args:
        given: The options of the command line.
        servers: The bootstrap servers of the broker.
        jars: Spark's Kafka connector, as `spark.jars` takes it.
        name: The query.
    """
    given.conf = [*given.conf, ("spark.jars", jars)]
    spark = queries._session(given)
    try:
        source = ["--source", f"kafka:{TOPIC}", "--bootstrap-servers", servers]
        kafka = _steady(spark, _options(name, source))
        source = ["--source", "datagen", "--events", str(given.events)]
        datagen = _steady(spark, _options(name, [*source, "--tps", "10000", "--seed", "1"]))
        raw = spark.read.format("kafka").option("subscribe", TOPIC)
        raw = raw.options(**{f"kafka.{key}": value for key, value in CONSUMER.items()})
        topic = raw.option("kafka.bootstrap.servers", servers).load()
        read, parse_too = (_of(spark, each, given.events) for each in (topic, parsed(topic)))
        return SourceRates(kafka, datagen, read, parse_too)
    finally:
        spark.stop()


def _steady(spark: SparkSession, options: Options) -> float:
    """Return thousands of events per CPU-second of a query, in the second of two runs."""
    for _ in range(2):
        with CpuRecorder(JvmClock(spark)) as recorder:
            result = run(spark, options, quiet=True)
    return queries.rates(recorder, result).steady


def _of(spark: SparkSession, frame: DataFrame, events: int) -> float:
    """Return thousands of events per CPU-second when a frame is read the second time."""
    clock = JvmClock(spark)
    for _ in range(2):
        before = clock.cpu_s()
        frame.write.format("noop").mode("overwrite").save()
    return events / 1000 / (clock.cpu_s() - before)


def _options(name: str, source: Sequence[str]) -> Options:
    arguments = ["--query", name, *source, "--sink", "noop", "--digest", "off"]
    return parse([*arguments, "--rows-per-batch", str(BATCH), "--result", os.devnull])


def report(rates: Mapping[str, SourceRates], filled: float) -> list[GateBar]:
    """Print a table of the rates by query, and return the bars.

    `filled` is in thousands of events per CPU-second of the client that filled the topic.
    """
    print(f"\nfill: {filled:.0f} K events per CPU-second of the client\n")
    print(f"{'':5}{'Kafka':>8}{'datagen':>9}{'ratio':>7}{'read only':>11}{'and parsed':>12}")
    for name, each in rates.items():
        line = f"{name:5}{each.kafka:8.0f}{each.datagen:9.0f}{each.datagen / each.kafka:7.1f}"
        print(f"{line}{each.read:11.0f}{each.parse:12.0f}")
    bars = [GateBar("fill, K events per CPU-second of the client", filled, FILL, at_least=True)]
    if "q0" in rates:
        bars.append(GateBar("q0, K events per CPU-second", rates["q0"].kafka, Q0, at_least=True))
    return bars


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; return 0, or 1 if a bar is missed."""
    parser = Parser(
        prog="nexmark bench kafka-source", description=(__doc__ or "").split("\n", 1)[0]
    )
    parser.add_argument("--queries", default="q0,q5,q9,q20")
    parser.add_argument("--events", type=whole(5 * BATCH, 10**8), default=2_000_000)
    parser.add_argument("--conf", action="append", default=[], type=queries._conf)
    given = parser.parse_args(argv)
    given.queries = given.queries.split(",")
    if unknown := [name for name in given.queries if name not in QUERIES]:
        parser.error(f"--queries: no query {unknown[0]!r}")
    given.cores, given.heap, given.profile = 2, "6g", "default"
    brokers, rates = broker.of_this_machine("latency"), {}
    jars = ",".join(map(str, connector(pyspark.__version__, show_line)))
    try:
        servers = brokers.up(1, broker.LATENCY_PORT, show_line)
        with tempfile.TemporaryDirectory() as directory:
            script = paths.repository() / "nexmark_jobs" / "dump_events.py"
            words = ["--events", str(given.events), "--tps", "10000", "--format", "json"]
            events = Path(directory) / "events"
            subprocess.run([sys.executable, script, *words, "--out", events], check=True)
            filled = fill(KafkaCluster(servers), events, TOPIC, PARTITIONS)
        show_line(str(filled))
        for name in given.queries:
            with ProcessPoolExecutor(1, get_context("spawn")) as process:
                rates[name] = process.submit(measured, given, servers, jars, name).result()
            show_line(f"{name}: {rates[name].kafka:.0f} K events per CPU-second")
    finally:
        brokers.down()
    load = f"load {os.getloadavg()[0]:.1f} at the end"
    print(f"\nSpark {pyspark.__version__}, {given.events:,} events, {load}; K per CPU-second")
    bars = report(rates, filled.events / filled.cpu_s / 1000)
    print("\n".join(["", *map(str, bars)]))
    return 0 if all(bar.met for bar in bars) else 1


if __name__ == "__main__":
    sys.exit(main())
