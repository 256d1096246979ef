"""Measures every query: events per CPU-second, beside nexmark-flink. See --help.

Every query has a JVM of its own in local mode, over generated events into the noop sink; a run of
half the events comes first, for the JIT. CPU is user and system time of that JVM (Linux only).
*Steady* is from the end of the warm-up batches to the end
of the last batch of data; *with end* adds the batches behind the end of the input, in which the
windows that are still open are closed. The peer's figures have the end in them, and no digest.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from datetime import datetime
from multiprocessing import get_context
from pathlib import Path
from statistics import geometric_mean, median
from typing import Any

if __name__ == "__main__":  # spark-submit puts this file's own directory first
    sys.path[0] = str(Path(__file__).resolve().parent.parent)

import pyspark
from pyspark.sql import SparkSession

from nexmark_jobs.jvm_clock import CpuRecorder, JvmClock
from nexmark_jobs.options import Options, parse
from nexmark_jobs.queries import QUERIES
from nexmark_jobs.run_query import run

PEER = {
    **{"q0": 572, "q1": 576, "q2": 644, "q3": 404, "q4": 149, "q5": 253, "q7": 104, "q8": 438},
    **{"q9": 89, "q10": 225, "q11": 285, "q12": 376, "q13": 405, "q14": 529, "q15": 177, "q16": 29},
    **{"q17": 333, "q18": 190, "q19": 156, "q20": 148, "q21": 214, "q22": 392},
}
"""K events per CPU-second of nexmark-flink 6b3646c as shipped, on Flink 2.0.1 with 2 slots and heap
state: 5 M events (q16: 1 M) at tps 10 M, one run each, on a box of 2 cores and 24 GB. It cannot run
q6, and q23 was not measured."""

WARM_UP = 2
"""Batches that do not count, after a whole run that does not."""


def rates(recorder: CpuRecorder, result: dict[str, Any]) -> tuple[float, float]:
    """K events per CPU-second of a run: steady, and with the end of the input."""
    batches = result["batches"]
    data = [batch for batch in batches if batch["phase"] == "data"]
    events = sum(batch["input_rows"] for batch in data[WARM_UP:]) / 1000

    def cpu_s(batch: dict[str, Any]) -> float:
        return recorder.cpu_s(datetime.fromisoformat(batch["end"]).timestamp())

    start = cpu_s(data[WARM_UP - 1])
    return events / (cpu_s(data[-1]) - start), events / (cpu_s(batches[-1]) - start)


def main(arguments: Sequence[str]) -> int:
    """Print a table; returns the exit code."""
    given = _arguments(arguments)
    load = os.getloadavg()[0]
    print(
        f"Spark {pyspark.__version__}, profile {given.profile}, {given.events} events at tps "
        f"{given.tps} in batches of {given.rows_per_batch}, digest {given.digest}, "
        f"median of {given.repetitions}, load {load:.1f} at the start"
    )
    print(f"{'K events/CPU-s':25}{'steady':>9}{'with end':>10}{'peer':>7}{'steady / peer':>15}")
    ratios: dict[str, tuple[float, float]] = {}
    for name in given.queries:
        formulation = QUERIES[name].formulation(pyspark.__version__).name
        measured = [_in_new_process(given, name) for _ in range(given.repetitions)]
        steady, with_end = (median(m[i] for m in measured) for i in (0, 1))
        peer = PEER.get(name)
        line = f"{name:5}{formulation:20}{steady:9.0f}{with_end:10.0f}"
        if peer:
            ratios[name] = (steady / peer, with_end / peer)
            line += f"{peer:7}{steady / peer:15.2f}"
        print(line, flush=True)
    if ratios:
        for i, label in enumerate(("steady", "with end")):
            column = [ratio[i] for ratio in ratios.values()]
            worst = min(zip(column, ratios, strict=True))
            print(
                f"{label}: geometric mean {geometric_mean(column):.2f} of the peer over "
                f"{len(column)} queries, lowest {worst[0]:.2f} ({worst[1]})"
            )
    return 0


def _in_new_process(given: argparse.Namespace, name: str) -> tuple[float, float]:
    """Measure in a process of its own: the state of an earlier query would burden the heap."""
    with ProcessPoolExecutor(max_workers=1, mp_context=get_context("spawn")) as process:
        return process.submit(_measure, given, name).result()


def _measure(given: argparse.Namespace, name: str) -> tuple[float, float]:
    spark = _session(given)
    run(spark, _options(given, name, given.events // 2), quiet=True)
    with CpuRecorder(JvmClock(spark)) as recorder:
        result = run(spark, _options(given, name, given.events), quiet=True)
    spark.stop()
    return rates(recorder, result)


def _options(given: argparse.Namespace, name: str, events: int) -> Options:
    return parse(
        [
            *("--query", name, "--source", "datagen", "--events", str(events)),
            *("--tps", str(given.tps), "--seed", "1", "--sink", "noop"),
            *("--rows-per-batch", str(given.rows_per_batch)),
            *("--digest", given.digest, "--result", os.devnull),
        ]
    )


def _session(given: argparse.Namespace) -> SparkSession:
    builder = SparkSession.builder.master(f"local[{given.cores}]").appName("bench_queries")
    builder = builder.config("spark.ui.showConsoleProgress", "false")
    builder = builder.config("spark.ui.enabled", "false").config("spark.driver.memory", "8g")
    profile = Path(__file__).resolve().parents[1] / "include" / "conf" / "spark"
    for line in (profile / f"{given.profile}.conf").read_text().splitlines():
        if line.strip() and not line.startswith("#"):
            key, value = line.split(maxsplit=1)
            # In local mode the driver is the executor.
            builder = builder.config(key.replace("spark.executor.", "spark.driver."), value)
    builder = builder.config("spark.sql.shuffle.partitions", given.cores)
    for key, value in given.conf:
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("OFF")
    return spark


def _arguments(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="bench_queries.py", description=__doc__)
    standard = ",".join(name for name in QUERIES if name != "q14_python_udf")
    parser.add_argument("--queries", default=standard, metavar="q0,q1", type=_names)
    parser.add_argument("--events", type=int, default=5_000_000, metavar="N")
    parser.add_argument("--rows-per-batch", type=int, default=500_000, metavar="N")
    parser.add_argument("--tps", type=int, default=10_000_000, metavar="N")
    parser.add_argument("--repetitions", type=int, default=1, metavar="N")
    parser.add_argument("--digest", choices=("on", "off"), default="off")
    parser.add_argument("--profile", default="default", help="include/conf/spark/PROFILE.conf")
    parser.add_argument(
        "--conf",
        action="append",
        default=[],
        type=_conf,
        metavar="KEY=VALUE",
        help="a Spark conf on top of the profile; repeatable",
    )
    parser.add_argument("--cores", type=int, default=2, metavar="N")
    given = parser.parse_args(arguments)
    if given.events <= WARM_UP * given.rows_per_batch:
        parser.error(f"--events: give more than {WARM_UP} batches, which are the warm-up")
    return given


def _conf(text: str) -> tuple[str, str]:
    key, separator, value = text.partition("=")
    if not separator or not key.startswith("spark."):
        raise argparse.ArgumentTypeError(f"{text!r} is not a Spark conf; write it like spark.a.b=c")
    return key, value


def _names(text: str) -> list[str]:
    names = text.split(",")
    for name in names:
        if name not in QUERIES:
            raise argparse.ArgumentTypeError(f"no query '{name}'; use {', '.join(QUERIES)}")
    return names


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
