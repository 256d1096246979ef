"""Hosts that installations on several machines share have one of them at a time."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from nexmark.cluster.hosts.host import program_command, program_input, program_result
from nexmark_jobs.host import leases
from nexmark_jobs.host.leases import locked, main
from nexmark_jobs.host.processes import end, start_detached
from tests.unit.host.programs import attempt, run


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "root" / "lease.json"


@pytest.fixture
def owners(tmp_path: Path) -> tuple[str, str]:
    return f"airflow1:{tmp_path}|", f"airflow2:{tmp_path}|"


def claim(path: Path, owner: str, hold_s: float = 3600) -> dict[str, Any] | None:
    request = {"do": "claim", "path": str(path), "owner": owner, "hold_s": hold_s}
    held: dict[str, Any] | None = main(request | {"night": f"night of {owner}"})["held"]
    return held


def release(path: Path, owner: str) -> None:
    main({"do": "release", "path": str(path), "owner": owner})


@pytest.fixture
def master(owners: tuple[str, str], tmp_path: Path) -> Iterator[str]:
    """A process of the first owner on this host; its owner."""
    mark = f"{owners[0]}nexmark"
    process = start_detached(["sleep", "67"], {"PATH": os.environ["PATH"]}, mark, tmp_path / "log")
    yield owners[0]
    end([process])


def test_of_machines_that_claim_at_once_one_has_the_hosts(
    path: Path, owners: tuple[str, str]
) -> None:
    request = {"do": "claim", "path": str(path), "night": "n", "hold_s": 3600}
    for number in range(3):
        started = [
            subprocess.Popen(
                program_command(sys.executable), stdin=subprocess.PIPE, stdout=subprocess.PIPE
            )
            for _ in range(4)
        ]
        for i, program in enumerate(started):  # all wait for their last line, then go at once
            assert program.stdin is not None
            program.stdin.write(program_input(leases, request | {"owner": f"{number}{i}|"})[:-1])
        for program in started:
            assert program.stdin is not None
            program.stdin.write(b"\n")
            program.stdin.close()
        answers = []
        for program in started:
            assert program.stdout is not None
            answers.append(program_result(program.stdout.read())["held"])
            program.wait()
        assert answers.count(None) == 1, answers
        winner = f"{number}{answers.index(None)}|"
        assert {answer["owner"] for answer in answers if answer} == {winner}
        release(path, winner)
        assert not path.exists()


def test_the_own_lease_is_claimed_again_and_the_others_is_named(
    path: Path, owners: tuple[str, str]
) -> None:
    mine, theirs = owners
    assert claim(path, mine) is None
    assert claim(path, mine) is None
    held = claim(path, theirs)
    assert held is not None
    assert (held["owner"], held["night"]) == (mine, f"night of {mine}")
    assert path.stat().st_mode & 0o777 == 0o600


def test_a_lease_counts_while_a_process_of_its_owner_runs(
    path: Path, owners: tuple[str, str], master: str
) -> None:
    claim(path, master)
    assert claim(path, owners[1], hold_s=0) is not None
    release(path, master)  # of one arm, while the other's master is up
    assert path.exists()


def test_a_lease_of_a_machine_that_is_gone_counts_for_its_time(
    path: Path, owners: tuple[str, str]
) -> None:
    claim(path, owners[0])
    assert claim(path, owners[1], hold_s=60) is not None
    content = json.loads(path.read_text())
    path.write_text(json.dumps(content | {"claimed": time.time() - 61}))
    assert claim(path, owners[1], hold_s=60) is None


def test_a_lease_of_another_is_not_released(path: Path, owners: tuple[str, str]) -> None:
    claim(path, owners[0])
    release(path, owners[1])
    assert claim(path, owners[1]) is not None


def test_a_damaged_lease_counts_as_held_and_says_what_to_do(
    path: Path, owners: tuple[str, str]
) -> None:
    path.parent.mkdir()
    path.write_text("{")
    request = {"do": "claim", "path": str(path), "owner": owners[0], "night": "", "hold_s": 0}
    done = attempt(leases, request)
    assert done.returncode != 0
    last = done.stderr.decode().splitlines()[-1]
    assert last.startswith(f"the lease {path} cannot be read (")
    assert last.endswith("if no night runs on these hosts, remove it")


def test_it_runs_on_a_host_that_has_nothing_of_this_package(
    path: Path, owners: tuple[str, str]
) -> None:
    request = {"do": "claim", "path": str(path), "owner": owners[0], "night": "n", "hold_s": 1}
    assert run(leases, request) == {"held": None}


def test_a_lock_that_is_not_given_back_is_not_waited_for_for_ever(tmp_path: Path) -> None:
    with (
        locked(tmp_path / "lock"),
        pytest.raises(TimeoutError, match="locked by another"),
        locked(tmp_path / "lock", wait_s=0.1),
    ):
        pass
