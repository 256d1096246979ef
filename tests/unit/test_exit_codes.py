"""0 green, 1 red, 2 could not be run, 130 interrupted: whatever a command does."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from nexmark.cli import night_runner
from nexmark.cli.app import main
from nexmark.config import BUILD_DAG_ID, load, paths
from nexmark.model import Value
from nexmark.night.make_night import make_night
from nexmark.night.night_plan import Night
from nexmark.store import open_store
from nexmark.terminal import COULD_NOT_RUN, FOUND_RED, run_command
from tests.unit.store.night_builder import OK, judged, record_pair
from tests.unit.store.store_builder import STARTED

DOCS = Path(__file__).parents[2] / "docs"
RED = replace(OK, value=Value.REGRESSION)
MISSING = replace(OK, value=Value.MISSING, ratio=None)


@pytest.fixture
def planned(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Night:
    """The night that a command begins."""
    monkeypatch.setenv("NEXMARK_HOME", str(tmp_path / "home"))
    monkeypatch.delenv("NEXMARK_DB", raising=False)
    params = {"build": "pypi:4.3.0", "cluster": "local"}
    return make_night(load(), "spark-4.3.0", BUILD_DAG_ID, "", params)


def recorded(*verdicts: object, measured: bool = True, **changes: object) -> None:
    with open_store(paths.database_url()) as store:
        given = {"dag_id": BUILD_DAG_ID, "cluster": "local", "queries": ("q5",), **changes}
        run = judged(store, 1, *verdicts, **given)  # type: ignore[arg-type]
        if measured:
            record_pair(store, run, "q5", candidate=12.0, baseline=10.0)


@pytest.mark.parametrize(
    ("verdicts", "measured", "code"),
    [
        ([RED], True, FOUND_RED),
        ([MISSING], True, FOUND_RED),
        ([replace(OK, value=Value.INVALID)], False, FOUND_RED),
        ([MISSING], False, COULD_NOT_RUN),
        ([OK], True, COULD_NOT_RUN),  # the figures are good; the clusters could not be stopped, say
    ],
)
def test_a_night_that_failed_is_red_only_if_something_was_found(
    planned: Night, verdicts: list[object], measured: bool, code: int
) -> None:
    recorded(*verdicts, measured=measured)
    assert night_runner.exit_code(planned, STARTED) == code


def test_a_query_that_was_not_judged_is_missing(planned: Night) -> None:
    recorded(OK, queries=("q5", "q7"))
    assert night_runner.exit_code(planned, STARTED) == FOUND_RED


def test_a_night_that_was_not_recorded_could_not_be_run(planned: Night) -> None:
    assert night_runner.exit_code(planned, STARTED) == COULD_NOT_RUN
    recorded(RED)
    assert night_runner.exit_code(planned, STARTED + timedelta(days=2)) == COULD_NOT_RUN


@pytest.mark.parametrize("other", [{"dag_id": "nexmark_signoff"}, {"cluster": "namespaces"}])
def test_the_night_of_another_command_does_not_count(planned: Night, other: dict[str, str]) -> None:
    recorded(RED, **other)
    assert night_runner.exit_code(planned, STARTED) == COULD_NOT_RUN


def test_an_error_of_this_package_is_not_red(capsys: pytest.CaptureFixture[str]) -> None:
    def fail() -> int:
        raise LookupError("a mistake of ours")

    assert run_command(fail) == COULD_NOT_RUN
    assert "LookupError: a mistake of ours" in capsys.readouterr().err


def test_the_help_and_the_docs_have_the_same_codes(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--help"]) == 0
    (line,) = re.findall(r"^ *Exit codes: (.*)$", capsys.readouterr().out, re.M)
    table = (DOCS / "versions.md").read_text().split("## Exit codes")[1].split("\n## ")[0]
    codes = re.findall(r"^\| (\d+) \|", table, re.M)
    assert re.findall(r"\d+", line) == codes == ["0", "1", "2", "130"]
