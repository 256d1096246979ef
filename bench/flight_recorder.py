"""What the flight recorder costs: `python -m bench.flight_recorder`.

Runs pairs of fresh applications of a query on a standalone cluster of this machine, with and
without the recorder in turns, measured as a night measures them, and prints by how much the CPU
time of the executors is above that without.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import median, stdev
from typing import TYPE_CHECKING

from bench.arguments import Parser, whole
from nexmark.cluster import Lease, LocalCluster, Release, identify
from nexmark.config import (
    KNOWN_QUERIES,
    Config,
    EmbeddedCluster,
    Workload,
    load,
    paths,
    profile_path,
)
from nexmark.engines import Build, resolve
from nexmark.errors import NexmarkError
from nexmark.flames.jfr import RECORDER
from nexmark.reaper import command_variables, reaper_of_command
from nexmark.terminal import run_command
from nexmark_jobs.cause import failure_cause
from nexmark_jobs.host.ports import is_free

if TYPE_CHECKING:
    from nexmark.measure.measurement import Measurement

_JOBS = paths.repository() / "nexmark_jobs"
_PORTS = ("master_port", "master_ui_port", "worker_port", "worker_ui_port")
_FIRST_PORT, _LAST_PORT = 21_000, 31_000
_SAMPLER_STOP_S = 30
_APPLICATION_S = 7200


@dataclass(frozen=True)
class Overhead:
    """How much more CPU time the pairs took with the recorder; 0.02 is 2 % more.

    `deviation` is the standard deviation of the pairs, None for a single pair.
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


@dataclass(frozen=True)
class _Bench:
    """What is run, and where."""

    cluster: LocalCluster
    build: Build
    workload: Workload
    query: str
    directory: Path

    def measure(self, name: str, recorded: bool) -> Measurement:
        """Run the query once in a fresh application and measure it."""
        directory = self.directory / name
        directory.mkdir()
        sampler = subprocess.Popen(
            [
                sys.executable,
                "-I",
                str(_JOBS / "cpu_sampler.py"),
                "--out",
                str(directory / "samples.jsonl"),
                "--pid-file",
                str(directory / "sampler.pid"),
                "--interval",
                str(self.workload.sampling_interval_s),
                "--max-seconds",
                str(_APPLICATION_S),
            ],
            stderr=subprocess.DEVNULL,
        )
        try:
            self._run(directory, recorded)
        finally:
            sampler.terminate()
            sampler.wait(_SAMPLER_STOP_S)
        return self._measured(directory, recorded)

    def _run(self, directory: Path, recorded: bool) -> None:
        config, size, home = self.cluster.config, self.workload, self.build.spark_home
        confs = {
            "spark.sql.shuffle.partitions": config.shuffle_partitions,
            "spark.driver.host": config.driver_address,
            "spark.driver.bindAddress": config.driver_address,
            "spark.driver.memory": config.driver_memory,
            "spark.executor.memory": config.executor_memory,
            "spark.executor.cores": config.executor_cores,
            "spark.cores.max": config.executors * config.executor_cores,
            "spark.sql.streaming.checkpointLocation": (
                f"file://{self.cluster.checkpoints / directory.name}"
            ),
            "spark.ui.enabled": "false",
            "spark.log.level": "WARN",
            **({"spark.executor.defaultJavaOptions": " ".join(RECORDER)} if recorded else {}),
        }
        command = [
            str(home / "bin" / "spark-submit"),
            "--master",
            config.master_url,
            "--properties-file",
            str(self.cluster.properties_file(profile_path(size.conf_profile))),
            *(word for name, value in confs.items() for word in ("--conf", f"{name}={value}")),
            str(_JOBS / "run_query.py"),
            "--query",
            self.query,
            "--source",
            "datagen",
            "--events",
            str(size.events),
            "--tps",
            str(size.tps),
            "--seed",
            str(size.seed),
            "--rows-per-batch",
            str(size.rows_per_batch),
            "--sink",
            "noop",
            "--result",
            str(directory / "result.json"),
        ]
        python = {"PYSPARK_PYTHON": sys.executable, "PYSPARK_DRIVER_PYTHON": sys.executable}
        log = directory / "driver.log"
        with log.open("wb") as output:
            done = subprocess.run(
                command,
                env={**self.cluster.driver_environment(home), **python},
                stdout=output,
                stderr=subprocess.STDOUT,
                timeout=_APPLICATION_S,
            )
        if done.returncode:
            last = failure_cause(log.read_text(errors="replace"))
            raise NexmarkError(f"{self.query}: the application failed: {last[:300]}")

    def _measured(self, directory: Path, recorded: bool) -> Measurement:
        import json

        from nexmark.measure.cpu import application_cpu
        from nexmark.measure.host_samples import read_samples
        from nexmark.measure.measurement import MIN_INTERVALS, measure_series
        from nexmark.measure.result_file import parse_result

        result = parse_result(json.loads((directory / "result.json").read_text()))
        if recorded:  # whether it did record
            executors = [str(number) for number in range(self.cluster.config.executors)]
            target = directory / "recordings"
            self.cluster.fetch_recordings(result.application_id, executors, target)
        samples = read_samples(directory / "samples.jsonl")
        label = str(directory / "result.json")
        series = application_cpu(samples, result.application_id, label, period=result.work)
        return measure_series(
            result,
            [series],
            executors=self.cluster.config.executors,
            warmup_batches=self.workload.warmup_batches,
            min_intervals=MIN_INTERVALS,
        )


def main(argv: Sequence[str] | None = None) -> int:
    """Print the overhead of each pair and of all; exit code 1 where it cannot be measured."""
    config = load()
    parser = Parser(prog="bench.flight_recorder", description=__doc__)
    parser.add_argument("--engine", default=config.newest.name, choices=list(config.engines))
    parser.add_argument("--workload", default="small", choices=list(config.workloads))
    parser.add_argument("--query", default="q5", choices=list(KNOWN_QUERIES))
    parser.add_argument("--pairs", type=whole(1, 1000), default=10)
    parser.add_argument("--keep", type=Path, help="where logs, samples and recordings are kept")
    given = parser.parse_args(argv)
    return run_command(partial(_overhead, config, given))


def _overhead(config: Config, given: argparse.Namespace) -> int:
    local = config.clusters["local"]
    assert isinstance(local, EmbeddedCluster)
    with tempfile.TemporaryDirectory(prefix="nexmark-recorder-") as temporary:
        home = given.keep or Path(temporary)
        home.mkdir(parents=True, exist_ok=True)
        build = resolve(config.engines[given.engine].build, paths.builds_dir())
        cluster = LocalCluster(local.model_copy(update=_free_ports()), home)
        workload = config.workloads[given.workload]
        directory = Path(tempfile.mkdtemp(prefix="runs-", dir=home))
        os.environ.update(command_variables())
        try:
            with reaper_of_command(os.environ):
                return _bench(_Bench(cluster, build, workload, given.query, directory), given.pairs)
        except subprocess.TimeoutExpired as error:
            raise NexmarkError(f"flight recorder: {error}") from None


def _bench(bench: _Bench, count: int) -> int:
    problem = bench.cluster.recorder_problem()
    if problem:
        raise NexmarkError(problem)
    size = bench.workload
    print(
        f"flight recorder: {bench.query} on Spark {bench.build.version}, {size.events:,} "
        f"events, {count} pairs, load {os.getloadavg()[0]:.1f} at the start"
    )
    lease = Lease("bench-flight-recorder", str(os.getpid()), identify(os.getpid()))
    spark = Release(f"spark-{bench.build.id}", bench.build.id, bench.build.spark_home)
    bench.cluster.start(spark, bench.directory / "cluster", lease)
    pairs = []
    try:
        for number in range(1, count + 1):
            pair: dict[bool, Measurement] = {}
            for recorded in (False, True) if number % 2 else (True, False):
                name = f"{'recorded' if recorded else 'plain'}-{number}"
                pair[recorded] = bench.measure(name, recorded)
            basis = _common_basis(pair[False], pair[True])
            pairs.append((_cpu(pair[False], basis), _cpu(pair[True], basis)))
            plain, with_it = pairs[-1]
            print(
                f"  pair {number}: {plain:.2f} without, {with_it:.2f} with it "
                f"({basis}): {with_it / plain - 1:+.1%}",
                flush=True,
            )
    finally:
        bench.cluster.stop()
    print(f"CPU-seconds of the executors per million events: {Overhead.of(pairs)}")
    return 0


def _common_basis(*measurements: Measurement) -> str:
    from nexmark.model import common_basis

    return common_basis(each.cpu_s_per_mevent_steady for each in measurements)


def _cpu(measurement: Measurement, basis: str) -> float:
    figure = getattr(measurement, f"cpu_s_per_mevent_{basis}")
    assert figure is not None
    return float(figure)


def _free_ports() -> dict[str, int]:
    """Return free ports: a night may run at the same time, though the figures suffer from it."""
    free = (port for port in range(_FIRST_PORT, _LAST_PORT) if is_free(port))
    return {name: next(free) for name in _PORTS}


if __name__ == "__main__":
    sys.exit(main())
