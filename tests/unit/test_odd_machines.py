"""A damaged database, a home that is a file, a terminal without letters: one line, no traceback."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from nexmark.cli.app import main
from nexmark.errors import NexmarkError
from nexmark.home import make_home
from nexmark.store import StoreError, open_store

DAMAGED = [b"SQLite format 3\0" + b"\xff" * 8192, b"no database at all\n" * 100]


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("NEXMARK_HOME", str(tmp_path / "home"))
    monkeypatch.delenv("NEXMARK_DB", raising=False)
    return tmp_path / "home"


@pytest.mark.parametrize("content", DAMAGED)
def test_a_damaged_database_says_so_with_its_remedy(
    home: Path, content: bytes, capsys: pytest.CaptureFixture[str]
) -> None:
    home.mkdir()
    (home / "results.db").write_bytes(content)
    assert main(["nights"]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert "it is damaged" in line
    assert "put a copy of it back, or move it away" in line
    assert "disk space" not in line
    with pytest.raises(StoreError, match="it is damaged"):
        open_store(f"sqlite:///{home / 'results.db'}")


def test_a_page_of_the_database_that_is_lost_is_damage_too(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    home.mkdir()
    path = home / "results.db"
    open_store(f"sqlite:///{path}").close()
    with path.open("r+b") as file:
        file.seek(100)
        file.write(b"\xff" * (path.stat().st_size - 100))
    assert main(["nights"]) == 2
    assert "it is damaged" in capsys.readouterr().err


def test_an_empty_database_has_no_results_yet(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    home.mkdir()
    (home / "results.db").touch()
    assert main(["nights"]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert "it has no tables of ours, so there are no results yet; start a night with" in line


@pytest.mark.parametrize("below", ["", "/below"])
@pytest.mark.parametrize(
    "verb", [["nights"], ["kafka", "status"], ["run"], ["experiment", "--list"]]
)
def test_a_home_that_is_a_file_is_one_line(
    home: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    below: str,
    verb: list[str],
) -> None:
    home.write_text("")
    monkeypatch.setenv("NEXMARK_HOME", f"{home}{below}")
    assert main(verb) == 2
    assert capsys.readouterr().err == (
        f"NEXMARK_HOME: {home}{below}: {home} is no directory; name a directory of yours\n"
    )
    with pytest.raises(NexmarkError, match="is no directory"):
        make_home()


def test_a_terminal_that_is_ascii_only_gets_all_the_rest(home: Path) -> None:
    code = "import sys; from nexmark.terminal import run_command, show_line\n"
    code += "sys.exit(run_command(lambda: show_line('ratio 1.0 \\u00b1 0.1 \\u2265') or 0))"
    environment = {**os.environ, "PYTHONIOENCODING": "ascii", "NEXMARK_HOME": str(home)}
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == "ratio 1.0 ? 0.1 ?\n"
