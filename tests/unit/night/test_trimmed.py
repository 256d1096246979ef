"""At its end a night removes what can be had again, also of a repetition that has failed."""

from __future__ import annotations

from pathlib import Path

import pytest

from nexmark.config import Job
from nexmark.config.application_models import JobApplication
from nexmark.config.job_tables import JobTable
from nexmark.night.kinds.own import WRITTEN
from nexmark.night.make_night import make_night
from nexmark.night.night_clusters import trim
from nexmark.night.night_plan import Night
from nexmark.night.run_directory import RunDirectory


@pytest.fixture
def night(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Night:
    from nexmark.config import load

    monkeypatch.setenv("NEXMARK_HOME", str(tmp_path / "home"))
    params = {"workload": "smoke", "cluster": "local", "queries": "q0"}
    made = make_night(load(), "spark-4.3.0", "nexmark_spark_4_3_0", "r", params)
    application = JobApplication(main="orders.py", ends="itself")
    jobs = {
        "orders": Job(name="orders", application=application),
        "spending": Job(name="spending", sql="a.sql", tables={"a": JobTable(files="a.csv")}),
    }
    return made.model_copy(update={"queries": ("orders", "spending"), "jobs": jobs})


def test_nothing_stays_of_the_input_and_the_output_of_own_jobs(night: Night) -> None:
    written = RunDirectory(night.data_dir).group("orders").path / "rep-1" / WRITTEN
    kept = written.with_name("driver.log")
    laid_out = night.tables_dir("spending") / "a"
    for directory in (written / "output", laid_out):
        directory.mkdir(parents=True)
        (directory / "rows").touch()
    kept.touch()
    trim(night)
    assert not written.exists()
    assert not laid_out.exists()
    assert kept.exists()
