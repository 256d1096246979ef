"""Which error class a refusal has, and what the command says to a second application of a build."""

from __future__ import annotations

from pathlib import Path

import pytest

from nexmark.compatibility.application import Application, CheckpointRun
from nexmark.compatibility.cases import Case, Side
from nexmark.compatibility.check import _Direction, _restart
from nexmark.compatibility.results import Compatibility, RestartOutcome, UpgradeClass
from nexmark.engines import Build
from nexmark_jobs.errors import JobError, error_class, one_line


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        ("[STREAM_FAILED] x\n[STATE_STORE_KEY_SCHEMA_NOT_COMPATIBLE] y", "STATE_STORE_KEY_SCHEMA"),
        ("java.lang.IllegalArgumentException: '3' is invalid", "IllegalArgumentException"),
        (JobError("no more rows"), "JobError"),
    ],
)
def test_the_error_class(error: str | Exception, expected: str) -> None:
    assert error_class(error).startswith(expected)


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        ("[STREAM_FAILED] x\n[STATE_STORE_KEY_SCHEMA_NOT_COMPATIBLE] y\njava.io.Bad: z", "[STATE_"),
        (
            "py4j.Py4JException: Traceback (most recent call last):\nat a.b\norg.x.Refused: it",
            "org.x.",
        ),
        (JobError("\nno more rows"), "no more rows"),
        ("", "str"),
    ],
)
def test_the_reason_is_the_innermost_cause(error: str | Exception, expected: str) -> None:
    assert one_line(error).startswith(expected)


def test_a_run_resumes_from_one_that_an_application_did_before_it_ended(tmp_path: Path) -> None:
    run = CheckpointRun("second", [], {}, after="first")
    application = Application(Build("id", "4.3.0", tmp_path, "x"), [run], tmp_path)
    assert application._as_json(run)["after"] == "first"
    application.records["first"] = {"state": "failed"}
    assert application._as_json(run)["after"] == "first"
    application.records["first"] = {"state": "done"}
    assert application._as_json(run)["after"] is None


@pytest.mark.parametrize(
    ("record", "outcome", "class_"),
    [
        ({"reason": "did not end within 900 s"}, RestartOutcome.NOT_ENDED, UpgradeClass.UNKNOWN),
        (
            {"reason": "no", "error_class": "SOME_CLASS"},
            RestartOutcome.REFUSED,
            UpgradeClass.INCOMPATIBLE,
        ),
        (
            {"state": "wrong", "reason": "1 rows came behind"},
            RestartOutcome.WRONG,
            UpgradeClass.WRONG,
        ),
    ],
)
def test_only_what_spark_refuses_is_incompatible(
    record: dict[str, str], outcome: RestartOutcome, class_: UpgradeClass, tmp_path: Path
) -> None:
    side, case = Side(Build("id", "4.3.0", tmp_path, "x")), Case("q5", "a", "a")
    direction = _Direction("forward", case, (side, side), ("a", "a"), tmp_path)
    first, second = direction.ids
    records = {first: {"state": "done"}, second: {"state": "failed", **record}}
    restart = _restart(direction, records)
    assert restart.outcome is outcome
    assert Compatibility(case, (None, None), None, restart).class_ is class_
