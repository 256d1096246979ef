"""Faults that are there before a night begins: it is refused, with what to do, and changes nothing.

Those that come while a release is copied are in test_deploy.py.
"""

from __future__ import annotations

import os
import subprocess
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from nexmark.cluster import ClusterError, Lease, identify
from nexmark.cluster.hosts.host import Host
from nexmark.cluster.remote import RemoteCluster
from nexmark_jobs.host import processes
from tests.cluster.testbed import Testbed, netem, netem_problem
from tests.waiting import wait_for

MASTER, WORKER = "nexmark01", "nexmark02"
LISTEN = "import socket, time; s = socket.create_server(('{}', {})); time.sleep(600)"
OTHER_NIGHT, NIGHT = Lease("nexmark", "the other"), Lease("nexmark", "this")


@pytest.fixture
def cluster(testbed: Testbed, monkeypatch: pytest.MonkeyPatch) -> Iterator[RemoteCluster]:
    testbed.export(monkeypatch)
    made = RemoteCluster(testbed.cluster, testbed.home)
    assert made.problems() == []
    yield made
    made.stop()


def start(cluster: RemoteCluster, name: str, *command: str) -> None:
    """Start a process of the cluster on a host, as a night does."""
    machine = cluster.config.hosts[name]
    request = {"do": "start", "command": command, "environment": {}, "mark": cluster.mark}
    with closing(Host(name, machine.connection, cluster.config.python)) as host:
        host.call(processes, {**request, "log": f"{cluster.work}/log"}, timeout_s=20)


@pytest.fixture
def listen(testbed: Testbed) -> list[str]:
    """A command that listens where the master will."""
    program = LISTEN.format(testbed.cluster.master_address, testbed.cluster.master_port)
    return [testbed.cluster.python, "-c", program]


@pytest.mark.fault("clock of a host a minute off", outcome="refused, told what to do")
def test_a_clock_that_is_off(testbed: Testbed, cluster: RemoteCluster) -> None:
    with testbed.clock_off(WORKER, 60):
        (problem,) = cluster.problems()
    assert problem.startswith(f"host {WORKER}: its clock is 60.0 s ahead of this machine's; keep")


@pytest.mark.fault("a stranger's master on the port", outcome="refused, told whose it is")
def test_a_stranger_on_the_masters_port(
    testbed: Testbed, cluster: RemoteCluster, listen: list[str]
) -> None:
    with testbed.running(MASTER, *listen) as process:
        wait_for(lambda: cluster.problems() != [])
        (problem,) = cluster.problems()
        assert problem.startswith(
            f"host {MASTER}: port {testbed.cluster.master_port} is taken by process "
            f"{process.inside} ({testbed.cluster.python}"
        )
        cluster.reap(NIGHT, lambda _: False)
        assert process.inside in [p.inside for p in testbed.processes(MASTER)]  # not ours to end


@pytest.mark.fault("a master that a killed night left", outcome="ended by the next night's reap")
def test_our_own_master_on_the_port(cluster: RemoteCluster, listen: list[str]) -> None:
    start(cluster, MASTER, *listen)
    cluster.claim(OTHER_NIGHT)
    (Path(cluster.shared) / "runs").mkdir(parents=True)
    assert cluster.problems() == []
    (ended,) = cluster.reap(NIGHT, lambda _: False)
    assert ended.startswith(f"{MASTER}: ")  # found there, not from here
    assert "create_server" in ended


@pytest.mark.fault("two nights at once: make run", outcome="the second is refused")
def test_a_second_night_on_the_cluster(testbed: Testbed, cluster: RemoteCluster) -> None:
    cluster.claim(Lease("nexmark", "the other", identify(os.getpid())))
    run = subprocess.run(
        [
            sys.executable,
            "-m",
            "nexmark.cli",
            "run",
            "--cluster",
            "namespaces",
            "--queries",
            "q0",
        ],
        env=testbed.environment,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert run.returncode == 2
    assert run.stderr.startswith("cluster namespaces: in use by nexmark run the other (process ")
    assert cluster.holder() == Lease("nexmark", "the other", identify(os.getpid()))


@pytest.mark.fault("two nights at once: scheduler", outcome="the second waits (reap is retried)")
def test_a_second_night_of_a_scheduler(testbed: Testbed, cluster: RemoteCluster) -> None:
    start(cluster, WORKER, "sleep", "601")
    cluster.claim(OTHER_NIGHT)
    with pytest.raises(ClusterError, match="in use by nexmark run the other; wait until"):
        cluster.reap(NIGHT, lambda lease: lease == OTHER_NIGHT)
    assert "sleep 601" in [process.command for process in testbed.processes(WORKER)]
    cluster.reap(NIGHT, lambda _: False)  # the other has ended


@pytest.mark.fault("5 % of packets lost, 50 ms late")
def test_a_bad_network(
    cluster: RemoteCluster, record_property: Callable[[str, object], None]
) -> None:
    problem = netem_problem()
    if problem:
        warnings.warn(f"not tested: {problem}", stacklevel=1)
        record_property("outcome", f"not tested: {problem}")
        return
    with netem(WORKER, loss_percent=5, delay_ms=50):
        assert cluster.problems() == []
        cluster.reap(NIGHT, lambda _: False)
    record_property("outcome", "preflight and reap pass")
