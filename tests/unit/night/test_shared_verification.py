"""One application verifies all queries; one that ends the application costs no other query."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import TextIO

import pytest

from nexmark.night.run_directory import RunDirectory
from nexmark.night.submission import SharedQuery, SharedVerification, SparkApplication
from nexmark.night.verification import DONE, outcomes, run_together


class Failed(Exception):
    """In place of AirflowException."""


@pytest.fixture
def submission(tmp_path: Path) -> SharedVerification:
    queries = {
        name: SharedQuery(arguments=("--query", name), directories=(tmp_path / name,))
        for name in ("q0", "q5", "q7")
    }
    application = SparkApplication(
        label="verify",
        program="verify_queries.py",
        arguments=("--log", "log"),
        arm="candidate",
        profile="default",
        confs={},
        environment={},
        connection="nexmark_local",
        spark_binary="/bin/true",
        engine="spark-4.3.0",
        private=tmp_path / "private",
    )
    directories = (tmp_path / "verify",)
    return SharedVerification(application=application, directories=directories, queries=queries)


def note(log: TextIO, state: str, names: list[str]) -> None:
    log.writelines(
        json.dumps({"query": name, "state": state, "reason": state}) + "\n" for name in names
    )


def application(
    night: Path, crash: str = "", fail: str = ""
) -> tuple[list[list[str]], Callable[[SharedVerification], None]]:
    """What the applications were to run, and one in place of spark-submit."""
    ran: list[list[str]] = []

    def run(submission: SharedVerification) -> None:
        plan = json.loads((night / "verify.json").read_text())
        ran.append([each["query"] for each in plan])
        assert len(submission.directories) == 1 + len(plan)
        at_once = int(submission.application.arguments[-1])
        with (night / "verify.jsonl").open("a") as log:
            for start in range(0, len(plan), at_once):
                together = ran[-1][start : start + at_once]
                note(log, "begun", together)
                if crash in together:
                    raise Failed("exit code 137")
                note(log, "failed", [name for name in together if name == fail])
                note(log, "done", [name for name in together if name != fail])

    return ran, run


def test_one_application_runs_all(submission: SharedVerification, tmp_path: Path) -> None:
    ran, run = application(tmp_path)
    run_together(RunDirectory(tmp_path), submission, run, Failed)
    assert ran == [["q0", "q5", "q7"]]
    assert outcomes(RunDirectory(tmp_path)) == {"q0": DONE, "q5": DONE, "q7": DONE}


def test_a_query_that_fails_is_named_and_the_others_go_on(
    submission: SharedVerification, tmp_path: Path
) -> None:
    ran, run = application(tmp_path, fail="q5")
    run_together(RunDirectory(tmp_path), submission, run, Failed)
    assert len(ran) == 1
    assert outcomes(RunDirectory(tmp_path)) == {"q0": DONE, "q5": "failed", "q7": DONE}


def test_a_query_that_ends_the_application_is_named_and_another_runs_the_rest(
    submission: SharedVerification, tmp_path: Path
) -> None:
    """Two were running: they run one by one then, and only the one that ends it is left out."""
    ran, run = application(tmp_path, crash="q0")
    run_together(RunDirectory(tmp_path), submission, run, Failed)
    assert ran == [["q0", "q5", "q7"], ["q0", "q5", "q7"], ["q5", "q7"]]
    assert outcomes(RunDirectory(tmp_path)) == {
        "q0": "the application ended while it ran: exit code 137",
        "q5": DONE,
        "q7": DONE,
    }


def test_an_application_that_begins_no_query_fails_the_task(
    submission: SharedVerification, tmp_path: Path
) -> None:
    def run(_: SharedVerification) -> None:
        raise Failed("no master")

    with pytest.raises(Failed, match="no master"):
        run_together(RunDirectory(tmp_path), submission, run, Failed)
    assert outcomes(RunDirectory(tmp_path)) == {}


def test_a_task_that_is_tried_again_runs_only_what_is_left(
    submission: SharedVerification, tmp_path: Path
) -> None:
    (tmp_path / "verify.jsonl").write_text('{"query": "q0", "state": "done", "reason": ""}\n')
    ran, run = application(tmp_path)
    run_together(RunDirectory(tmp_path), submission, run, Failed)
    assert ran == [["q5", "q7"]]
