"""What this package started is found and ended; nothing else is."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from nexmark_jobs.host.processes import (
    Process,
    end,
    environment_of,
    identify,
    owned,
    owner_mark,
    start_detached,
)
from tests.waiting import wait_for

Start = Callable[..., Process]


@pytest.fixture
def mark(tmp_path: Path) -> str:
    return owner_mark(tmp_path, "local")


@pytest.fixture
def start(tmp_path: Path, mark: str) -> Iterator[Start]:
    started: list[Process] = []

    def run(program: str, owner: str = mark) -> Process:
        log = tmp_path / "logs" / "out.log"
        command = [sys.executable, "-c", program]
        process = start_detached(command, dict(os.environ), owner, log)
        started.append(process)
        return process

    yield run
    end(started, grace_s=0.1)


def test_a_started_process_is_found_by_its_mark(start: Start, mark: str) -> None:
    process = start("import time; time.sleep(60)")
    wait_for(lambda: owned(mark) == [process])
    assert "time.sleep(60)" in process.command


def test_another_mark_and_the_caller_are_not_ours(
    start: Start, mark: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stranger = start("import time; time.sleep(60)", owner_mark(tmp_path, "local2"))
    wait_for(lambda: owned(owner_mark(tmp_path, "local2")) == [stranger])
    assert owned(mark) == []
    # A command that runs with the mark itself must not end itself or the shell it runs in.
    program = "import sys; from nexmark_jobs.host.processes import owned; print(owned(sys.argv[1]))"
    child = subprocess.run(
        [sys.executable, "-c", program, mark],
        env={**os.environ, "NEXMARK_OWNER": mark},
        capture_output=True,
        text=True,
    )
    assert child.stdout == "[]\n", child.stderr


def test_children_inherit_the_mark_and_are_ended_with_their_parent(start: Start, mark: str) -> None:
    start("import subprocess, time; subprocess.Popen(['sleep', '61']); time.sleep(60)")
    wait_for(lambda: len(owned(mark)) == 2)
    assert end(owned(mark)) == []
    assert owned(mark) == []


def test_a_process_that_ignores_term_is_killed(start: Start, mark: str, tmp_path: Path) -> None:
    process = start(
        "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN);"
        "print('ready', flush=True); time.sleep(60)"
    )
    wait_for(lambda: "ready" in (tmp_path / "logs" / "out.log").read_text())
    assert end([process], grace_s=0.3) == []
    assert not process.alive


@pytest.mark.parametrize("leader_ends", ["with the others", "before them"])
def test_what_outlives_the_leader_of_its_group_is_waited_for_and_killed(
    start: Start, mark: str, tmp_path: Path, leader_ends: str
) -> None:
    ignores = "import signal, time; signal.signal(15, signal.SIG_IGN); print('ready', flush=True);"
    leader = start(
        "import subprocess, sys, time;"
        f"subprocess.Popen([sys.executable, '-c', {ignores + 'time.sleep(60)'!r}]); time.sleep(60)"
    )
    wait_for(lambda: "ready" in (tmp_path / "logs" / "out.log").read_text())
    if leader_ends == "before them":
        os.kill(leader.pid, signal.SIGKILL)
        wait_for(lambda: not leader.alive)
    assert end([leader], grace_s=0.3) == []
    assert owned(mark) == []


def test_without_any_grace_it_is_gone_all_the_same(start: Start, mark: str) -> None:
    process = start("import time; time.sleep(60)")
    assert end([process], grace_s=0) == []
    assert not process.alive


def test_a_pid_that_is_used_again_is_another_process() -> None:
    me = identify(os.getpid())
    assert me is not None
    assert me.alive
    assert not Process(me.pid, me.start_ticks + 1).alive
    assert end([Process(me.pid, me.start_ticks + 1)]) == []


def test_a_process_is_found_while_it_becomes_another_program(tmp_path: Path, mark: str) -> None:
    """As the script that starts a JVM does; the kernel shows it without an environment then.

    A shell also takes its environment apart while it reads it: a few looks may still miss it.
    """
    program = 'exec bash -c "$0" "$0"'  # for ever
    command = ["bash", "-c", program, program]
    process = start_detached(command, {"PATH": os.environ["PATH"]}, mark, tmp_path / "log")
    try:
        assert sum(owned(mark) == [process] for _ in range(500)) > 490
    finally:
        end([process], grace_s=0)


def test_a_process_without_any_environment_is_not_waited_for() -> None:
    with subprocess.Popen(["sleep", "60"], env={}) as process:
        try:
            wait_for(lambda: b"sleep" in Path(f"/proc/{process.pid}/cmdline").read_bytes())
            begin = time.monotonic()
            assert environment_of(process.pid) == b""
            assert time.monotonic() - begin < 0.5
        finally:
            process.kill()


def test_a_zombie_counts_as_ended() -> None:
    child = subprocess.Popen(["true"])
    wait_for(lambda: identify(child.pid) is None)
    child.wait()
