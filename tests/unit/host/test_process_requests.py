"""The processes of a host, by request: started with a mark, found by it, ended."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from nexmark_jobs.host import processes
from tests.unit.host.programs import attempt, run


@pytest.fixture
def mark(tmp_path: Path) -> Iterator[str]:
    yield f"{tmp_path}|cluster"
    processes.end(processes.marked(str(tmp_path)), grace_s=0.1)


def start(command: list[str], mark: str, log: Path, **environment: str) -> dict[str, Any]:
    request = {"command": command, "environment": environment, "mark": mark, "log": str(log)}
    return run(processes, {"do": "start", **request})


def test_what_was_started_lives_on_and_is_found_by_its_mark(mark: str, tmp_path: Path) -> None:
    started = start(["sleep", "62"], mark, tmp_path / "log")
    found = run(processes, {"do": "owned", "mark": mark})["processes"]
    assert [x["command"] for x in found] == ["sleep 62"]
    assert {**found[0], **started, "mark": mark} == found[0]


def test_a_mark_that_begins_with_it_is_another_one(mark: str, tmp_path: Path) -> None:
    start(["sleep", "63"], mark, tmp_path / "log")
    start(["sleep", "64"], f"{mark}|sampler", tmp_path / "log")
    exact = run(processes, {"do": "owned", "mark": mark})["processes"]
    assert [x["command"] for x in exact] == ["sleep 63"]
    assert sorted(processes.marked(mark).values()) == [mark, f"{mark}|sampler"]


def test_end_says_what_it_ended_and_what_is_left(mark: str, tmp_path: Path) -> None:
    start(["sleep", "65"], mark, tmp_path / "log")
    done = run(processes, {"do": "end", "mark": mark, "grace_s": 5})
    assert [x["command"] for x in done["ended"]] == ["sleep 65"]
    assert done["left"] == []
    again = run(processes, {"do": "end", "mark": mark, "grace_s": 5})
    assert again == {"ended": [], "left": []}


def test_the_environment_is_that_of_the_request(
    mark: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SPARK_LOCAL_IP", "a stranger's")
    log = tmp_path / "logs" / "out.log"
    start(["env"], mark, log, SECRET="two words; $(echo no)\nand a line")
    deadline = time.monotonic() + 20
    while "NEXMARK_OWNER" not in (log.read_text() if log.exists() else ""):
        assert time.monotonic() < deadline
        time.sleep(0.02)
    text = log.read_text()
    assert "SECRET=two words; $(echo no)\nand a line\n" in text
    assert "PATH=" in text
    assert "SPARK_LOCAL_IP" not in text


def test_a_command_that_is_not_there_is_named_in_the_last_line(tmp_path: Path) -> None:
    request = {"command": ["/no/such"], "environment": {}, "mark": "m", "log": str(tmp_path / "l")}
    done = attempt(processes, {"do": "start", **request})
    assert done.returncode == 1
    assert b"/no/such" in done.stderr.splitlines()[-1]


def test_the_request_does_not_show_in_the_command_line(mark: str, tmp_path: Path) -> None:
    log = tmp_path / "log"
    start(["sh", "-c", "cat /proc/$PPID/cmdline; sleep 66"], mark, log, SECRET="hidden-word")
    found = run(processes, {"do": "owned", "mark": mark})["processes"]
    assert found
    assert not any("hidden-word" in x["command"] for x in found)


def test_a_host_has_nothing_of_this_package(tmp_path: Path) -> None:
    stranger = ModuleType("stranger")
    stranger.__file__ = str(tmp_path / "stranger.py")
    (tmp_path / "stranger.py").write_text("def main(request):\n    import nexmark_jobs.host\n")
    assert b"No module named 'nexmark_jobs" in attempt(stranger, {}).stderr
