"""The test cluster: three hosts that share nothing but the network and one directory."""

from __future__ import annotations

import signal
import stat
import subprocess
import time
import warnings
from pathlib import Path

import pytest

import testbed as namespaces
from nexmark.cluster import ClusterError
from testbed import system
from testbed.connections import CONNECTIONS
from tests.cluster.testbed import Testbed, netem, netem_problem
from tests.waiting import wait_for

MASTER, WORKER, OTHER = "nexmark01", "nexmark02", "nexmark03"
NAMES = (MASTER, WORKER, OTHER)


def sshds(testbed: Testbed, name: str) -> list[int]:
    return [p.pid for p in testbed.processes(name) if "[listener]" in p.command]


@pytest.mark.parametrize("name", NAMES)
def test_a_host_has_its_own_name_and_address(testbed: Testbed, name: str) -> None:
    assert testbed.ssh(name, "hostname").stdout == f"{name}\n"
    address = testbed.cluster.hosts[name].address
    hosts_file = testbed.ssh(name, "cat", "/etc/hosts").stdout.splitlines()
    assert f"{address} {name}" in hosts_file
    addresses = testbed.ssh(name, "ip", "-brief", "address").stdout
    assert f"{address}/24" in addresses
    assert "10.231.7.1/24" not in addresses


def test_a_host_sees_only_its_own_processes(testbed: Testbed) -> None:
    with testbed.running(WORKER, "sleep", "61.5"):
        assert "sleep 61.5" in testbed.ssh(WORKER, "ps", "-eo", "args").stdout
        assert "sleep 61.5" not in testbed.ssh(OTHER, "ps", "-eo", "args").stdout
        assert "pytest" not in testbed.ssh(WORKER, "ps", "-eo", "comm").stdout
    namespaces = {testbed.ssh(name, "readlink", "/proc/self/ns/pid").stdout for name in NAMES}
    assert len(namespaces - {f"{Path('/proc/self/ns/pid').readlink()}\n"}) == len(NAMES)


def test_a_host_has_its_own_disk_and_temporary_directory(testbed: Testbed) -> None:
    for directory in (testbed.cluster.root, "/tmp", "/dev/shm", "/run"):
        file = f"{directory}/of-the-worker"
        testbed.ssh(WORKER, "touch", file)
        assert testbed.ssh(WORKER, "ls", file).stdout == f"{file}\n"
        assert testbed.ssh(OTHER, "ls", file).returncode != 0
        assert not Path(file).exists()
        testbed.ssh(WORKER, "rm", file)


def test_the_shared_directory_is_the_same_everywhere(testbed: Testbed) -> None:
    file = Path(testbed.cluster.shared, "from-the-worker")
    testbed.ssh(WORKER, "sh", "-c", f"echo hello > {file}")
    assert file.read_text() == "hello\n"
    assert testbed.ssh(OTHER, "cat", str(file)).stdout == "hello\n"
    file.unlink()


def test_no_dot_files_of_this_machine_are_run(testbed: Testbed) -> None:
    found = testbed.ssh(WORKER, "sh", "-c", "pwd; echo $HOME $SHELL").stdout.splitlines()
    home = f"{testbed.cluster.root}/home"
    assert found == [home, f"{home} /bin/sh"]


def test_python_and_java_run_on_a_host(testbed: Testbed) -> None:
    cluster = testbed.cluster
    version = testbed.ssh(MASTER, cluster.python, "-I", "-c", "import sys; print(sys.version)")
    assert version.stdout.startswith("3.")
    assert "version" in testbed.ssh(MASTER, f"{cluster.java_home}/bin/java", "-version").stderr


def test_keys_are_for_the_owner_only(testbed: Testbed) -> None:
    for file in (namespaces.client_key(testbed.home), testbed.home / CONNECTIONS):
        assert stat.S_IMODE(file.stat().st_mode) == 0o600


def test_a_changed_host_key_is_refused(testbed: Testbed) -> None:
    with testbed.changed_host_key(WORKER):
        refused = testbed.ssh(WORKER, "true")
        assert refused.returncode == 255
        assert "REMOTE HOST IDENTIFICATION HAS CHANGED" in refused.stderr
        assert testbed.ssh(OTHER, "true").returncode == 0
    assert testbed.ssh(WORKER, "true").returncode == 0


def test_nobody_gets_in_without_the_key(testbed: Testbed) -> None:
    address = testbed.cluster.hosts[WORKER].address
    options = ("-o", "BatchMode=yes", "-o", "StrictHostKeyChecking=no")
    known = ("-o", f"UserKnownHostsFile={testbed.home}/nobody", "-o", "IdentityFile=none")
    refused = subprocess.run(
        ["ssh", "-F", "none", *options, *known, f"root@{address}", "true"],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert refused.returncode == 255
    assert "Permission denied (publickey)" in refused.stderr


def test_traffic_stays_in_the_network_of_the_hosts(testbed: Testbed) -> None:
    for name in NAMES:
        assert testbed.run(name, "ip", "route").stdout.split()[:3] == [
            "10.231.7.0/24",
            "dev",
            "eth0",
        ]
        assert len(testbed.run(name, "ip", "route").stdout.splitlines()) == 1
        assert testbed.run(name, "ip", "-6", "addr", "show", "dev", "eth0").stdout == ""
        away = testbed.run(name, "ip", "route", "get", "192.0.2.1", check=False)
        assert "Network is unreachable" in away.stderr
    for name in NAMES:
        assert testbed.ssh(WORKER, "getent", "hosts", name).stdout.startswith("10.231.7.")


def test_hosts_reach_each_other(testbed: Testbed) -> None:
    probe = "import socket, sys; print(socket.create_connection((sys.argv[1], 22), 5).recv(4))"
    python = testbed.cluster.python
    for source in NAMES:
        for target in NAMES:
            address = testbed.cluster.hosts[target].address
            assert testbed.run(source, python, "-c", probe, address).stdout == "b'SSH-'\n"


def test_orphans_are_collected(testbed: Testbed) -> None:
    for _ in range(20):
        testbed.run(WORKER, "sh", "-c", "(sleep 0.05 &)")
    wait_for(lambda: not [p for p in testbed.processes(WORKER) if "sshd" not in p.command])


def test_a_second_up_keeps_the_hosts_running(testbed: Testbed) -> None:
    def pids() -> list[tuple[int | None, list[int]]]:
        return [(host.init_pid(), sshds(testbed, name)) for name, host in testbed.hosts.items()]

    before = pids()
    connections = testbed.connections
    testbed.up()
    assert pids() == before
    assert testbed.connections == connections


def test_up_starts_a_killed_sshd_and_spares_the_rest_of_the_host(testbed: Testbed) -> None:
    with testbed.running(WORKER, "sleep", "62.5") as process:
        assert testbed.kill(WORKER, "^sshd")
        assert testbed.ssh(WORKER, "true").returncode == 255
        testbed.up()
        assert testbed.ssh(WORKER, "true").returncode == 0
        assert process.pid in [each.pid for each in testbed.processes(WORKER)]
        wait_for(lambda: not [p for p in testbed.processes(WORKER) if p.state == "Z"])


def test_a_crashed_host_loses_all_processes_and_keeps_its_disk(testbed: Testbed) -> None:
    testbed.ssh(WORKER, "touch", f"{testbed.cluster.root}/kept")
    with testbed.running(WORKER, "sleep", "63.5"):
        testbed.crash(WORKER)
        wait_for(lambda: not system.namespace_pids(WORKER))
    testbed.up()
    assert testbed.ssh(WORKER, "ls", f"{testbed.cluster.root}/kept").returncode == 0
    testbed.ssh(WORKER, "rm", f"{testbed.cluster.root}/kept")


@pytest.mark.parametrize(
    "damage",
    [
        ["ip", "link", "del", WORKER],
        ["ip", "link", "set", WORKER, "nomaster"],
        ["ip", "-n", WORKER, "addr", "flush", "dev", "eth0"],
        ["ip", "-n", WORKER, "link", "set", "eth0", "down"],
        ["ip", "link", "del", namespaces.BRIDGE],
        ["umount", f"/run/netns/{WORKER}"],
        ["ip", "netns", "del", WORKER],
    ],
    ids=" ".join,
)
def test_up_repairs_the_network(testbed: Testbed, damage: list[str]) -> None:
    before = testbed.hosts[WORKER].init_pid()
    system.run(*damage)
    testbed.up()
    assert testbed.ssh(WORKER, "hostname").stdout == f"{WORKER}\n"
    after = testbed.hosts[WORKER].init_pid()
    wait_for(lambda: before == after or not system.pids_of(before or 0))


def test_a_pulled_cable_cuts_one_host_off_until_it_is_plugged_in(testbed: Testbed) -> None:
    testbed.link_down(WORKER)
    assert not testbed.hosts[WORKER].answers()
    assert testbed.hosts[OTHER].answers()
    testbed.link_up(WORKER)
    assert testbed.ssh(WORKER, "true").returncode == 0


def test_a_small_disk_is_full_soon(testbed: Testbed) -> None:
    directory = f"{testbed.cluster.root}/incoming"
    fill = ("dd", "if=/dev/zero", f"of={directory}/file", "bs=1M", "count=3")
    with testbed.small_disk(WORKER, "2m"):
        assert "No space left" in testbed.ssh(WORKER, *fill).stderr
    assert testbed.ssh(WORKER, *fill).returncode == 0
    testbed.ssh(WORKER, "rm", "-r", directory)


@pytest.mark.parametrize("seconds", [60, -60])
def test_a_clock_that_is_off_is_the_clock_of_one_python(testbed: Testbed, seconds: int) -> None:
    ask = (testbed.cluster.python, "-I", "-c", "import time; print(time.time())")
    with testbed.clock_off(WORKER, seconds):
        assert float(testbed.ssh(WORKER, *ask).stdout) - time.time() == pytest.approx(
            seconds, abs=5
        )
        assert float(testbed.ssh(OTHER, *ask).stdout) - time.time() == pytest.approx(0, abs=5)
    assert float(testbed.ssh(WORKER, *ask).stdout) - time.time() == pytest.approx(0, abs=5)


def test_a_stopped_process_goes_on_when_told(testbed: Testbed) -> None:
    def state() -> str:
        return next((p.state for p in testbed.processes(WORKER) if "64.5" in p.command), "")

    with testbed.running(WORKER, "sleep", "64.5"):
        testbed.kill(WORKER, "sleep 64.5", signal.SIGSTOP)
        wait_for(lambda: state() == "T")
        testbed.kill(WORKER, "sleep 64.5", signal.SIGCONT)
        wait_for(lambda: state() == "S")


def test_a_bad_cable_delays(testbed: Testbed) -> None:
    problem = netem_problem()
    if problem:  # which no CI setup can change: seen in pytest's summary, but no failure
        warnings.warn(f"not tested: {problem}", stacklevel=1)
        return
    with netem(WORKER, delay_ms=200):
        begin = time.monotonic()
        assert testbed.hosts[WORKER].answers()
        assert time.monotonic() - begin > 0.4


def test_another_home_is_refused_while_the_cluster_is_up(testbed: Testbed, tmp_path: Path) -> None:
    for change in (namespaces.up, namespaces.down):
        with pytest.raises(ClusterError) as error:
            change(testbed.cluster, tmp_path)
        assert f"NEXMARK_HOME={testbed.home} nexmark cluster down" in str(error.value)
    assert testbed.ssh(WORKER, "true").returncode == 0


def test_a_cluster_whose_processes_were_all_killed_is_in_nobodys_way(
    testbed: Testbed, tmp_path: Path
) -> None:
    """A test run that is killed leaves namespaces and disks, and nothing that runs in them."""
    for name in NAMES:
        testbed.crash(name)
    wait_for(lambda: not any(map(system.namespace_pids, NAMES)))
    namespaces.up(testbed.cluster, tmp_path)
    try:
        assert not (testbed.home / "testbed").exists()
        assert all(system.namespace_pids(name) for name in NAMES)
    finally:
        namespaces.down(testbed.cluster, tmp_path)
        testbed.up()
    assert testbed.ssh(WORKER, "true").returncode == 0


def test_down_leaves_nothing(testbed: Testbed) -> None:
    processes = [p.pid for name in NAMES for p in testbed.processes(name)]
    inits = [host.init_pid() for host in testbed.hosts.values()]
    namespaces.down(testbed.cluster, testbed.home)
    wait_for(lambda: not [pid for pid in (*processes, *inits) if system.pids_of(pid or 0)])
    assert "nexmark" not in system.run("ip", "netns", "list")
    assert "nexmark" not in system.run("ip", "link", "show")
    mounts = Path("/proc/self/mountinfo").read_text()
    assert "nexmark0" not in mounts
    assert testbed.cluster.shared not in mounts
    assert str(testbed.home) not in mounts
    assert not (testbed.home / "testbed").exists()
    assert testbed.connections == {}
    assert not [name for name in NAMES if Path("/etc/netns", name).exists()]
    namespaces.down(testbed.cluster, testbed.home)


def test_connections_of_others_stay(testbed: Testbed) -> None:
    file = testbed.home / CONNECTIONS
    namespaces.down(testbed.cluster, testbed.home)
    file.write_text('{"mine": {"conn_type": "ssh"}}')
    testbed.up()
    assert len(testbed.connections) == 1 + len(NAMES)
    namespaces.down(testbed.cluster, testbed.home)
    assert testbed.connections == {"mine": {"conn_type": "ssh"}}
    file.unlink()
