"""A file is written whole or not at all, and only its owner reads a private one."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from nexmark_jobs.host.whole_files import READABLE, write_whole


def test_a_reader_who_has_the_file_open_keeps_the_old_text(tmp_path: Path) -> None:
    path = tmp_path / "new" / "file"
    write_whole(path, "old")
    with path.open() as reader:
        write_whole(path, "new")
        assert reader.read() == "old"
    assert path.read_text() == "new"
    assert list(path.parent.iterdir()) == [path]


def test_a_text_that_cannot_be_written_leaves_the_old_one_and_nothing_beside(
    tmp_path: Path,
) -> None:
    path = tmp_path / "file"
    write_whole(path, "old")
    with pytest.raises(UnicodeEncodeError):
        write_whole(path, "no letter: \ud800")
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize(("mode", "umask", "expected"), [(None, 0, 0o600), (READABLE, 0o22, 0o644)])
def test_only_the_owner_reads_it_unless_others_may(
    tmp_path: Path, mode: int | None, umask: int, expected: int
) -> None:
    before = os.umask(umask)
    try:
        write_whole(tmp_path / "file", "x", *([] if mode is None else [mode]))
    finally:
        os.umask(before)
    assert (tmp_path / "file").stat().st_mode & 0o777 == expected
