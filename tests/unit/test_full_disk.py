"""A disk that fills up is one line with the first reason and the remedy, whoever comes upon it."""

from __future__ import annotations

import os
import sqlite3
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from nexmark.cli import night_runner as run
from nexmark.cli.app import main
from nexmark.cluster import OWNER_VARIABLE, open_cluster
from nexmark.config import load
from nexmark.errors import NexmarkError
from nexmark.home import full_disk, is_full
from nexmark.night.night_progress import PROGRESS_VARIABLE, say, tell_failure
from nexmark.reason import reason_of
from nexmark.store import StoreError, open_store
from tests.unit.store.store_builder import night, record

REMEDY = "free some, or put NEXMARK_HOME on another disk, and run it again"


def write_to_a_full_device() -> None:
    with Path("/dev/full").open("w") as device:
        device.write("x")


def write_to_a_full_database() -> None:
    with sqlite3.connect(":memory:") as database:
        database.execute("PRAGMA max_page_count = 2")
        database.execute("CREATE TABLE t (x)")
        database.execute("INSERT INTO t VALUES (zeroblob(100000))")


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of 2 MB (root)."""
    if os.getuid() != 0:
        pytest.skip("only root can mount a disk")
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", tmp_path], check=True)
    try:
        yield tmp_path
    finally:
        subprocess.run(["umount", "--lazy", tmp_path], check=True)


def fill(disk: Path) -> None:
    with (disk / "fill").open("ab", buffering=0) as file, suppress(OSError):
        while True:
            file.write(bytes(4096))


@pytest.mark.parametrize("write", [write_to_a_full_device, write_to_a_full_database])
def test_a_full_disk_is_known_by_the_kind_of_the_error(write: object) -> None:
    with pytest.raises((OSError, sqlite3.OperationalError)) as caught:
        write()  # type: ignore[operator]
    assert is_full(caught.value)
    behind = NexmarkError("something else")
    behind.__cause__ = caught.value
    assert is_full(behind)
    assert not is_full(NexmarkError("No space left on device"))
    assert not is_full(FileNotFoundError(2, "No such file or directory"))


def test_what_a_night_left_is_ended_on_a_full_disk_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("NEXMARK_HOME", str(tmp_path))
    cluster = open_cluster(load().clusters["local"], tmp_path)
    left = subprocess.Popen(["sleep", "60"], env={OWNER_VARIABLE: cluster.mark})
    monkeypatch.setattr(type(cluster), "claim", lambda *_: write_to_a_full_device())
    run.clear_cluster(cluster)
    left.wait(timeout=10)
    assert "cluster local: stopped without its lease: [Errno 28]" in capsys.readouterr().out


@pytest.mark.parametrize("write", [write_to_a_full_device, write_to_a_full_database])
def test_a_command_that_comes_upon_a_full_disk_says_so_in_one_line(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    write: object,
) -> None:
    monkeypatch.setenv("NEXMARK_HOME", str(tmp_path))
    monkeypatch.setattr(run, "find_problems", lambda _: [])
    monkeypatch.setattr(run, "prepare", lambda _: write())  # type: ignore[operator]
    monkeypatch.setattr(os, "environ", os.environ.copy())
    assert main(["run", "--queries", "q1"]) == 2
    err = capsys.readouterr().err
    assert err.count("\n") == 1
    assert err.endswith(f"; the disk is full: {REMEDY}\n")


def test_a_task_says_what_to_do_and_what_it_cannot_show_does_not_make_it_fail(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Instance:
        task_id, map_index = "q1.record", -1

    shown = tmp_path / "progress"
    monkeypatch.setenv(PROGRESS_VARIABLE, str(shown))
    with pytest.raises(OSError, match="No space left") as caught:
        write_to_a_full_device()
    tell_failure({"ti": Instance(), "exception": caught.value})  # type: ignore[typeddict-item]
    (line,) = shown.read_text().splitlines()
    assert line.startswith("q1.record: failed: [Errno 28] No space left on device; the disk is")
    assert line.endswith(REMEDY)
    monkeypatch.setenv(PROGRESS_VARIABLE, "/dev/full")
    say("nobody sees it")


def test_the_reason_is_no_frame_of_a_stack_trace() -> None:
    text = (
        "Cannot execute: spark-submit. Error code is: 1. Last lines:\n"
        "java.io.IOException: No space left on device\n"
        "\tat java.base/java.io.FileOutputStream.writeBytes(Native Method)\n"
        "\tat java.base/java.lang.Thread.run(Thread.java:840)\n\t... 12 more\n"
    )
    assert reason_of(text) == "java.io.IOException: No space left on device"


def test_the_results_database_on_a_full_disk(
    disk: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Nothing is half written, what was there is there, and the command is one line."""
    url = f"sqlite:///{disk}/results.db"
    with open_store(url) as store:
        record(store, night(1))
        fill(disk)
        with pytest.raises(StoreError, match=r"database or disk is full; .*its disk space"):
            record(store, night(2))
        assert [row.id for row in store.nights()] == [night(1).run]
    monkeypatch.setenv("NEXMARK_DB", url)
    assert main(["accept", "--run", night(1).run, "--reason", "right"]) == 2
    assert capsys.readouterr().err.count("\n") == 1
    assert full_disk(disk / "runs" / "none") == f"disk: {disk} is full (0.0 MB are free); {REMEDY}"
    assert full_disk(Path("/")) == ""
