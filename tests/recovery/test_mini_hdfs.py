"""The HDFS that holds the checkpoint of one command: it lists as a local disk, and ends."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from urllib.parse import quote
from urllib.request import Request, urlopen

import pytest

from nexmark.errors import NexmarkError
from nexmark.kafka.jars import pyspark_jars
from nexmark.recovery.checkpoint_files import HdfsDirectory, commits, files, is_committed, size
from nexmark.recovery.mini_hdfs import JARS, mini_hdfs
from nexmark_jobs.host.processes import OWNER_VARIABLE, marked
from tests.waiting import wait_for


def write(directory: HdfsDirectory, name: str, content: bytes) -> None:
    url = f"{directory.web}/webhdfs/v1{directory.path}/{quote(name)}?op=CREATE&noredirect=true"
    with urlopen(Request(url, method="PUT"), timeout=30) as answer:
        place = json.load(answer)["Location"]
    urlopen(Request(place, data=content, method="PUT"), timeout=30).close()


@pytest.mark.slow
def test_it_lists_what_is_written_and_ends_with_its_context(tmp_path: Path) -> None:
    mark = {OWNER_VARIABLE: f"hdfs {tmp_path}"}
    before = time.time()
    with mini_hdfs(tmp_path, mark, print) as root:
        checkpoint = root / "checkpoint"
        assert checkpoint.url.startswith("hdfs://")
        assert files(checkpoint) == commits(checkpoint) == {}
        write(checkpoint, "commits/0", b"v1")
        write(checkpoint, "commits/.1.tmp", b"")
        write(checkpoint, "state/0/1/left-keyToNumValues/SSTs/a b.sst", bytes(1000))
        assert list(commits(checkpoint)) == [0]
        assert is_committed(checkpoint, 0)
        assert not is_committed(checkpoint, 1)
        assert before - 5 < commits(checkpoint)[0] < time.time() + 5
        assert set(files(checkpoint / "state")) == {"0/1/left-keyToNumValues/SSTs/a b.sst"}
        assert size(checkpoint) == 1002
        assert marked(mark[OWNER_VARIABLE])
    assert not marked(mark[OWNER_VARIABLE])


def test_its_jar_is_of_the_hadoop_of_the_installed_pyspark() -> None:
    (client,) = pyspark_jars().glob("hadoop-client-api-*.jar")
    assert JARS.removeprefix("minihdfs-") == client.stem.removeprefix("hadoop-client-api-")


def test_an_hdfs_that_is_gone_is_one_line() -> None:
    with pytest.raises(NexmarkError, match="--checkpoint hdfs: HDFS does not answer"):
        commits(HdfsDirectory("hdfs://127.0.0.1:9", "http://127.0.0.1:9", "/checkpoint"))


@pytest.mark.long
def test_it_ends_with_the_process_that_started_it(tmp_path: Path) -> None:
    mark = f"hdfs {tmp_path}"
    code = (
        "import pathlib, time\n"
        "from nexmark.recovery.mini_hdfs import mini_hdfs\n"
        f"work, mark = pathlib.Path({str(tmp_path)!r}), {{{OWNER_VARIABLE!r}: {mark!r}}}\n"
        "with mini_hdfs(work, mark, lambda line: None):\n"
        "    print('up', flush=True)\n"
        "    time.sleep(600)\n"
    )
    command = [sys.executable, "-c", code]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        assert parent.stdout.readline() == "up\n"
        assert marked(mark)
        os.kill(parent.pid, signal.SIGKILL)
        wait_for(lambda: not marked(mark), within_s=30)
