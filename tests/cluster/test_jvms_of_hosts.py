"""What the JVMs of an application hold on hosts comes back over SSH, as soak nights ask for it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from nexmark.cluster.base import LOCAL_DIRECTORIES
from nexmark.cluster.hosts.host import Host
from nexmark.cluster.remote import RemoteCluster
from nexmark_jobs.host import processes
from tests.cluster.testbed import Testbed
from tests.waiting import wait_for

WORKER = "nexmark02"
APPLICATION = "app-20261130-0001"
EXECUTOR = "org.apache.spark.executor.CoarseGrainedExecutorBackend"
KEPT_BYTES = 64 << 16
PROGRAM = """
class Kept {
  public static void main(String[] words) throws Exception {
    byte[][] kept = new byte[64][1 << 16];
    Thread.sleep(120_000);
    System.out.println(kept.length);
  }
}
"""


@pytest.fixture
def cluster(testbed: Testbed, monkeypatch: pytest.MonkeyPatch) -> Iterator[RemoteCluster]:
    """A cluster without Spark, on whose second host a JVM has the words of an executor."""
    testbed.export(monkeypatch)
    cluster = RemoteCluster(testbed.cluster, testbed.home)
    connection = testbed.cluster.hosts[WORKER].connection
    with closing(Host(WORKER, connection, testbed.cluster.python)) as host:
        program = f"{cluster.work}/Kept.java"
        put = ["sh", "-c", 'mkdir -p "$(dirname "$1")" && cat >"$1"', "-", program]
        host.run(put, timeout_s=10, stdin=PROGRAM.encode())
        words = [EXECUTOR, "--executor-id", "3", "--app-id", APPLICATION]
        command = ["java", "-Xmx64m", "-XX:+UseSerialGC", program, *words]
        request = {"do": "start", "command": command, "environment": {}, "mark": cluster.mark}
        host.call(processes, {**request, "log": f"{cluster.work}/log"}, timeout_s=20)
        yield cluster
        cluster.stop()


def test_an_executor_of_a_host_says_what_it_holds(cluster: RemoteCluster, tmp_path: Path) -> None:
    (tmp_path / "offsets").write_text("1")

    def held() -> dict[str, dict[str, Any]]:
        return cluster.hold(APPLICATION, "no driver", {"checkpoint": str(tmp_path)})

    def allocated() -> bool:
        jvms = held()[WORKER]["processes"]
        return bool(jvms) and jvms[0]["classes"].get("byte[]", 0) >= KEPT_BYTES

    wait_for(allocated, within_s=60)  # the program is compiled before it runs
    answers = held()
    *hosts, driver = answers
    assert sorted(hosts) == sorted(cluster.config.hosts)
    assert driver.endswith("(driver)")
    assert answers[driver]["directories"]["checkpoint"] == [1, 1]
    (jvm,) = answers[WORKER]["processes"]
    assert (jvm["role"], jvm["name"]) == ("executor", "3")
    assert jvm["threads"] > 5
    for host in hosts:
        assert answers[host]["directories"].keys() == {LOCAL_DIRECTORIES}
        assert bool(answers[host]["processes"]) is (host == WORKER)
