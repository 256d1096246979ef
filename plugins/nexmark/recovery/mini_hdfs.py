"""Start an HDFS on this machine that holds the checkpoint of one command.

The HDFS has one name node and one data node; see `nexmark_jobs/remote_fs/MiniHdfs.java`. It runs
on the jars of the installed PySpark, whatever build writes to it.
"""

from __future__ import annotations

import contextlib
import subprocess
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

import nexmark_jobs
from nexmark.engines.prerequisites import java_program
from nexmark.errors import NexmarkError
from nexmark.kafka.jars import jars, pyspark_jars
from nexmark.model import Say
from nexmark.recovery.checkpoint_files import HdfsDirectory
from nexmark_jobs.cause import failure_cause
from nexmark_jobs.host.processes import plain_environment

JARS = "minihdfs-3.5.0"
"""The name of the set of jars; their version has to be the Hadoop of the installed PySpark."""
CONFS = {"spark.hadoop.dfs.replication": "1"}
"""The Spark confs for an HDFS with one data node."""

_SOURCE = Path(nexmark_jobs.__file__).parent / "remote_fs" / "MiniHdfs.java"
_OPTIONS = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xmx512m")
_START_S = 120
_POLL_S = 0.1
_END_S = 20


@contextlib.contextmanager
def mini_hdfs(work: Path, mark: Mapping[str, str], say: Say) -> Iterator[HdfsDirectory]:
    """Start an HDFS with its data in `work`; it ends with the context, or with this process.

    Args:
        work: A directory that exists.
        mark: The environment variable that marks the process.
        say: Called with each line of progress.

    Raises:
        NexmarkError: It did not start, or its jar cannot be fetched.
    """
    addresses, log = work / "hdfs.txt", work / "hdfs.log"
    classes = ":".join([*map(str, jars(JARS, say)), f"{pyspark_jars()}/*"])
    command = [str(java_program("java")), *_OPTIONS, "-cp", classes]
    command += [str(_SOURCE), str(work / "hdfs"), str(addresses)]
    with log.open("wb") as output:
        process = subprocess.Popen(
            command,
            env={**plain_environment(), **mark},
            stdin=subprocess.PIPE,
            stdout=output,
            stderr=output,
        )
    started = time.monotonic()
    try:
        directory = _wait_for(process, addresses, log)
        say(f"HDFS is up after {time.monotonic() - started:.1f} s")
        yield directory
    finally:
        try:
            process.communicate(timeout=_END_S)  # closes its standard input
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _wait_for(process: subprocess.Popen[bytes], addresses: Path, log: Path) -> HdfsDirectory:
    """Wait until HDFS has written its two URLs to the file `addresses`; return its root."""
    deadline = time.monotonic() + _START_S
    while not addresses.exists():
        if process.poll() is not None or time.monotonic() > deadline:
            cause = failure_cause(log.read_text(errors="replace"), process.poll())
            raise NexmarkError(f"--checkpoint hdfs: HDFS did not start: {cause[:300]}")
        time.sleep(_POLL_S)
    name_node, web = addresses.read_text().split()
    return HdfsDirectory(name_node.rstrip("/"), web.rstrip("/"))
