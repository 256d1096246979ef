"""Files and directories that nobody else can read."""

from __future__ import annotations

from pathlib import Path

import pytest

from nexmark.home import make_home, write_private
from nexmark.store import open_store

RIGHTS = 0o777


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("NEXMARK_HOME", str(tmp_path / "home"))
    return tmp_path / "home"


def rights(path: Path) -> int:
    return path.stat().st_mode & RIGHTS


def test_a_home_is_its_owners(home: Path) -> None:
    make_home()
    assert rights(home) == 0o700


def test_one_that_was_open_is_closed(home: Path) -> None:
    home.mkdir()
    home.chmod(0o755)
    (home / "results.db").touch()
    (home / "results.db").chmod(0o644)
    open_store(f"sqlite:///{home / 'results.db'}").close()
    assert (rights(home), rights(home / "results.db")) == (0o700, 0o600)


def test_a_database_elsewhere_is_made_for_its_owner_and_left_as_that_sets_it(
    home: Path, tmp_path: Path
) -> None:
    database = tmp_path / "shared" / "results.db"
    open_store(f"sqlite:///{database}").close()
    assert rights(database) == 0o600
    database.chmod(0o640)
    open_store(f"sqlite:///{database}").close()
    assert rights(database) == 0o640
    assert not home.exists()


def test_a_private_file_is_whole_and_closed(tmp_path: Path) -> None:
    path = tmp_path / "private" / "a.conf"
    write_private(path, "one")
    path.chmod(0o644)
    write_private(path, "two")
    assert (path.read_text(), rights(path), rights(path.parent)) == ("two", 0o600, 0o700)
    assert [x.name for x in path.parent.iterdir()] == ["a.conf"]
