"""`nexmark job`: what needs no Spark."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from nexmark.cli import job_verbs
from nexmark.cli import shared_options as option
from nexmark.cli.app import main
from nexmark.config import own_job, paths
from nexmark.engines import Build
from nexmark.errors import NexmarkError
from nexmark.expectations.contract import ExpectationsError
from nexmark.expectations.suites import ValidationOutcome
from nexmark.jobs.job_check import Checked, JobCheck
from nexmark.terminal import COULD_NOT_RUN, FOUND_RED

BUILD = Build("0123", "4.3.0", Path("/opt/spark"), "pypi:4.3.0")


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
    job = own_job("mine")
    assert job is not None
    assert job.is_proven
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


@pytest.mark.parametrize(
    ("first", "others", "code", "said"),
    [
        (True, "run", 0, "right: 9 rows equal the reference"),
        (False, "run", FOUND_RED, "WRONG: rows differ"),
        (True, "fail", COULD_NOT_RUN, "spark-4.2.1: does not run: no such method"),
        (False, "fail", FOUND_RED, "spark-4.2.1: does not run: no such method"),
        (True, "are not here", 0, "nexmark job check mine --engine spark-4.2.1"),
        (
            NexmarkError("spark-4.3.0: no such column"),
            "run",
            COULD_NOT_RUN,
            "spark-4.3.0: mine does not run: no such column\n",
        ),
        (ExpectationsError("key: a is no column"), "run", COULD_NOT_RUN, "compared: key: a is no"),
    ],
)
def test_the_exit_code_tells_what_is_wrong_from_what_does_not_run(
    conf: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    first: bool | Exception,
    others: str,
    code: int,
    said: str,
) -> None:
    shutil.copytree(paths.repository() / "include" / "conf", conf, dirs_exist_ok=True)
    build = None if others == "are not here" else BUILD
    monkeypatch.setattr(option, "build_of", lambda *_: ("spark-4.3.0", BUILD))
    monkeypatch.setattr(job_verbs, "_fetched", lambda _: build)
    monkeypatch.setattr(JobCheck, "on", lambda *_: checked(first))
    monkeypatch.setattr(JobCheck, "runs_on", lambda _, engine, __: ran(engine, others))
    assert main(["job", "new", "mine"]) == 0
    assert main(["job", "check", "mine"]) == code
    assert said in capsys.readouterr().out


def checked(outcome: bool | Exception) -> Checked:
    """What a run on the first engine found."""
    if isinstance(outcome, Exception):
        raise outcome
    result = {"plan": {"skeleton": "Scan"}, "state": {"operators": []}, "input_rows": 9}
    statistics: dict[str, float | int | None] = {"rows": 9, "proven": 1, "reference_rows": 9}
    failures = () if outcome else ("rows differ",)
    found = ValidationOutcome("mine", outcome, 1, len(failures), failures, statistics, None)
    return Checked("spark-4.3.0", "4.3.0", result, ("a BIGINT",), ((1,),), found)


def ran(engine: str, how: str) -> None:
    if how == "fail":
        raise NexmarkError(f"{engine}: no such method")


def test_a_mistake_in_the_files_of_a_job_is_none_of_the_build(
    conf: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copytree(paths.repository() / "include" / "conf", conf, dirs_exist_ok=True)
    assert main(["job", "new", "mine"]) == 0
    (conf / "jobs" / "mine.yaml").write_text("tables: nexmark\nsql: mine.sql\nkeys: [a]\n")
    assert main(["job", "check", "mine"]) == COULD_NOT_RUN
    assert "mine.yaml:3: keys: unknown key" in capsys.readouterr().err


def test_a_broken_job_is_listed_and_the_others_are_checked(
    conf: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(paths.repository() / "include" / "conf", conf, dirs_exist_ok=True)
    (conf / "jobs" / "broken.yaml").write_text("tables: nexmark\nsql: none.sql\n")
    said = "broken.yaml:2: sql: there is no file"
    assert main(["job", "list"]) == 0
    assert f"{said}" in capsys.readouterr().out
    assert main(["job", "new", "mine"]) == 0
    capsys.readouterr()
    assert main(["job", "list"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[1].startswith("mine ")
    assert lines[2].startswith("broken cannot be run: ")
    monkeypatch.setattr(option, "build_of", lambda *_: ("spark-4.3.0", BUILD))
    monkeypatch.setattr(job_verbs, "_fetched", lambda _: BUILD)
    monkeypatch.setattr(JobCheck, "on", lambda *_: checked(True))
    monkeypatch.setattr(JobCheck, "runs_on", lambda *_: None)
    assert main(["job", "check", "mine"]) == 0
    assert main(["job", "check", "broken"]) == COULD_NOT_RUN
    assert said in capsys.readouterr().err


def test_an_application_whose_input_is_not_there_cannot_be_run(
    conf: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copytree(paths.repository() / "include" / "conf", conf, dirs_exist_ok=True)
    (conf / "jobs" / "orders.py").write_text("print()\n")
    text = 'application: {{main: orders.py, args: ["{{{{ input }}}}"], input: {}, ends: itself}}\n'
    (conf / "jobs" / "orders.yaml").write_text(text.format("/no/such/input"))
    assert main(["job", "check", "orders"]) == COULD_NOT_RUN
    assert "input: /no/such/input is not on this machine" in capsys.readouterr().out
    (conf / "jobs" / "orders.yaml").write_text(text.format(conf))
    assert main(["job", "check", "orders"]) == 0
