"""Releases on a host: whole or not at all, resumed, and no more of them than wanted."""

from __future__ import annotations

import errno
import hashlib
import io
import os
import subprocess
import sys
import tarfile
import time
from pathlib import Path
from typing import Any

import pytest

from nexmark.cluster.hosts.host import program_command, program_input
from nexmark.engines.build import scan
from nexmark_jobs.host import releases
from nexmark_jobs.host.releases import look, prune, sweep
from tests.unit.host.programs import attempt, run

FILES = {"bin/tool": b"#!/bin/sh\n", "lib/a.jar": b"a" * 70_000, "lib/b.jar": b"b" * 5}
NAME = "spark-1"


def tar(files: dict[str, bytes]) -> bytes:
    target = io.BytesIO()
    with tarfile.open(fileobj=target, mode="w") as archive:
        for name, content in files.items():
            member = tarfile.TarInfo(name)
            member.size, member.mode = len(content), 0o755 if "bin" in name else 0o644
            archive.addfile(member, io.BytesIO(content))
    return target.getvalue()


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "opt"


@pytest.fixture
def digest(tmp_path: Path) -> str:
    for name, content in FILES.items():
        (tmp_path / "source" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "source" / name).write_bytes(content)
    return scan(tmp_path / "source").id


def receiving(root: Path, digest: str, archive: bytes, offset: int = 0) -> dict[str, Any]:
    return {
        "do": "receive",
        "root": str(root),
        "name": NAME,
        "digest": digest,
        "offset": offset,
        "bytes": len(archive),
        "sha256": hashlib.sha256(archive).hexdigest(),
        "unpacked_bytes": 80_000,
    }


def receive(root: Path, digest: str, name: str = NAME) -> None:
    archive = tar(FILES)
    run(releases, receiving(root, digest, archive) | {"name": name}, archive)


def leftovers(root: Path) -> list[str]:
    return [x.name for x in (*(root / "incoming").iterdir(), *(root / "releases").glob(".*"))]


def test_what_was_sent_is_there_and_whole(root: Path, digest: str) -> None:
    receive(root, digest)
    release = root / "releases" / NAME
    assert {name: (release / name).read_bytes() for name in FILES} == FILES
    assert os.access(release / "bin" / "tool", os.X_OK)
    assert not os.access(release / "lib" / "a.jar", os.X_OK)
    assert look(root, NAME, digest)["whole"]
    assert leftovers(root) == []


def test_a_release_that_was_changed_is_not_whole(root: Path, digest: str) -> None:
    release = root / "releases" / NAME
    changes = (
        lambda: (release / "lib" / "b.jar").write_bytes(b"c" * 5),
        lambda: (release / "lib" / "b.jar").unlink(),
        lambda: (release / "lib" / "c.jar").touch(),
        lambda: (release / ".release.json").unlink(),
    )
    for change in changes:
        receive(root, digest)
        assert look(root, NAME, digest)["whole"]
        change()
        assert not look(root, NAME, digest)["whole"]
    receive(root, digest)
    (release / "__pycache__").mkdir()
    (release / "__pycache__" / "x.pyc").touch()
    assert look(root, NAME, digest)["whole"]
    assert not look(root, NAME, "another")["whole"]


def test_one_changed_byte_is_found_where_size_and_time_stay(root: Path, digest: str) -> None:
    receive(root, digest)
    file = root / "releases" / NAME / "lib" / "a.jar"
    times = (file.stat().st_atime_ns, file.stat().st_mtime_ns)
    file.write_bytes(b"a" * 69_999 + b"b")
    os.utime(file, ns=times)
    assert not look(root, NAME, digest)["whole"]


def test_an_interrupted_copy_is_resumed(root: Path, digest: str) -> None:
    archive = tar(FILES)
    done = attempt(releases, receiving(root, digest, archive), archive[:30_000])
    assert b"interrupted after 30000 of" in done.stderr.splitlines()[-1]
    found = look(root, NAME, digest)
    assert found == {
        "whole": False,
        "part_bytes": 30_000,
        "part_sha256": hashlib.sha256(archive[:30_000]).hexdigest(),
    }
    run(releases, receiving(root, digest, archive, 30_000), archive[30_000:])
    assert look(root, NAME, digest)["whole"]
    assert leftovers(root) == []


def test_a_byte_that_changed_on_its_way_is_noticed(root: Path, digest: str) -> None:
    archive = tar(FILES)
    wrong = archive[:20_000] + b"?" + archive[20_001:]
    done = attempt(releases, receiving(root, digest, archive), wrong)
    assert done.returncode == 1
    assert b"not the sent ones" in done.stderr
    assert not look(root, NAME, digest)["whole"]
    assert leftovers(root) == []


def test_what_unpacks_to_something_else_is_not_used(root: Path) -> None:
    archive = tar(FILES)
    done = attempt(releases, receiving(root, "0123456789abcdef", archive), archive)
    assert b"another digest" in done.stderr
    assert list((root / "releases").iterdir()) == []
    assert leftovers(root) == []


@pytest.mark.parametrize("name", ["../stranger", "/tmp/stranger"])
def test_a_file_outside_of_the_release_is_refused(root: Path, digest: str, name: str) -> None:
    archive = tar({name: b"x"})
    done = attempt(releases, receiving(root, digest, archive), archive)
    assert b"only files below a release" in done.stderr
    assert leftovers(root) == []


def test_too_little_room_is_reported_before_anything_comes(root: Path, digest: str) -> None:
    archive = tar(FILES)
    request = receiving(root, digest, archive) | {"unpacked_bytes": 1 << 60}
    done = attempt(releases, request, archive)
    assert b"make room" in done.stderr.splitlines()[-1]
    assert leftovers(root) == []


def test_a_disk_that_fills_up_leaves_nothing(
    root: Path, digest: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> str:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    archive = tar(FILES)
    monkeypatch.setattr(releases, "_unpack", full)
    source = io.BytesIO(archive)
    monkeypatch.setattr(releases.select, "select", lambda *_: ([source], [], []))
    with pytest.raises(SystemExit, match=r"disk of .* is full"):
        releases._receive(receiving(root, digest, archive), root, source)
    assert leftovers(root) == []


def test_the_newest_of_a_kind_stay(root: Path, digest: str) -> None:
    for name in ("spark-1", "spark-2", "spark-3", "jobs-1"):
        receive(root, digest, name)
    old = time.time() - 1000
    os.utime(root / "releases" / "spark-1" / ".release.json", (old, old))
    os.utime(root / "releases" / "spark-2" / ".release.json", (old + 1, old + 1))
    assert look(root, "spark-1", digest)["whole"]  # used: now it is newer than spark-2
    assert prune(root, "spark-3", 2) == ["spark-2"]
    left = sorted(release.name for release in (root / "releases").iterdir())
    assert left == ["jobs-1", "spark-1", "spark-3"]


def test_a_release_that_a_process_of_ours_uses_stays(root: Path, digest: str) -> None:
    for name in ("spark-1", "spark-2"):
        receive(root, digest, name)
    used = root / "releases" / "spark-1"
    os.utime(used / ".release.json", (0, 0))
    environment = {"NEXMARK_OWNER": "x", "SPARK_HOME": str(used), "PATH": os.environ["PATH"]}
    with subprocess.Popen(["sleep", "60"], env=environment) as process:
        try:
            assert prune(root, "spark-2", 1) == []
        finally:
            process.kill()
    assert prune(root, "spark-2", 1) == ["spark-1"]


def test_what_interrupted_copies_left_is_swept_but_not_what_goes_on(
    root: Path, digest: str
) -> None:
    (root / "incoming").mkdir(parents=True)
    (root / "incoming" / "spark-0.tar.part").write_bytes(b"half")
    dead = root / "releases" / ".spark-0-999999999-5"
    (dead / "lib").mkdir(parents=True)
    archive = tar(FILES)
    with subprocess.Popen(program_command(sys.executable), stdin=subprocess.PIPE) as copy:
        assert copy.stdin
        copy.stdin.write(program_input(releases, receiving(root, digest, archive)) + archive[:9])
        copy.stdin.flush()
        part = root / "incoming" / f"{NAME}.tar.part"
        deadline = time.monotonic() + 20
        while not part.exists():
            assert time.monotonic() < deadline
            time.sleep(0.02)
        time.sleep(0.2)
        removed = sweep(root)
        assert removed == [str(root / "incoming" / "spark-0.tar.part"), str(dead)]
        copy.stdin.write(archive[9:])
    assert copy.returncode == 0
    assert look(root, NAME, digest)["whole"]
