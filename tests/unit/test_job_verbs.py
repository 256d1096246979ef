"""`nexmark job`: what needs no Spark."""

from __future__ import annotations

from pathlib import Path

import pytest

from nexmark.cli.app import main
from nexmark.config import load_jobs


@pytest.fixture(autouse=True)
def conf(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("NEXMARK_CONF", str(tmp_path))
    return tmp_path


def test_a_new_job_is_whole_and_listed(conf: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["job", "new", "mine"]) == 0
    assert {path.name for path in (conf / "jobs").iterdir()} == {
        "mine.yaml",
        "mine.sql",
        "mine.duckdb.sql",
    }
    assert load_jobs(conf)["mine"].is_proven
    capsys.readouterr()
    assert main(["job", "list"]) == 0
    assert capsys.readouterr().out.splitlines()[1].split() == [
        *("mine", "mine.sql", "nexmark", "append", "auction,window_start", "mine.duckdb.sql")
    ]


def test_no_job_is_said_with_the_way_to_one(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["job", "list"]) == 0
    assert "nexmark job new NAME" in capsys.readouterr().out


def test_what_is_there_is_not_overwritten(conf: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["job", "new", "mine"]) == 0
    (conf / "jobs" / "mine.sql").write_text("SELECT 1")
    assert main(["job", "new", "mine"]) != 0
    assert "mine.yaml exists; take another name" in capsys.readouterr().err
    assert (conf / "jobs" / "mine.sql").read_text() == "SELECT 1"


@pytest.mark.parametrize("name", ["q5", "Mine", "suite"])
def test_a_name_that_no_job_can_have_writes_nothing(conf: Path, name: str) -> None:
    assert main(["job", "new", name]) != 0
    assert not (conf / "jobs").exists()
