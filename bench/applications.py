"""Fresh applications on a standalone cluster of this machine, measured as a night measures them."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from nexmark.cluster import Lease, LocalCluster, Release, identify
from nexmark.config import Config, EmbeddedCluster, Workload, paths, profile_path
from nexmark.engines import Build, resolve
from nexmark.errors import NexmarkError
from nexmark.reaper import command_variables, reaper_of_command
from nexmark_jobs.cause import failure_cause
from nexmark_jobs.host.ports import is_free

if TYPE_CHECKING:
    from nexmark.measure.cpu_series import CpuSeries
    from nexmark.measure.host_samples import HostSamples
    from nexmark.measure.result_file import RunResult

_JOBS = paths.repository() / "nexmark_jobs"
_PORTS = ("master_port", "master_ui_port", "worker_port", "worker_ui_port")
_FIRST_PORT, _LAST_PORT = 21_000, 31_000
_SAMPLER_STOP_S = 30
_APPLICATION_S = 7200

Watch = Callable[[int], AbstractContextManager[None]]
"""What runs beside an application; it is given the pid of the driver."""


@dataclass(frozen=True)
class RanApplication:
    """What an application left: its result, its samples, and the CPU series of this host."""

    result: RunResult
    samples: HostSamples
    series: CpuSeries


@dataclass(frozen=True)
class Applications:
    """Where fresh applications run, and what they read."""

    cluster: LocalCluster
    build: Build
    workload: Workload
    directory: Path

    def run(
        self,
        name: str,
        query: str,
        confs: Mapping[str, object],
        *,
        watch: Watch | None = None,
        sampling_interval_s: float | None = None,
    ) -> RanApplication:
        """Run a query once in a fresh application beside a CPU sampler.

        Args:
            name: Of its directory, which must not exist.
            query: What it runs.
            confs: Spark confs beside the usual ones.
            watch: What runs beside it.
            sampling_interval_s: Seconds between two samples; None: as the workload says.

        Raises:
            NexmarkError: The application failed, or its samples do not show it.
        """
        directory = self.directory / name
        directory.mkdir()
        interval = sampling_interval_s or self.workload.sampling_interval_s
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
                str(interval),
                "--max-seconds",
                str(_APPLICATION_S),
            ],
            stderr=subprocess.DEVNULL,
        )
        try:
            self._submit(directory, query, confs, watch)
        finally:
            sampler.terminate()
            sampler.wait(_SAMPLER_STOP_S)
            shutil.rmtree(self.cluster.checkpoints / name, ignore_errors=True)
        return _ran(directory)

    def _submit(
        self, directory: Path, query: str, more: Mapping[str, object], watch: Watch | None
    ) -> None:
        """Submit an application and wait for its end; NexmarkError if it fails.

        Args:
            directory: The directory of its files.
            query: Its query.
            more: Spark confs of its own.
            watch: What watches it while it runs; None for nothing.
        """
        config, home, size = self.cluster.config, self.build.spark_home, self.workload
        read = size.size_of(query)
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
            **more,
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
            query,
            "--source",
            "datagen",
            "--events",
            str(read.events),
            "--tps",
            str(read.tps),
            "--seed",
            str(size.seed),
            "--rows-per-batch",
            str(read.rows_per_batch),
            "--sink",
            "noop",
            "--result",
            str(directory / "result.json"),
        ]
        python = {"PYSPARK_PYTHON": sys.executable, "PYSPARK_DRIVER_PYTHON": sys.executable}
        log = directory / "driver.log"
        with (
            log.open("wb") as output,
            subprocess.Popen(
                command,
                env={**self.cluster.driver_environment(home), **python},
                stdout=output,
                stderr=subprocess.STDOUT,
            ) as driver,
        ):
            try:
                # spark-submit replaces itself with the driver's JVM, so they have one pid.
                with watch(driver.pid) if watch else nullcontext():
                    code = driver.wait(_APPLICATION_S)
            except BaseException:
                driver.kill()
                raise
        if code:
            last = failure_cause(log.read_text(errors="replace"))
            raise NexmarkError(f"{query}: the application failed: {last[:300]}")


def _ran(directory: Path) -> RanApplication:
    from nexmark.measure.cpu import application_cpu
    from nexmark.measure.host_samples import read_samples
    from nexmark.measure.result_file import parse_result

    label = directory / "result.json"
    result = parse_result(json.loads(label.read_text()))
    samples = read_samples(directory / "samples.jsonl")
    series = application_cpu(samples, result.application_id, str(label), period=result.work)
    return RanApplication(result, samples, series)


@contextlib.contextmanager
def applications(
    config: Config, engine: str, workload: str, home: Path, name: str
) -> Iterator[Applications]:
    """Yield the applications of a benchmark on a cluster that runs while the block does.

    Args:
        config: The configuration.
        engine: The engine whose build runs.
        workload: What the applications read.
        home: Where the cluster and the applications have their files.
        name: Of the benchmark, for messages.

    Raises:
        NexmarkError: The cluster does not start, or an application takes hours.
    """
    local = config.clusters["local"]
    assert isinstance(local, EmbeddedCluster)
    home.mkdir(parents=True, exist_ok=True)
    build = resolve(config.engines[engine].build, paths.builds_dir())
    cluster = LocalCluster(local.model_copy(update=_free_ports()), home)
    directory = Path(tempfile.mkdtemp(prefix="runs-", dir=home))
    lease = Lease(f"bench-{name}", str(os.getpid()), identify(os.getpid()))
    spark = Release(f"spark-{build.id}", build.id, build.spark_home)
    os.environ.update(command_variables())
    with reaper_of_command(os.environ):
        cluster.start(spark, directory / "cluster", lease)
        try:
            yield Applications(cluster, build, config.workloads[workload], directory)
        except subprocess.TimeoutExpired as error:
            raise NexmarkError(f"{name}: {error}") from None
        finally:
            cluster.stop()


def _free_ports() -> dict[str, int]:
    """Return free ports: a night may run at the same time, though the figures suffer from it."""
    free = (port for port in range(_FIRST_PORT, _LAST_PORT) if is_free(port))
    return {name: next(free) for name in _PORTS}
