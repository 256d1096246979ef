"""Measure every query: events per CPU-second, compared with nexmark-flink.

Every query runs in a JVM of its own in local mode, over generated events into the noop sink. After
a warm-up it is measured twice. The first time it reads 5 M events in batches of 500 k, the size of
the peer's figures; the second time `--events` events in ten batches, a size at which start, JIT and
the fixed cost of a batch weigh little. If the state of that many events does not fit the heap, the
second size is 20 M or 10 M events, the largest that fits; the table shows it. CPU is user and
system time of the JVM (Linux only).

*With end* includes the batches after the end of the input, which close the windows that are still
open, as the peer's figures do; *steady* does not. Both are without the first two batches. Ratios
compare equal things: with the end, at the same number of events.
"""

from __future__ import annotations

import argparse
import os
import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import datetime
from multiprocessing import get_context
from pathlib import Path
from statistics import geometric_mean, median
from typing import Any

if __name__ == "__main__":  # spark-submit puts this file's own directory first
    sys.path[0] = str(Path(__file__).resolve().parent.parent)

import pyspark
from pyspark.sql import SparkSession

from bench import hot_methods
from bench.jvm_clock import CpuRecorder, JvmClock
from bench.peer import PEER, PEER_IS, PEER_LARGE, Peer
from nexmark_jobs.options import Options, parse
from nexmark_jobs.queries import QUERIES
from nexmark_jobs.run_query import run

SMALL, SMALL_BATCH = 5_000_000, 500_000
"""The number of events of the peer's figures, and of events in each of our batches."""
SMALLER = (20_000_000, 10_000_000)
"""The numbers of events that are tried if the state of more events does not fit the heap."""
BATCHES = 10
"""The number of batches of the large size."""
WARM_UP = 2
"""The number of first batches of a run that do not count; a whole run before it does not either."""
STATE_COPIES = 2.5
"""Bytes of heap for each byte of reported state: two versions, and room for the collector."""


@dataclass(frozen=True)
class QueryRates:
    """The rates of a run over ``events`` events, in thousands of events per CPU-second.

    ``steady`` is without the batches after the end of the input, ``with_end`` includes them.
    """

    events: int
    steady: float
    with_end: float


@dataclass(frozen=True)
class MeasuredQuery:
    """One repetition of a query; ``large`` is None if even the smallest size did not fit.

    ``stacks`` has the number of samples of each stack at the large size, if they were asked for.
    """

    small: QueryRates
    large: QueryRates | None
    stacks: Mapping[tuple[str, ...], int] = field(default_factory=dict)


def rates(recorder: CpuRecorder, result: dict[str, Any]) -> QueryRates:
    """Return the rates of a run that has ended, from its result and the recorded CPU time."""
    batches = result["batches"]
    data = [batch for batch in batches if batch["phase"] == "data"]
    events = sum(batch["input_rows"] for batch in data[WARM_UP:]) / 1000

    def cpu_s(batch: dict[str, Any]) -> float:
        return recorder.cpu_s(datetime.fromisoformat(batch["end"]).timestamp())

    start = cpu_s(data[WARM_UP - 1])
    steady = events / (cpu_s(data[-1]) - start)
    return QueryRates(result["input_rows"], steady, events / (cpu_s(batches[-1]) - start))


_PROFILES = Path(__file__).resolve().parents[1] / "include" / "conf" / "spark"


def main(arguments: Sequence[str] | None = None) -> int:
    """Print a table with a line for each query; return 0."""
    given = _arguments(arguments)
    print(
        f"Spark {pyspark.__version__}, profile {given.profile}, tps {given.tps}, digest "
        f"{given.digest}, heap {given.heap}, median of {given.repetitions}, load "
        f"{os.getloadavg()[0]:.1f} at the start; K events per CPU-second\n"
        f"peer: nexmark-flink on Flink 2.0.1, as shipped and with object reuse, {PEER_IS}"
    )
    print(_HEADER)
    small: dict[str, float] = {}
    large: dict[str, QueryRates] = {}
    for name in given.queries:
        formulation = QUERIES[name].formulation(pyspark.__version__).name
        measured = [_in_new_process(given, name) for _ in range(given.repetitions)]
        at_small = _median(repetition.small for repetition in measured)
        larger = [repetition.large for repetition in measured if repetition.large is not None]
        at_large = _median(larger) if larger else None
        small[name] = at_small.with_end
        if at_large:
            large[name] = at_large
        print(_line(name, formulation, at_small, at_large), flush=True)
        if stacks := measured[-1].stacks:
            hot_methods.write(given.hot_methods, name, stacks)
            print("\n".join(hot_methods.lines(stacks)), flush=True)
    print_means(small, large)
    return 0


_HEADER = (
    f"{'':25}{'events':>8}{'steady':>8}{'with end':>9}{'5 M':>7}{'size':>7}"
    f"{'shipped':>9}{'reuse':>7}{'5 M / shipped':>15}{'/ reuse':>9}"
)


def _line(name: str, formulation: str, small: QueryRates, large: QueryRates | None) -> str:
    """Return a row of the table; its ``size`` is the figure at the large size by that at 5 M.

    Args:
        name: The query.
        formulation: The formulation of the query.
        small: The rates at 5 M events.
        large: The rates at the large size; None if it was not measured.
    """
    line = f"{name:5}{formulation:20}"
    if large:
        line += f"{large.events / 1e6:6.0f} M{large.steady:8.0f}{large.with_end:9.0f}"
    else:
        line += f"{'-':>8}{'-':>8}{'-':>9}"
    line += f"{small.with_end:7.0f}"
    line += f"{large.with_end / small.with_end:7.2f}" if large else f"{'-':>7}"
    peer = PEER.get(name)
    if not peer:
        return line
    line += f"{peer.shipped:9}{peer.reuse or '-':>7}{small.with_end / peer.shipped:15.2f}"
    return line + (f"{small.with_end / peer.reuse:9.2f}" if peer.reuse else "")


def print_means(small: Mapping[str, float], large: Mapping[str, QueryRates]) -> None:
    """Print the geometric means of our rates by the peer's at equal sizes, and the slower queries.

    `small` has our rates at 5 M events, `large` at the large size, both by query.
    """
    _print_mean("5 M events", small, PEER)
    at_30 = {name: rates.with_end for name, rates in large.items() if rates.events == 30_000_000}
    _print_mean("30 M events", at_30, PEER_LARGE)


def _print_mean(label: str, ours: Mapping[str, float], peers: Mapping[str, Peer]) -> None:
    """Print the geometric mean of our rates by the peer's, as shipped and with object reuse.

    `label` names the size. `ours` and `peers` are by query.
    """
    shipped = {name: peer.shipped for name, peer in peers.items()}
    reuse = {name: peer.reuse for name, peer in peers.items() if peer.reuse}
    for kind, theirs in (("shipped", shipped), ("reuse", reuse)):
        ratios = {name: rate / theirs[name] for name, rate in ours.items() if name in theirs}
        if ratios:
            slower = [f"{name} {ratio:.2f}" for name, ratio in ratios.items() if ratio < 1]
            print(
                f"{label}, with end / {kind}: geometric mean {geometric_mean(ratios.values()):.2f} "
                f"over {len(ratios)} queries; slower: {', '.join(slower) or 'none'}"
            )


def _median(several: Iterable[QueryRates]) -> QueryRates:
    """Return the medians over the repetitions of the smallest size that was measured."""
    repetitions = list(several)
    events = min(repetition.events for repetition in repetitions)
    same_size = [repetition for repetition in repetitions if repetition.events == events]
    return QueryRates(
        events,
        median(repetition.steady for repetition in same_size),
        median(repetition.with_end for repetition in same_size),
    )


def _in_new_process(given: argparse.Namespace, name: str) -> MeasuredQuery:
    """Measure a query in a new process, whose heap has no state of an earlier query."""
    sizes = [given.events, *(size for size in SMALLER if size < given.events), 0]
    while True:
        with ProcessPoolExecutor(max_workers=1, mp_context=get_context("spawn")) as process:
            try:
                return process.submit(_measure, given, name, sizes).result()
            except Exception as error:  # the JVM may end in several ways when its memory is full
                failed = sizes.pop(0)
                if not sizes:
                    raise
                print(f"{name}: {failed} events: {type(error).__name__}: {error}", file=sys.stderr)


def _measure(given: argparse.Namespace, name: str, sizes: Sequence[int]) -> MeasuredQuery:
    """Return the rates of a query at both sizes.

    The large size is the first of ``sizes`` (events, falling) whose state fits the heap; 0 leaves
    the large size out.
    """
    spark = _session(given)
    run(spark, _options(given, name, SMALL // 2, SMALL_BATCH), quiet=True)
    small, state_bytes = _rates_of(spark, _options(given, name, SMALL, SMALL_BATCH))
    events = largest(sizes, state_bytes / SMALL, _bytes(given.heap))
    large = None
    stacks: Mapping[tuple[str, ...], int] = {}
    if events:
        options = _options(given, name, events, events // BATCHES)
        with ExitStack() as recording:
            if given.hot_methods:
                stacks = recording.enter_context(hot_methods.recorded(spark))
            large, _ = _rates_of(spark, options)
    spark.stop()
    return MeasuredQuery(small, large, stacks)


def largest(sizes: Sequence[int], bytes_per_event: float, heap: int) -> int:
    """Return the first of ``sizes`` (events, falling) whose state fits ``heap`` (bytes), else 0."""
    fitting = (size for size in sizes if size * bytes_per_event * STATE_COPIES < heap)
    return next(fitting, 0)


def _rates_of(spark: SparkSession, options: Options) -> tuple[QueryRates, int]:
    """Return the rates of a run and the largest state that it reported, in bytes."""
    with CpuRecorder(JvmClock(spark)) as recorder:
        result = run(spark, options, quiet=True)
    return rates(recorder, result), int(result["state"]["bytes_max"])


def _options(given: argparse.Namespace, name: str, events: int, batch: int) -> Options:
    """Return the options of `run_query.py` for a run.

    Args:
        given: The options of the command line.
        name: The query.
        events: The number of events.
        batch: The number of events in a batch.
    """
    arguments = ["--query", name, "--source", "datagen", "--events", str(events)]
    arguments += ["--tps", str(given.tps), "--seed", "1", "--sink", "noop"]
    arguments += ["--rows-per-batch", str(batch)]
    return parse([*arguments, "--digest", given.digest, "--result", os.devnull])


def _bytes(heap: str) -> int:
    """Return the number of bytes of a heap size like 12g or 800m."""
    unit = 1024**3 if heap.endswith("g") else 1024**2
    return int(heap[:-1]) * unit


def _session(given: argparse.Namespace) -> SparkSession:
    """Return a session in local mode with the confs of the profile and of the command line."""
    builder = SparkSession.builder.master(f"local[{given.cores}]").appName("bench_queries")
    builder = builder.config("spark.ui.showConsoleProgress", "false")
    builder = builder.config("spark.ui.enabled", "false").config("spark.driver.memory", given.heap)
    for line in _PROFILES.joinpath(f"{given.profile}.conf").read_text().splitlines():
        if line.strip() and not line.startswith("#"):
            key, value = line.split(maxsplit=1)
            # In local mode the driver is the executor.
            builder = builder.config(key.replace("spark.executor.", "spark.driver."), value)
    builder = builder.config("spark.sql.shuffle.partitions", given.cores)
    if given.hot_methods:
        builder = builder.config("spark.driver.defaultJavaOptions", hot_methods.JAVA_OPTIONS)
    for key, value in given.conf:
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("OFF")
    return spark


def _arguments(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="nexmark bench queries", description=__doc__)
    standard = ",".join(name for name in QUERIES if name != "q14_python_udf")
    parser.add_argument("--queries", default=standard, metavar="q0,q1", type=_names)
    parser.add_argument("--events", type=int, default=30_000_000, metavar="N")
    parser.add_argument("--heap", default="12g", type=_heap, metavar="SIZE")
    parser.add_argument("--tps", type=int, default=10_000_000, metavar="N")
    parser.add_argument("--repetitions", type=int, default=1, metavar="N")
    parser.add_argument("--digest", choices=("on", "off"), default="off")
    parser.add_argument(
        "--profile", type=_profile, default="default", help="include/conf/spark/PROFILE.conf"
    )
    parser.add_argument(
        "--conf",
        action="append",
        default=[],
        type=_conf,
        metavar="KEY=VALUE",
        help="a Spark conf on top of the profile; repeatable",
    )
    parser.add_argument("--cores", type=int, default=2, metavar="N")
    parser.add_argument(
        "--hot-methods",
        type=Path,
        metavar="DIR",
        help="record the large size, print the methods with the most CPU time, and write the "
        "stacks to DIR/QUERY.txt, as flame graph tools read them",
    )
    given = parser.parse_args(arguments)
    if given.events < SMALL:
        parser.error(f"--events: give at least {SMALL}, the size of the peer's figures")
    return given


def _heap(text: str) -> str:
    if not re.fullmatch(r"[1-9][0-9]{0,4}[mg]", text):
        raise argparse.ArgumentTypeError(f"{text!r} is no heap size; write it like 12g or 800m")
    return text


def _profile(name: str) -> str:
    known = sorted(path.stem for path in _PROFILES.glob("*.conf"))
    if name not in known:
        raise argparse.ArgumentTypeError(f"no profile {name!r}; use {', '.join(known)}")
    return name


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
