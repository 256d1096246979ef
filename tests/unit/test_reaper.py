"""After kill -9 of a command its reaper ends what it started, and then itself."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from nexmark.cluster import Lease, LocalCluster, Process, identify
from nexmark.config import EmbeddedCluster, load
from nexmark.reaper import COMMAND_VARIABLE, wait_for_reapers
from nexmark_jobs.host.processes import (
    end,
    marked,
    owned,
    owner_mark,
    start_detached,
    with_variable,
)
from tests.waiting import wait_for

#: A minute is what is promised.
WITHIN_S = 20
COMMAND = """
import os, sys
from pathlib import Path
from nexmark.cluster import Lease, LocalCluster, identify
from nexmark.config import load
from nexmark.reaper import command_of_environment, command_variables, reaper_of_command
from nexmark_jobs.host.processes import start_detached

home = Path(os.environ["NEXMARK_HOME"])
os.environ.update(command_variables())
with reaper_of_command(os.environ):
    def start(mark, *command, **changes):
        start_detached(command, {**os.environ, **changes}, f"{home}|{mark}", home / "log")
    start("a", "sleep", "301")
    start("b", "sh", "-c", "trap '' TERM; sleep 302 & sleep 303; sleep 304")
    start("local", "env", "-u", "NEXMARK_COMMAND", "sleep", "305")
    cluster = LocalCluster(load().clusters["local"], home)
    cluster.claim(Lease("nexmark", "scheduled__1", None, command_of_environment()))
    print("ready", flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("NEXMARK_HOME", str(tmp_path))
    return tmp_path


@pytest.fixture
def cluster(home: Path) -> LocalCluster:
    config = load().clusters["local"]
    assert isinstance(config, EmbeddedCluster)
    return LocalCluster(config, home)


@pytest.fixture
def command(home: Path) -> Iterator[subprocess.Popen[str]]:
    """A command that has started processes, in a process group of its own."""
    process = subprocess.Popen(
        [sys.executable, "-c", COMMAND],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    yield process
    process.kill()
    process.communicate()
    wait_for(lambda: not owned(owner_mark(home, "reaper")), WITHIN_S)
    end(marked(f"{home}|"), grace_s=0.1)


def started(home: Path) -> list[str]:
    """What it has started, its reaper and the rest."""
    return sorted(process.command for process in marked(f"{home}|"))


@pytest.mark.parametrize("group", [False, True])
def test_what_a_killed_command_has_started_ends_by_itself_and_so_does_its_reaper(
    command: subprocess.Popen[str], home: Path, cluster: LocalCluster, group: bool
) -> None:
    assert len(started(home)) >= 5
    assert len(owned(owner_mark(home, "reaper"))) == 1
    (os.killpg if group else os.kill)(command.pid, signal.SIGKILL)
    command.wait()
    wait_for(lambda: not started(home), WITHIN_S)
    assert cluster.holder() is None
    log = (home / "logs" / "reaper.log").read_text()
    assert f"the command with process {command.pid} has ended" in log
    assert "sleep 301" in log


def test_the_next_command_waits_until_what_a_killed_one_has_left_is_ended(
    command: subprocess.Popen[str], home: Path, cluster: LocalCluster
) -> None:
    said: list[str] = []
    wait_for_reapers(said.append)
    assert said == []  # its command lives
    command.kill()
    command.wait()
    wait_for_reapers(said.append)
    assert said == ["waiting: processes of a killed command are being ended"]
    assert started(home) == []
    assert cluster.holder() is None


def test_a_command_that_ends_by_itself_ends_its_reaper_and_nothing_else(
    command: subprocess.Popen[str], home: Path, cluster: LocalCluster
) -> None:
    """A scheduler that is ended and started again goes on with its night."""
    command.communicate()
    assert owned(owner_mark(home, "reaper")) == []
    assert "sleep 301" in started(home)
    lease = cluster.holder()
    assert lease is not None
    assert lease.command == Process(command.pid, lease.command.start_ticks if lease.command else 0)


def test_what_another_command_has_started_is_not_touched(
    command: subprocess.Popen[str], home: Path, cluster: LocalCluster
) -> None:
    me = identify(os.getpid())
    assert me is not None
    cluster.release()
    cluster.claim(Lease("nexmark", "manual__2", me, me))
    text = f"{me.pid}:{me.start_ticks}"
    other = start_detached(
        ["sleep", "306"], {**os.environ, COMMAND_VARIABLE: text}, f"{home}|local", home / "log"
    )
    command.kill()
    command.wait()
    wait_for(lambda: not owned(owner_mark(home, "reaper")), WITHIN_S)
    assert other in with_variable(COMMAND_VARIABLE, text)  # this process may have others
    assert cluster.holder() == Lease("nexmark", "manual__2", me, me)
