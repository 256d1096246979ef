"""Releases come to all hosts, whole or not at all, whatever happens on the way."""

from __future__ import annotations

import os
import random
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from nexmark.cluster import ClusterError
from nexmark.cluster.hosts import deploy
from nexmark.cluster.hosts.deploy import DeployOutcome, deploy_release
from nexmark.cluster.hosts.host import Host
from nexmark.cluster.hosts.ssh import HostError
from nexmark.engines.build import Manifest, scan
from tests.cluster.testbed import Testbed

WORKER, OTHER = "nexmark02", "nexmark03"
Outcomes = dict[str, DeployOutcome | HostError]
Send = Callable[..., Outcomes]


@pytest.fixture
def hosts(testbed: Testbed, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Host]]:
    testbed.export(monkeypatch)
    found = []
    for name, machine in testbed.cluster.hosts.items():
        found.append(Host(name, machine.connection, testbed.cluster.python))
        testbed.run(name, "sh", "-c", 'rm -rf "$1"/releases "$1"/incoming/*', "-", root(testbed))
    yield found
    for host in found:
        host.close()


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """200 files, 60 MB."""
    directory = tmp_path_factory.mktemp("build") / "spark"
    numbers = random.Random(1)
    for n in range(200):
        path = directory / f"part{n % 7}" / f"file {n}.jar"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(numbers.randbytes(300_000))
    (directory / "tool").write_text("#!/bin/sh\necho it runs\n")
    (directory / "tool").chmod(0o755)
    return directory


@pytest.fixture(scope="module")
def manifest(source: Path) -> Manifest:
    return scan(source)


@pytest.fixture
def send(testbed: Testbed, hosts: list[Host], source: Path, manifest: Manifest) -> Send:
    """send(): the build goes to all hosts."""

    def run(
        name: str = f"spark-{manifest.id}", keep: int = 3
    ) -> dict[str, DeployOutcome | HostError]:
        return deploy_release(hosts, root(testbed), source, name, manifest.id, keep=keep, say=print)

    return run


@pytest.fixture
def slowly(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is sent takes seconds, as over a network."""
    chunks = deploy._Archive.chunks

    def slow(archive: deploy._Archive, offset: int) -> Iterator[bytes]:
        for data in chunks(archive, offset):
            time.sleep(0.02)
            yield data

    monkeypatch.setattr(deploy._Archive, "chunks", slow)


def root(testbed: Testbed) -> str:
    return testbed.cluster.root


def release(testbed: Testbed, name: str, manifest: Manifest) -> Path:
    """The release on the host, as this machine sees the host's disk."""
    return testbed.hosts[name].disk / "releases" / f"spark-{manifest.id}"


def leftovers(testbed: Testbed, name: str) -> list[str]:
    disk = testbed.hosts[name].disk
    found = [*(disk / "incoming").glob("*"), *(disk / "releases").glob(".*")]
    return [path.name for path in found]


def is_right(testbed: Testbed, name: str, manifest: Manifest) -> bool:
    found = dict(scan(release(testbed, name, manifest)).files)
    found.pop(".release.json", None)
    return Manifest(found).id == manifest.id


def when(condition: Callable[[], bool], act: Callable[[], object]) -> threading.Thread:
    """Do `act` in a thread as soon as `condition` is true."""

    def watch() -> None:
        deadline = time.monotonic() + 30
        while not condition() and time.monotonic() < deadline:
            time.sleep(0.02)
        act()

    thread = threading.Thread(target=watch)
    thread.start()
    return thread


def part_of(testbed: Testbed, name: str, manifest: Manifest) -> Path:
    return testbed.hosts[name].disk / "incoming" / f"spark-{manifest.id}.tar.part"


def half_way(testbed: Testbed, name: str, manifest: Manifest) -> bool:
    part = part_of(testbed, name, manifest)
    return part.exists() and part.stat().st_size > 10_000_000


def test_every_host_has_it_and_it_is_not_sent_again(
    testbed: Testbed, send: Send, manifest: Manifest, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = send()
    for name in testbed.cluster.hosts:
        outcome = first[name]
        assert isinstance(outcome, DeployOutcome), outcome
        assert outcome.sent_bytes > 60_000_000
        assert is_right(testbed, name, manifest)
        assert leftovers(testbed, name) == []
    tool = f"{root(testbed)}/releases/spark-{manifest.id}/tool"
    assert testbed.run(WORKER, tool).stdout == "it runs\n"
    monkeypatch.setattr(deploy._Archive, "_make", lambda _: pytest.fail("it was packed again"))
    again = send()
    assert [getattr(x, "sent_bytes", x) for x in again.values()] == [0, 0, 0]


def test_a_file_that_was_changed_on_a_host_brings_it_again_there_only(
    testbed: Testbed, send: Send, manifest: Manifest
) -> None:
    send()
    (release(testbed, WORKER, manifest) / "tool").write_text("#!/bin/sh\necho something else\n")
    sent = {name: getattr(x, "sent_bytes", x) for name, x in send().items()}
    assert [name for name, count in sent.items() if count] == [WORKER]
    assert is_right(testbed, WORKER, manifest)


@pytest.mark.fault("one byte of a deployed Spark changed", outcome="sent again to that host")
def test_a_byte_that_changed_between_two_nights_brings_it_again(
    testbed: Testbed, send: Send, manifest: Manifest
) -> None:
    send()
    file = next(release(testbed, WORKER, manifest).glob("part*/*.jar"))
    content, times = file.read_bytes(), file.stat()
    file.write_bytes(bytes([content[0] ^ 1]) + content[1:])
    os.utime(file, ns=(times.st_atime_ns, times.st_mtime_ns))
    sent = {name: getattr(x, "sent_bytes", x) for name, x in send().items()}
    assert [name for name, count in sent.items() if count] == [WORKER]
    assert is_right(testbed, WORKER, manifest)


@pytest.mark.fault("sshd killed in mid-deploy", outcome="resumed, whole")
@pytest.mark.usefixtures("slowly")
def test_sshd_killed_in_mid_copy_the_copy_is_resumed(
    testbed: Testbed, send: Send, manifest: Manifest
) -> None:
    def kill() -> None:
        testbed.restart_sshd(WORKER)

    thread = when(lambda: half_way(testbed, WORKER, manifest), kill)
    outcome = send()[WORKER]
    thread.join()
    assert isinstance(outcome, DeployOutcome), outcome
    assert outcome.resumed_bytes > 10_000_000
    assert is_right(testbed, WORKER, manifest)
    assert leftovers(testbed, WORKER) == []


@pytest.mark.fault("link down for good in mid-deploy", outcome="that host fails, resumed later")
@pytest.mark.usefixtures("slowly")
def test_a_cable_pulled_for_good_fails_that_host_only_and_the_next_copy_goes_on(
    testbed: Testbed, send: Send, manifest: Manifest
) -> None:
    thread = when(lambda: half_way(testbed, WORKER, manifest), lambda: testbed.link_down(WORKER))
    try:
        outcomes = send()
    finally:
        thread.join()
        testbed.link_up(WORKER)
    error = outcomes.pop(WORKER)
    assert isinstance(error, HostError)
    assert str(error).startswith(f"host {WORKER}: ")
    assert "\n" not in str(error)
    assert all(isinstance(x, DeployOutcome) for x in outcomes.values())
    assert not release(testbed, WORKER, manifest).exists()
    outcome = send()[WORKER]
    assert isinstance(outcome, DeployOutcome), outcome
    assert outcome.resumed_bytes > 0
    assert is_right(testbed, WORKER, manifest)


@pytest.mark.fault("half a copy of other content", outcome="sent again in full")
def test_a_half_copy_with_other_content_is_sent_again(
    testbed: Testbed, send: Send, manifest: Manifest
) -> None:
    part = part_of(testbed, WORKER, manifest)
    part.parent.mkdir(parents=True, exist_ok=True)
    part.write_bytes(b"?" * 20_000_000)
    outcome = send()[WORKER]
    assert isinstance(outcome, DeployOutcome), outcome
    assert outcome.resumed_bytes == 0
    assert is_right(testbed, WORKER, manifest)


@pytest.mark.fault("half a release of an earlier crash", outcome="removed, sent again in full")
def test_what_an_earlier_crash_left_is_removed(
    testbed: Testbed, send: Send, manifest: Manifest
) -> None:
    disk = testbed.hosts[WORKER].disk
    (disk / "releases" / ".spark-0-999999999-5" / "lib").mkdir(parents=True)
    (disk / "incoming").mkdir(exist_ok=True)
    (disk / "incoming" / "spark-0.tar.part").write_bytes(b"half")
    half = release(testbed, WORKER, manifest)
    half.mkdir(parents=True)
    (half / "tool").write_text("half")
    send()
    assert leftovers(testbed, WORKER) == []
    assert is_right(testbed, WORKER, manifest)


@pytest.mark.fault("disk too small for a deploy", outcome="that host fails, none half made")
def test_a_disk_with_too_little_room_fails_that_host_only(
    testbed: Testbed, send: Send, manifest: Manifest
) -> None:
    with testbed.small_disk(WORKER, "30m"):
        outcomes = send()
        assert testbed.run(WORKER, "ls", f"{root(testbed)}/incoming").stdout == ""
    error = str(outcomes.pop(WORKER))
    assert f"host {WORKER}: " in error
    assert "make room" in error
    assert all(isinstance(x, DeployOutcome) for x in outcomes.values())
    assert not release(testbed, WORKER, manifest).exists()


@pytest.mark.fault("disk full in mid-deploy", outcome="that host fails, none half made")
@pytest.mark.usefixtures("slowly")
def test_a_disk_that_fills_up_in_mid_copy_leaves_nothing(
    testbed: Testbed, send: Send, manifest: Manifest
) -> None:
    place = f"{root(testbed)}/incoming"
    with testbed.small_disk(WORKER, "140m"):
        fill = f"test -s {place}/*.part && head -c 120M /dev/zero >{place}/other"

        def filled() -> bool:
            return testbed.run(WORKER, "sh", "-c", fill, check=False).returncode == 0

        thread = when(filled, lambda: None)
        error = send()[WORKER]
        thread.join()
        assert testbed.run(WORKER, "ls", place).stdout == "other\n"
    assert isinstance(error, HostError)
    assert "is full; make room" in str(error)
    assert not release(testbed, WORKER, manifest).exists()


def test_the_newest_releases_of_a_kind_stay(testbed: Testbed, send: Send) -> None:
    for name in ("spark-a", "spark-b", "spark-c", "jobs-a"):
        send(name, keep=2)
    releases = testbed.hosts[OTHER].disk / "releases"
    assert sorted(x.name for x in releases.iterdir()) == ["jobs-a", "spark-b", "spark-c"]


def test_a_build_that_changed_here_is_not_sent(
    testbed: Testbed, hosts: list[Host], tmp_path: Path
) -> None:
    (tmp_path / "build").mkdir()
    (tmp_path / "build" / "file").write_text("new")
    with pytest.raises(ClusterError, match="so it was changed"):
        deploy_release(
            hosts, root(testbed), tmp_path / "build", "spark-x", "0" * 16, keep=2, say=print
        )
    assert os.listdir(tmp_path) == ["build"]  # noqa: PTH208


def test_all_hosts_are_sent_a_release_at_the_same_time(
    testbed: Testbed,
    hosts: list[Host],
    source: Path,
    manifest: Manifest,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """If one had to wait for another, they would never come together."""
    together = threading.Barrier(len(hosts), timeout=30)
    chunks = deploy._Archive.chunks

    def waiting(archive: deploy._Archive, offset: int) -> Iterator[bytes]:
        together.wait()
        yield from chunks(archive, offset)

    monkeypatch.setattr(deploy._Archive, "chunks", waiting)
    outcomes = deploy_release(
        hosts, root(testbed), source, "spark-together", manifest.id, keep=9, say=print
    )
    assert all(isinstance(x, DeployOutcome) for x in outcomes.values()), outcomes
