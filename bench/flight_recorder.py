"""Measure what the flight recorder costs: `python -m bench.flight_recorder`.

Runs pairs of fresh applications of a query on a standalone cluster of this machine, one with and
one without the recorder, and measures them as a night does. Prints how much more CPU time the
executors use with the recorder.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import median, stdev
from typing import TYPE_CHECKING

from bench.applications import Applications, applications
from bench.arguments import Parser, whole
from nexmark.config import KNOWN_QUERIES, Config, load
from nexmark.errors import NexmarkError
from nexmark.flames.jfr import RECORDER
from nexmark.model import Basis, common_basis
from nexmark.terminal import run_command

if TYPE_CHECKING:
    from nexmark.measure.measurement import Measurement


@dataclass(frozen=True)
class Overhead:
    """The relative increase of CPU time by the recorder, over all pairs; 0.02 is 2 % more.

    `low` and `high` are the smallest and the largest increase, `deviation` is the standard
    deviation; None for a single pair.
    """

    median: float
    low: float
    high: float
    deviation: float | None

    @classmethod
    def of(cls, pairs: Sequence[tuple[float, float]]) -> Overhead:
        """Return the overhead of pairs, each with the figures without and with the recorder."""
        more = [recorded / plain - 1 for plain, recorded in pairs]
        deviation = stdev(more) if len(more) > 1 else None
        return cls(median(more), min(more), max(more), deviation)

    def __str__(self) -> str:
        """Return the overhead in one line."""
        spread = "" if self.deviation is None else f", deviation {self.deviation:.1%}"
        return f"median {self.median:+.1%}, from {self.low:+.1%} to {self.high:+.1%}{spread}"


def _measure(bench: Applications, name: str, query: str, recorded: bool) -> Measurement:
    """Run a query once in a fresh application and measure it.

    Args:
        bench: What runs applications.
        name: The name of the directory of the application.
        query: The query.
        recorded: Whether the flight recorder runs.
    """
    from nexmark.measure.measurement import MIN_INTERVALS, measure_series

    confs = {"spark.executor.defaultJavaOptions": " ".join(RECORDER)} if recorded else {}
    ran = bench.run(name, query, confs)
    count = bench.cluster.config.executors
    if recorded:  # whether it did record
        executors = [str(number) for number in range(count)]
        target = bench.directory / name / "recordings"
        bench.cluster.fetch_recordings(ran.result.application_id, executors, target)
    return measure_series(
        ran.result,
        [ran.series],
        executors=count,
        warmup_batches=bench.workload.warmup_batches,
        min_intervals=MIN_INTERVALS,
    )


def main(argv: Sequence[str] | None = None) -> int:
    """Print the overhead of each pair and of all pairs; return 0, or 1 if it cannot be measured."""
    config = load()
    parser = Parser(prog="nexmark bench flight-recorder", description=__doc__)
    parser.add_argument("--engine", default=config.newest.name, choices=list(config.engines))
    parser.add_argument("--workload", default="small", choices=list(config.workloads))
    parser.add_argument("--query", default="q5", choices=list(KNOWN_QUERIES))
    parser.add_argument("--pairs", type=whole(1, 1000), default=10)
    parser.add_argument("--keep", type=Path, help="where logs, samples and recordings are kept")
    given = parser.parse_args(argv)
    return run_command(partial(_overhead, config, given))


def _overhead(config: Config, given: argparse.Namespace) -> int:
    with tempfile.TemporaryDirectory(prefix="nexmark-recorder-") as temporary:
        home = given.keep or Path(temporary)
        with applications(config, given.engine, given.workload, home, "flight-recorder") as bench:
            return _bench(bench, given.query, given.pairs)


def _bench(bench: Applications, query: str, count: int) -> int:
    problem = bench.cluster.recorder_problem()
    if problem:
        raise NexmarkError(problem)
    print(
        f"flight recorder: {query} on Spark {bench.build.version}, "
        f"{bench.workload.size_of(query).events:,} events, {count} pairs, "
        f"load {os.getloadavg()[0]:.1f} at the start"
    )
    pairs = []
    for number in range(1, count + 1):
        pair: dict[bool, Measurement] = {}
        for recorded in (False, True) if number % 2 else (True, False):
            name = f"{'recorded' if recorded else 'plain'}-{number}"
            pair[recorded] = _measure(bench, name, query, recorded)
        basis = common_basis(each.cpu_s_per_mevent_steady for each in pair.values())
        pairs.append((_cpu(pair[False], basis), _cpu(pair[True], basis)))
        plain, with_it = pairs[-1]
        print(
            f"  pair {number}: {plain:.2f} without, {with_it:.2f} with it "
            f"({basis}): {with_it / plain - 1:+.1%}",
            flush=True,
        )
    print(f"CPU-seconds of the executors per million events: {Overhead.of(pairs)}")
    return 0


def _cpu(measurement: Measurement, basis: Basis) -> float:
    """Return the CPU-seconds per million events on a basis, which the measurement has."""
    if basis == Basis.APPLICATION:
        return measurement.cpu_s_per_mevent_application
    assert measurement.cpu_s_per_mevent_steady is not None
    return measurement.cpu_s_per_mevent_steady


if __name__ == "__main__":
    sys.exit(main())
