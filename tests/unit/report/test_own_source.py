"""The page of a job of a person's own has its source as the night ran it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from nexmark.config import Job
from nexmark.config.application_models import JobApplication
from nexmark.evidence.query_evidence import QuerySource, _own_source, source_of
from nexmark.night.run_directory import RunDirectory

SQL = Job(
    name="busy",
    tables="nexmark",
    sql="busy.sql",
    text="SELECT auction FROM bid",
    reference="busy.duckdb.sql",
    reference_text="SELECT auction FROM bid -- in DuckDB",
)
PYTHON = Job(name="busy", tables="nexmark", python="busy.py:build", text="def build(a, b): ...")
APPLICATION = Job(name="busy", application=JobApplication(main="a/orders.py", ends="itself"))


def source_in(directory: Path, job: Job) -> QuerySource | None:
    """Return what a night says of a job in its plan."""
    files = RunDirectory(directory)
    files.night.write_text(json.dumps({"jobs": {"busy": job.model_dump(mode="json")}}))
    return _own_source(files, "busy")


@pytest.mark.parametrize(
    ("job", "reference", "text", "name"),
    [
        (SQL, SQL.reference_text, SQL.text, "busy.sql"),
        (PYTHON, "", PYTHON.text, "busy.py:build"),
    ],
)
def test_the_text_of_a_job_is_as_its_night_ran_it(
    tmp_path: Path, job: Job, reference: str, text: str, name: str
) -> None:
    assert source_in(tmp_path, job) == QuerySource(reference, text, name, "", is_own=True)
    assert source_of("busy") is None


def test_an_application_is_shown_as_spark_submit_is_given_it(tmp_path: Path) -> None:
    made = source_in(tmp_path, APPLICATION)
    assert made is not None
    assert (made.reference, made.name, made.is_own) == ("", "a/orders.py", True)
    assert json.loads(made.formulation)["ends"] == "itself"


def test_a_night_whose_files_are_gone_shows_none(tmp_path: Path) -> None:
    assert _own_source(RunDirectory(tmp_path / "none"), "busy") is None
    (tmp_path / "night.json").write_text('{"jobs": {}}')
    assert _own_source(RunDirectory(tmp_path), "busy") is None
