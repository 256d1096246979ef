"""A cluster has one night at a time, whoever claims it at the same moment."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from nexmark.cluster import ClusterError, Lease, LocalCluster, Process, identify
from nexmark.cluster.lease import LeaseFile
from nexmark.config import EmbeddedCluster, load
from tests.unit.cluster import claimants

ROUNDS = 20
DEAD = Process(os.getpid(), 1)


@pytest.fixture
def file(tmp_path: Path) -> LeaseFile:
    return LeaseFile(tmp_path / "local" / "lease.json", "local")


@pytest.fixture
def cluster(tmp_path: Path) -> LocalCluster:
    config = load().clusters["local"]
    assert isinstance(config, EmbeddedCluster)
    return LocalCluster(config, tmp_path / "home")


def ended(lease: Lease) -> bool:
    return False


def goes_on(lease: Lease) -> bool:
    return True


def never_asked(lease: Lease) -> bool:
    raise AssertionError("a process holds it: no scheduler needs to be asked")


@pytest.fixture
def nights(tmp_path: Path) -> Iterator[list[subprocess.Popen[str]]]:
    command = [sys.executable, claimants.__file__, str(tmp_path / "home")]
    started = [
        subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        for _ in range(2)
    ]
    yield started
    for night in started:
        night.kill()
        night.communicate()


def line_of(night: subprocess.Popen[str]) -> str:
    assert night.stdout is not None
    return night.stdout.readline().strip()


def tell(night: subprocess.Popen[str], text: str) -> None:
    assert night.stdin is not None
    night.stdin.write(f"{text}\n")
    night.stdin.flush()


def test_of_two_nights_that_claim_at_once_one_runs_and_the_other_says_who_has_the_cluster(
    nights: list[subprocess.Popen[str]],
) -> None:
    assert [line_of(night) for night in nights] == ["ready", "ready"]
    for _ in range(ROUNDS):
        moment = time.time() + 0.02
        for night in nights:
            tell(night, str(moment))
        said = [line_of(night) for night in nights]
        assert said.count("claimed") == 1, said
        winner = nights[said.index("claimed")]
        (refused,) = (text for text in said if text != "claimed")
        assert refused == (
            f"cluster local: in use by night_{winner.pid} run manual__1 (process {winner.pid}); "
            "wait until it has ended, or end it"
        )
        tell(winner, "release")
        assert line_of(winner) == "released"


@pytest.mark.parametrize("content", ["", '{"dag_id": "n', "[]", '{"dag_id": "n", "run_id": "r"}'])
def test_a_lease_that_cannot_be_read_counts_as_held_and_says_what_to_do(
    cluster: LocalCluster, content: str
) -> None:
    path = cluster.state / "lease.json"
    path.parent.mkdir(parents=True)
    path.write_text(content)
    with pytest.raises(ClusterError) as caught:
        cluster.reap(Lease("nexmark", "manual__1"), ended)
    text = str(caught.value)
    assert text.startswith(f"lease {path}: cannot be read (")
    assert text.endswith("so it counts as held; if no night runs on this cluster, remove the file")
    assert "\n" not in text
    assert path.read_text() == content


def test_a_lease_is_seen_whole_or_not_at_all(file: LeaseFile) -> None:
    """A reader that sees a part would take the cluster of a night that goes on."""
    mine = Lease("nexmark", "x" * 2000, identify(os.getpid()))
    program = (
        "import sys; from pathlib import Path; from nexmark.cluster.lease import LeaseFile, Lease\n"
        "file = LeaseFile(Path(sys.argv[1]), 'local')\n"
        "while True: file.claim(Lease('nexmark', 'x' * 2000, None), lambda _: False)"
    )
    file.claim(mine, never_asked)
    writer = subprocess.Popen([sys.executable, "-c", program, str(file.path)])
    try:
        deadline = time.monotonic() + 20
        while (found := file.holder()) == mine and time.monotonic() < deadline:
            pass
        assert found is not None
        assert found.holder is None
        for _ in range(500):
            assert file.holder() == Lease("nexmark", "x" * 2000)
    finally:
        writer.kill()
        writer.wait()


def test_a_claim_replaces_what_a_killed_process_left_and_an_earlier_try(file: LeaseFile) -> None:
    mine = Lease("nexmark", "manual__1", identify(os.getpid()))
    assert file.claim(Lease("nexmark", "manual__0", DEAD), never_asked)
    assert file.claim(mine, never_asked)
    assert not file.claim(mine, never_asked)
    assert file.holder() == mine
    file.release()
    assert list(file.path.parent.iterdir()) == []


def test_a_scheduler_is_asked_for_a_night_that_no_process_holds(file: LeaseFile) -> None:
    file.claim(Lease("nexmark", "scheduled__0"), never_asked)
    with pytest.raises(ClusterError, match="in use by nexmark run scheduled__0; wait"):
        file.claim(Lease("nexmark", "manual__1"), goes_on)
    assert file.claim(Lease("nexmark", "manual__1"), ended)


def test_two_commands_that_have_begun_no_run_yet_are_not_the_same_night(file: LeaseFile) -> None:
    file.claim(Lease("nexmark", "", identify(os.getpid())), never_asked)
    with pytest.raises(ClusterError, match=f"in use by nexmark \\(process {os.getpid()}\\); wait"):
        file.claim(Lease("nexmark", "", identify(os.getppid())), never_asked)


def test_hosts_that_are_prepared_at_once_get_one_secret(cluster: LocalCluster) -> None:
    for _ in range(20):
        with ThreadPoolExecutor(8) as threads:
            found = {x.result() for x in [threads.submit(cluster._secret) for _ in range(8)]}
        assert len(found) == 1
        shutil.rmtree(cluster.state)


def test_what_is_ended_for_a_restart_keeps_lease_and_secret(cluster: LocalCluster) -> None:
    """Or another night would get the cluster in between, and what was submitted no answer."""
    mine = Lease("nexmark", "scheduled__1")
    cluster.claim(mine)
    secret = cluster._secret()
    cluster.clear()
    assert cluster.holder() == mine
    assert cluster._secret() == secret
    cluster.stop()
    assert cluster.holder() is None
    assert cluster._secret() != secret


def test_a_start_that_fails_keeps_the_lease_that_the_night_had(
    cluster: LocalCluster, tmp_path: Path
) -> None:
    from nexmark.cluster import Release

    for directory in ("bin", "jars"):
        (tmp_path / directory).mkdir()
    (tmp_path / "jars" / "spark-core_2.13-4.3.0.jar").touch()
    (tmp_path / "bin" / "spark-class").write_text("#!/bin/sh\nexit 1\n")
    (tmp_path / "bin" / "spark-class").chmod(0o755)
    mine = Lease("nexmark", "scheduled__1")
    cluster.claim(mine)
    with pytest.raises(ClusterError):
        cluster.start(Release("spark-0", "0", tmp_path), tmp_path / "logs", mine)
    assert cluster.holder() == mine


def test_a_lease_that_cannot_be_claimed_is_one_line(file: LeaseFile, tmp_path: Path) -> None:
    (tmp_path / "local.lock").mkdir()
    with pytest.raises(ClusterError, match=r"lease\.json: cannot be claimed \(") as caught:
        file.claim(Lease("nexmark", "manual__1"), ended)
    assert "\n" not in str(caught.value)
