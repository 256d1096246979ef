"""Workers that are killed and started again, and a standalone cluster whose workers can be."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
from collections.abc import Iterator, Mapping
from pathlib import Path

from nexmark.engines import Build, local_environment
from nexmark.recovery.launcher import with_word
from nexmark_jobs.host.ports import LOOPBACK
from nexmark_jobs.host.processes import OWNER_VARIABLE, Process, end, environment_of, start_detached

WORKER = "deploy.worker.Worker"
_MASTER = "deploy.master.Master"
_WORKERS = 2
_DAEMON = {"SPARK_DAEMON_MEMORY": "512m", "SPARK_DAEMON_JAVA_OPTS": "-XX:+UseSerialGC"}


def replace_worker(worker: Process) -> None:
    """SIGKILL to a worker and its executors; then its command is started again, as by systemd.

    ProcessLookupError if it has ended by itself.
    """
    try:
        place = Path(f"/proc/{worker.pid}")
        command = (place / "cmdline").read_bytes().decode().split("\0")[:-1]
        variables = environment_of(worker.pid).decode().split("\0")
        log = (place / "fd" / "1").readlink()
    except OSError:
        raise ProcessLookupError(worker.pid) from None
    environment = dict(each.split("=", 1) for each in variables if "=" in each)
    os.killpg(worker.pid, signal.SIGKILL)
    end([worker], grace_s=0)
    start_detached(command, environment, environment[OWNER_VARIABLE], log)


@contextlib.contextmanager
def standalone(build: Build, work: Path, mark: Mapping[str, str]) -> Iterator[tuple[str, Path]]:
    """A master and two workers with a core each; they end with the context.

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
