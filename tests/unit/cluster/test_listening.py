"""A daemon on a host is up when it listens itself, not when somebody answers there."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any, cast

import pytest

from nexmark.cluster import ClusterError
from nexmark.cluster.hosts.host import Host, program_command, program_input, program_result
from nexmark.cluster.inspection import listening
from nexmark.config import SshCluster, load
from nexmark_jobs.host.ports import is_free
from nexmark_jobs.host.processes import end, start_detached

MARK = f"test|{os.getpid()}"


class Here:
    """This machine as the host of the master."""

    name = "nexmark01"

    def call(self, program: ModuleType, request: Mapping[str, Any], **_: Any) -> dict[str, Any]:
        run = subprocess.run(
            program_command(sys.executable),
            input=program_input(program, request),
            capture_output=True,
            check=True,
        )
        return program_result(run.stdout)


@pytest.fixture
def config() -> SshCluster:
    """The cluster `nexmark`, whose master is at two free ports of this machine."""
    found = load().clusters["nexmark"]
    assert isinstance(found, SshCluster)
    with socket.socket() as one, socket.socket() as two:
        for each in (one, two):
            each.bind(("127.0.0.1", 0))
        ports = {"master_port": one.getsockname()[1], "master_ui_port": two.getsockname()[1]}
    machine = found.hosts["nexmark01"].model_copy(update={"address": "127.0.0.1"})
    hosts = {**found.hosts, "nexmark01": machine}
    return found.model_copy(update={**ports, "hosts": hosts})


@pytest.fixture
def daemon(config: SshCluster, tmp_path: Path) -> Iterator[None]:
    """What listens on both ports with our mark."""
    ports = (config.master_port, config.master_ui_port)
    program = (
        "import socket, time\n"
        f"kept = [socket.create_server(('127.0.0.1', port)) for port in {ports}]\n"
        "time.sleep(60)"
    )
    process = start_detached(
        [sys.executable, "-c", program], dict(os.environ), MARK, tmp_path / "daemon.log"
    )
    deadline = time.monotonic() + 10
    while any(map(is_free, ports)):
        assert time.monotonic() < deadline
        time.sleep(0.02)
    yield
    end([process])


def look(config: SshCluster, mark: str = MARK) -> bool:
    return listening(config, [cast(Host, Here())], mark)


def test_free_ports_are_nobody_yet(config: SshCluster) -> None:
    assert not look(config)


@pytest.mark.usefixtures("daemon")
def test_our_own_daemon_on_both_ports_is_up(config: SshCluster) -> None:
    assert look(config)


@pytest.mark.usefixtures("daemon")
def test_a_stranger_is_reported_with_host_port_process_and_remedy(config: SshCluster) -> None:
    said = rf"host nexmark01: port {config.master_port} is taken by process \d+ \(.*; end it, or"
    with pytest.raises(ClusterError, match=said):
        look(config, "another|mark")
