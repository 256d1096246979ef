"""Recordings are fetched when they are whole, from whichever host, and nothing is left of them."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from nexmark.cluster import ClusterError
from nexmark.cluster.hosts.host import program_command, program_input, program_result
from nexmark.cluster.hosts.samplers import (
    RECORDING,
    fetch_from,
    pattern_of,
    recordings_on,
    wait_until_whole,
)

APPLICATION = "app-20261121190928-0000"


class ThisHost:
    """A host that is this machine; it runs programs in the same way as any other host."""

    name = "nexmark02"

    def run(
        self, command: Sequence[str], *, timeout_s: float, stdin: bytes | Iterable[bytes] = b""
    ) -> str:
        raise AssertionError("no command is needed")

    def call(
        self,
        program: ModuleType,
        request: Mapping[str, Any],
        *,
        timeout_s: float,
        data: Iterable[bytes] = (),
    ) -> dict[str, Any]:
        done = subprocess.run(
            program_command(sys.executable),
            input=program_input(program, request),
            capture_output=True,
            timeout=timeout_s,
            check=True,
        )
        return program_result(done.stdout)

    def fetch(self, remote: str, local: Path, *, timeout_s: float = 60.0) -> None:
        local.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(remote, local)

    def close(self) -> None: ...


@pytest.fixture
def worker(tmp_path: Path) -> Path:
    """The directory of a worker with two executors of the application and one of another."""
    for place in (f"{APPLICATION}/0", f"{APPLICATION}/1", "app-1/0"):
        (tmp_path / "worker" / place).mkdir(parents=True)
        (tmp_path / "worker" / place / RECORDING).write_text(place)
    return tmp_path / "worker"


def test_the_recordings_of_an_application_are_moved(worker: Path, tmp_path: Path) -> None:
    host, target = ThisHost(), tmp_path / "recordings" / "nexmark02"
    pattern = pattern_of(worker, APPLICATION)
    found = wait_until_whole(lambda: {host.name: recordings_on(host, pattern)}, "01", poll_s=0.01)
    fetch_from(host, found[host.name], target)
    assert {path.name: path.read_text() for path in target.iterdir()} == {
        "0.jfr": f"{APPLICATION}/0",
        "1.jfr": f"{APPLICATION}/1",
    }
    assert recordings_on(host, pattern) == {}
    assert (worker / "app-1" / "0" / RECORDING).exists()


def test_a_host_without_executors_has_none(tmp_path: Path) -> None:
    assert recordings_on(ThisHost(), pattern_of(tmp_path / "nothing", APPLICATION)) == {}


def test_a_recording_is_waited_for_until_it_grows_no_more() -> None:
    sizes = iter([[0, 0], [10, 0], [10, 5], [10, 9], [10, 9], [99, 99]])
    paths = ["app-1/0/x", "app-1/1/x"]
    found = wait_until_whole(
        lambda: {"a": dict(zip(paths, next(sizes), strict=True))}, "01", poll_s=0.001
    )
    assert found == {"a": {"app-1/0/x": 10, "app-1/1/x": 9}}


def test_the_recording_of_an_executor_that_replaced_one_at_the_end_is_left_out() -> None:
    paths = {"app-1/0/x": 10, "app-1/1/x": 0}
    found = wait_until_whole(lambda: {"a": paths}, "0", wait_s=0.1, poll_s=0.001)
    assert found == {"a": {"app-1/0/x": 10}}


@pytest.mark.parametrize(("sizes", "told"), [({}, "0 of 2"), ({"app-1/0/x": 10}, "1 of 2")])
def test_an_executor_that_left_none_is_reported(sizes: dict[str, int], told: str) -> None:
    with pytest.raises(ClusterError, match=f"{told} executors wrote a flight recording"):
        wait_until_whole(lambda: {"a": sizes}, "01", wait_s=0.01, poll_s=0.001)


@pytest.mark.parametrize("application", ["", "../app-1", "app-*", "app 1", "a/b"])
def test_what_is_no_application_id_reaches_no_pattern(application: str) -> None:
    with pytest.raises(ClusterError, match="is not an application id"):
        pattern_of("/work", application)


def test_a_request_is_plain_data() -> None:
    json.dumps({"find": pattern_of(Path("/opt/nexmark/nights/x/worker"), APPLICATION)})
