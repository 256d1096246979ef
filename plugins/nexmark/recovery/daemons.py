"""Start a standalone cluster whose workers can be killed and started again."""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Iterator, Mapping
from pathlib import Path

from nexmark.engines import Build, local_environment
from nexmark_jobs.host.ports import LOOPBACK
from nexmark_jobs.host.processes import OWNER_VARIABLE, end, start_detached, with_word

WORKER = "deploy.worker.Worker"
_MASTER = "deploy.master.Master"
_WORKERS = 2
_DAEMON = {"SPARK_DAEMON_MEMORY": "512m", "SPARK_DAEMON_JAVA_OPTS": "-XX:+UseSerialGC"}


@contextlib.contextmanager
def standalone(build: Build, work: Path, mark: Mapping[str, str]) -> Iterator[tuple[str, Path]]:
    """Start a master and two workers with a core each; they end with the context.

    Args:
        build: The Spark build of the master and the workers.
        work: The directory for their log and the files of executors.
        mark: The environment variable that marks the processes of the run.

    Yields:
        The URL of the master, and the directory where executors have their temporary files.
    """
    local = work / "local"
    local.mkdir()
    environment = local_environment(build.spark_home, local) | _DAEMON
    with socket.create_server((LOOPBACK, 0)) as free:
        port = free.getsockname()[1]
    url, words = f"spark://{LOOPBACK}:{port}", ("--host", LOOPBACK, "--webui-port", "0")
    of_worker = (*words, "--cores", "1", "--memory", "1g", "--work-dir", str(work / "executors"))
    daemons = [(_MASTER, *words, "--port", str(port)), *[(WORKER, *of_worker, url)] * _WORKERS]
    program = str(build.spark_home / "bin" / "spark-class")
    started = []
    try:
        for name, *rest in daemons:
            command = [program, f"org.apache.spark.{name}", *rest]
            log = work / "daemons.log"
            started.append(start_detached(command, environment, mark[OWNER_VARIABLE], log))
        yield url, local
    finally:
        end([started[0], *with_word(mark[OWNER_VARIABLE], WORKER)], grace_s=0)
