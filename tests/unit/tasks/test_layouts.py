"""A job whose files cannot be laid out fails by itself: the other queries of the night go on."""

from __future__ import annotations

from pathlib import Path

import pytest
from airflow.sdk.exceptions import AirflowFailException

from nexmark.config import Job, paths
from nexmark.config.job_tables import JobTable
from nexmark.night import verification
from nexmark.night.deployments import Deployments
from nexmark.night.night_clusters import check_layout, lay_out_tables
from nexmark.night.night_plan import Night
from nexmark.night.submission import NothingToSubmit
from nexmark.store import open_store
from nexmark.tasks import query as tasks
from tests.unit.tasks.in_task import in_task_of
from tests.unit.tasks.test_recording import begin

SAID = "tables.orders.files: Conversion Error: "


@pytest.fixture
def night(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Night:
    """A night with two jobs; the 30,000th line of the files of `late` has no time."""
    monkeypatch.setenv("NEXMARK_HOME", str(tmp_path))
    monkeypatch.delenv("NEXMARK_DB", raising=False)
    made = begin("run 1", monkeypatch, repetitions=1)
    lines = ["2026-01-01 00:00:00"] * 30_000
    (tmp_path / "fine.csv").write_text("\n".join(["at", *lines]))
    (tmp_path / "late.csv").write_text("\n".join(["at", *lines, "a bad time"]))
    jobs = {}
    for name in ("fine", "late"):
        files = {"files": f"{tmp_path}/{name}.csv", "event_time": "at", "watermark": "1 minute"}
        tables = {"orders": JobTable.model_validate(files)}
        jobs[name] = Job(name=name, sql="a.sql", text="SELECT 1", tables=tables)
    queries = ("fine", "late")
    night = made.model_copy(update={"queries": queries, "jobs": jobs})
    in_task_of(night, monkeypatch)
    for query in queries:
        lay_out_tables(night, query)
    return night


def test_only_the_job_whose_files_are_wrong_is_not_run(night: Night) -> None:
    check_layout(night, "fine")
    assert (night.tables_dir("fine") / "orders").is_dir()
    with pytest.raises(AirflowFailException, match=SAID):
        tasks.plan("late")
    tasks.record("late")
    with open_store(paths.database_url()) as store:
        (row,) = store.repetitions(night.name, ["late"])
    assert row.status == "failed"
    assert (row.reason or "").startswith("not run, because it could not be prepared: ")
    assert SAID in (row.reason or "")


def test_what_has_no_input_is_not_verified_with_the_others(
    night: Night, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []
    monkeypatch.setattr(verification, "verify_submission", lambda *given: asked.append(given[2]))
    planned = verification.plan_together(night, Deployments.read(night).candidate)
    assert isinstance(planned, NothingToSubmit)
    assert asked == []


def test_files_that_were_corrected_are_laid_out_when_the_task_is_cleared(
    night: Night, tmp_path: Path
) -> None:
    (tmp_path / "late.csv").write_text("at\n2026-01-01 00:00:00\n")
    lay_out_tables(night, "late")
    check_layout(night, "late")
