"""The facts that are reported of a host are true."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from nexmark_jobs.host import facts
from nexmark_jobs.host.facts import brief, cpu_model, free_memory, main
from tests.unit.host.programs import run

QUICK = {"busy_window_s": 0.01}


@pytest.fixture
def server() -> Iterator[socket.socket]:
    with socket.create_server(("127.0.0.1", 0)) as found:
        yield found


def test_the_host_itself() -> None:
    found = run(facts, QUICK)
    assert found["hostname"] == socket.gethostname()
    assert found["cores"] == len(os.sched_getaffinity(0))
    assert found["boot_id"] == Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    assert found["free_memory_bytes"] > 0
    assert found["java"] is None


def test_cpu_models_as_kernels_write_them() -> None:
    assert cpu_model("processor\t: 0\nmodel name\t: Intel(R)  Xeon(R)\n") == "Intel(R) Xeon(R)"
    assert cpu_model("processor : 0\nCPU part : 0xd0c\n") == "0xd0c"
    assert cpu_model("") is None
    assert free_memory("MemFree: 1 kB\nMemAvailable:    2048 kB\n") == 2048 * 1024
    assert free_memory(None) is None


def test_a_java_that_is_not_there_or_does_not_work(tmp_path: Path) -> None:
    missing = run(facts, {**QUICK, "java_home": str(tmp_path)})["java"]
    assert missing["version"] is None
    assert missing["problem"] == f"{tmp_path}/bin/java: No such file or directory"
    java = tmp_path / "bin" / "java"
    java.parent.mkdir()
    java.write_text("#!/bin/sh\necho 'no memory' >&2; exit 1\n")
    java.chmod(0o755)
    assert "no memory" in run(facts, {**QUICK, "java_home": str(tmp_path)})["java"]["problem"]
    java.write_text("#!/bin/sh\necho 'openjdk version \"17.0.9\" 2023' >&2\n")
    assert run(facts, {**QUICK, "java_home": str(tmp_path)})["java"]["version"] == "17.0.9"


def test_a_directory_that_is_to_be_made_is_where_its_parent_is(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    paths = [str(tmp_path / "to" / "be"), str(tmp_path / "file" / "below")]
    to_be, below = run(facts, {**QUICK, "directories": paths})["directories"].values()
    assert to_be["problem"] is None
    assert to_be["free_bytes"] > 0
    assert below["problem"] == f"{tmp_path}/file is not a directory"


def test_a_port_that_is_taken_and_by_whom(server: socket.socket) -> None:
    port = server.getsockname()[1]
    with socket.create_server(("127.0.0.1", 0)) as other:
        free = other.getsockname()[1]
    request = {**QUICK, "ports": {str(port): "127.0.0.1", str(free): "127.0.0.1"}}
    found = run(facts, request)["ports"]
    assert found[str(free)] is None
    assert found[str(port)]["pid"] == os.getpid()
    assert not found[str(port)]["ours"]


def test_a_port_of_ours_is_told_apart(tmp_path: Path) -> None:
    mark = f"{tmp_path}|cluster"
    program = "import socket,time; s=socket.create_server(('127.0.0.1',0)); "
    program += "print(s.getsockname()[1], flush=True); time.sleep(60)"
    child = subprocess.Popen(
        [sys.executable, "-c", program],
        env={**os.environ, "NEXMARK_OWNER": mark},
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert child.stdout
        port = child.stdout.readline().strip()
        request = {**QUICK, "ports": {port: "127.0.0.1"}, "mark": str(tmp_path)}
        assert run(facts, request)["ports"][port]["ours"]
    finally:
        child.kill()
        child.wait()


def test_an_address_of_another_host_is_a_problem() -> None:
    found = run(facts, {**QUICK, "ports": {"7077": "192.0.2.1"}})["ports"]["7077"]
    assert found["problem"] == "Cannot assign requested address"


def test_what_one_host_writes_another_reads(tmp_path: Path) -> None:
    shared = {"directory": str(tmp_path), "write": {"a": "token of a"}}
    run(facts, {**QUICK, "shared": shared})
    shared = {"directory": str(tmp_path), "read": ["a", "b"], "remove": ["a", "b"]}
    found = run(facts, {**QUICK, "shared": shared})["shared"]
    assert found == {"tokens": {"a": "token of a", "b": None}, "problem": None}
    assert list(tmp_path.iterdir()) == []


def test_who_is_busy_and_not_ours(tmp_path: Path) -> None:
    def burn(owner: str) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-c", "while True: pass", owner]
        return subprocess.Popen(command, env={**os.environ, "NEXMARK_OWNER": owner})

    ours, theirs = burn(str(tmp_path)), burn("somebody")
    by_pid: dict[int, Any] = {}
    try:
        deadline = time.monotonic() + 60
        while theirs.pid not in by_pid and time.monotonic() < deadline:  # a busy machine
            found = run(facts, {"busy_window_s": 1.0, "mark": str(tmp_path)})["busy"]
            by_pid = {x["pid"]: x for x in found}
    finally:
        for child in (ours, theirs):
            child.kill()
            child.wait()
    assert ours.pid not in by_pid
    assert by_pid[theirs.pid]["command"].endswith("pass somebody")
    assert 0 < by_pid[theirs.pid]["cores"] <= 1.1  # beside other busy programs it is a small part


def test_what_a_host_is_leaves_out_how_it_does_now() -> None:
    found = brief(main({"java_home": "/none", "busy_window_s": 0}))
    assert set(found) == {
        *("kernel", "cpu_model", "cores", "governor", "python", "boot_id", "java", "variables")
    }
    assert found["kernel"]
    assert found["java"] is None


def test_variables_that_are_let_in_on_purpose_are_facts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("LD_LIBRARY_PATH", raising=False)
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    monkeypatch.setenv("_JAVA_OPTIONS", "-Xint")
    assert brief(main(QUICK))["variables"] == "TZ=Asia/Tokyo"
    monkeypatch.delenv("TZ")
    assert brief(main(QUICK))["variables"] is None
