"""HDFS on this machine: one name node and one data node, which hold a checkpoint for one command.

See `nexmark_jobs/remote_fs/MiniHdfs.java`. It runs on the jars of the installed PySpark, whatever
build writes to it.
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.parse import quote
from urllib.request import ProxyHandler, build_opener

import nexmark_jobs
from nexmark.engines.prerequisites import java_program
from nexmark.errors import NexmarkError
from nexmark.kafka.jars import jars, pyspark_jars
from nexmark.recovery.checkpoint_files import File

JARS = "minihdfs-3.5.0"
"""The set of jars: it has to be of the Hadoop of the installed PySpark."""
CONFS = {"spark.hadoop.dfs.replication": "1"}
"""Spark confs: there is one data node."""

_SOURCE = Path(nexmark_jobs.__file__).parent / "remote_fs" / "MiniHdfs.java"
_HERE = build_opener(ProxyHandler({}))
"""Asks this machine, whatever proxy the environment names."""
_OPTIONS = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xmx512m")
_START_S = 120
_CALL_S = 30
_POLL_S = 0.1
_END_S = 20


class MiniHdfsError(NexmarkError):
    """HDFS did not start; one line with the reason."""


@dataclass(frozen=True)
class HdfsDirectory:
    """A directory of HDFS, listed by WebHDFS: see `checkpoint_files.Place`.

    Attributes:
        name_node: the URL of the file system.
        web: the URL of WebHDFS.
        path: the path of the directory, which begins with a slash.
    """

    name_node: str
    web: str
    path: str = ""

    @property
    def url(self) -> str:
        """The directory as Spark is to name it."""
        return f"{self.name_node}{self.path}"

    def __truediv__(self, name: str) -> HdfsDirectory:
        """Return a directory below."""
        return HdfsDirectory(self.name_node, self.web, f"{self.path}/{name}")

    def files(self) -> dict[str, File]:
        """See `checkpoint_files.files`."""
        return dict(self._files(""))

    def _files(self, below: str) -> Iterator[tuple[str, File]]:
        url = f"{self.web}/webhdfs/v1{quote(self.path + below)}?op=LISTSTATUS"
        with contextlib.suppress(FileNotFoundError):
            for each in _listed(url):
                name = f"{below}/{each['pathSuffix']}"
                if each["type"] == "DIRECTORY":
                    yield from self._files(name)
                else:
                    yield name[1:], File(each["length"], each["modificationTime"] / 1000)


def _listed(url: str) -> list[dict[str, Any]]:
    """The entries of a directory; FileNotFoundError: there is none, MiniHdfsError: no HDFS."""
    try:
        with _HERE.open(url, timeout=_CALL_S) as answer:
            found: list[dict[str, Any]] = json.load(answer)["FileStatuses"]["FileStatus"]
    except OSError as error:
        if isinstance(error, HTTPError) and error.code == HTTPStatus.NOT_FOUND:
            raise FileNotFoundError(url) from None
        raise MiniHdfsError(f"--checkpoint hdfs: HDFS does not answer: {error}") from None
    return found


@contextlib.contextmanager
def mini_hdfs(
    work: Path, mark: Mapping[str, str], say: Callable[[str], None]
) -> Iterator[HdfsDirectory]:
    """HDFS with its data in `work`; it ends with the context, or with this process.

    Raises:
        MiniHdfsError: It did not start.
        KafkaError: Its jar cannot be fetched.
    """
    told, log = work / "hdfs.txt", work / "hdfs.log"
    classes = ":".join([*map(str, jars(JARS, say)), f"{pyspark_jars()}/*"])
    command = [str(java_program("java")), *_OPTIONS, "-cp", classes]
    command += [str(_SOURCE), str(work / "hdfs"), str(told)]
    with log.open("wb") as output:
        process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=output, stderr=output, env={**os.environ, **mark}
        )
    started = time.monotonic()
    try:
        directory = _up(process, told, log)
        say(f"HDFS is up after {time.monotonic() - started:.1f} s")
        yield directory
    finally:
        try:
            process.communicate(timeout=_END_S)  # closes its standard input
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _up(process: subprocess.Popen[bytes], told: Path, log: Path) -> HdfsDirectory:
    deadline = time.monotonic() + _START_S
    while not told.exists():
        if process.poll() is not None or time.monotonic() > deadline:
            lines = log.read_text(errors="replace").split("\n")
            why = next((x for x in lines if "rror" in x or "xception" in x), "it says nothing")
            raise MiniHdfsError(f"--checkpoint hdfs: HDFS did not start: {why[:300]}")
        time.sleep(_POLL_S)
    name_node, web = told.read_text().split()
    return HdfsDirectory(name_node.rstrip("/"), web.rstrip("/"))
