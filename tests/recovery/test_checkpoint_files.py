"""What a killed query was doing, from the files of its checkpoint."""

from __future__ import annotations

import os
import shutil
import time
from pathlib import Path

import pytest

from nexmark.recovery.checkpoint_files import (
    commits,
    gaps,
    is_restoring,
    is_uploading,
    local_stores,
    moment,
    size,
)


def write(checkpoint: Path, *names: str) -> None:
    for name in names:
        path = checkpoint / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("v1")


def test_no_checkpoint_yet(tmp_path: Path) -> None:
    assert commits(tmp_path) == {}
    assert moment(tmp_path, -1) == ("start", 0)


def test_files_half_written_are_no_commits(tmp_path: Path) -> None:
    write(tmp_path, "commits/0", "commits/.1.6d1b.tmp", "commits/.0.crc")
    assert list(commits(tmp_path)) == [0]


@pytest.mark.parametrize(
    ("files", "committed_at_start", "expected"),
    [
        (["offsets/0", "commits/0"], 0, ("start", 1)),
        (["offsets/0", "commits/0"], -1, ("batch", 1)),
        (["offsets/0", "offsets/1", "commits/0"], 0, ("batch", 1)),
        (["offsets/0", "offsets/1", "commits/0", "state/0/1/1.zip"], 0, ("batch", 1)),
        (["offsets/0", "offsets/1", "commits/0", "state/0/1/2.zip"], 0, ("commit", 1)),
        (["offsets/0", "offsets/1", "commits/0", "state/0/0/left/2.delta"], 0, ("commit", 1)),
        (["offsets/0", "offsets/1", "commits/0", "state/0/1/2.changelog"], 0, ("commit", 1)),
    ],
)
def test_the_moment_of_a_kill(
    tmp_path: Path, files: list[str], committed_at_start: int, expected: tuple[str, int]
) -> None:
    write(tmp_path, *files)
    assert moment(tmp_path, committed_at_start) == expected


def test_times_between_commits(tmp_path: Path) -> None:
    write(tmp_path, "commits/0", "commits/1", "commits/3")
    for batch, at in ((0, 100.0), (1, 101.5), (3, 110.0)):
        os.utime(tmp_path / "commits" / str(batch), (at, at))
    assert gaps(commits(tmp_path)) == {1: 1.5}


def test_bytes_of_all_files(tmp_path: Path) -> None:
    write(tmp_path, "offsets/0", "state/0/0/1.delta")
    assert size(tmp_path) == 4


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        (["state/0/1/.2.delta.6d1b.tmp"], True),
        (["state/0/1/left/.2.changelog.6d1b.tmp"], True),
        (["state/0/1/.1.delta.6d1b.tmp"], False),
        (["state/0/1/SSTs/7.sst"], True),
        (["state/0/1/SSTs/7.sst", "state/0/1/2.zip"], False),
        (["state/0/1/2.zip"], False),
    ],
)
def test_an_upload_is_seen_by_files_on_their_way(
    tmp_path: Path, files: list[str], expected: bool
) -> None:
    write(tmp_path, "offsets/0", "offsets/1", "commits/0")
    os.utime(tmp_path / "offsets" / "1", (100.0, 100.0))
    write(tmp_path, *files)
    assert is_uploading(tmp_path, 1) is expected
    assert (moment(tmp_path, 0)[0] == "upload") is expected


def test_a_temporary_file_without_content_is_no_upload(tmp_path: Path) -> None:
    write(tmp_path, "offsets/0", "state/0/1/.1.delta.6d1b.tmp")
    (tmp_path / "state/0/1/.1.delta.6d1b.tmp").write_text("")
    assert not is_uploading(tmp_path, 0)


def test_a_store_that_is_not_open_yet_is_being_restored(tmp_path: Path) -> None:
    checkpoint, scratch = tmp_path / "checkpoint", tmp_path / "scratch"
    write(checkpoint, "offsets/0", "offsets/1", "commits/0")
    write(scratch, "spark-1/StateStoreId(opId=0)-1/workingDir-2/000008.sst")
    assert is_restoring(scratch, 0.0)
    assert moment(checkpoint, 0, scratch) == ("restore", 1)
    assert moment(checkpoint, 0, scratch, since=time.time() + 60) == ("batch", 1)
    write(scratch, "spark-1/StateStoreId(opId=0)-1/workingDir-2/LOCK")
    assert not is_restoring(scratch, 0.0)


def test_directories_may_vanish_while_they_are_searched(tmp_path: Path) -> None:
    for number in range(20):
        write(tmp_path, f"blockmgr-1/{number}/StateStoreId(opId=0)-{number}/LOCK")
    stores = local_stores(tmp_path)
    assert next(stores).name.startswith("StateStoreId")
    shutil.rmtree(tmp_path / "blockmgr-1")
    assert list(stores) == []
