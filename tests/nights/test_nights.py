"""Whole nights through real Airflow and real Spark: green, accepted, slowed, missing."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from nexmark.config import paths
from nexmark.people import process_user
from tests.nights.files_job import JOB as OWN_FILES
from tests.nights.marked_secrets import Processes
from tests.nights.orders_job import APPLICATIONS
from tests.site import DAG_ID, ENGINE, TINY, Site

pytestmark = [pytest.mark.spark, pytest.mark.slow]

Night = subprocess.CompletedProcess[str]


def directory_of(site: Site, run: str) -> Path:
    return site.home / "runs" / DAG_ID / paths.safe_name(run.partition("/")[2])


def test_a_night_ends_green_with_table_report_and_rows(site: Site, green: Night, run: str) -> None:
    assert green.returncode == 0, green.stdout + green.stderr
    table = [line for line in green.stdout.splitlines() if line.startswith("| ")]
    names = ["Query", "q5", "mine", *APPLICATIONS, OWN_FILES, "Total"]
    assert [line.split("|")[1].strip() for line in table] == names
    assert all("right" in line for line in (*table[1:3], table[5]))
    assert "agrees" in table[3]
    assert "ran" in table[4]
    assert "3/5 right, 1 agree" in table[6]
    verified = re.findall(r"(\w+) verify: \d+ rows, and (\d+) over the boundary", green.stdout)
    assert {query for query, rows in verified if int(rows)} == {"q5", "mine"}
    assert "no baseline" in green.stdout or "no accepted baseline" in green.stdout
    directory = directory_of(site, run)
    assert str(directory) in green.stdout
    for name in ("table.txt", "results.csv", "results.json"):
        assert (directory / "report" / name).is_file()
    assert (directory / "data_docs" / "index.html").is_file()
    for query in ("q5", "mine"):
        assert list((directory / query / "rep-2" / "events").rglob("*zstd*"))
    with site.store() as store:
        rows = store.repetitions(run, ["q5", "mine"])
        assert sorted((row.query, row.number, row.status) for row in rows) == [
            ("mine", 1, "ok"),
            ("mine", 2, "ok"),
            ("q5", 1, "ok"),
            ("q5", 2, "ok"),
        ]
        assert {row.events for row in rows} == {TINY["events"]}
        assert all(row.cpu_executors_s > 0 and row.cpu_driver_s > 0 for row in rows)
        assert len({row.digest for row in rows if row.query == "q5"}) == 1
        assert all(store.sample_series(row.id) for row in rows)


def test_a_night_leaves_nothing_running_and_no_scratch_space(site: Site, run: str) -> None:
    assert site.leftovers() == []
    assert not (site.home / "clusters" / "local" / "scratch").exists()
    directory = directory_of(site, run)
    assert not (directory / "events").exists()
    assert list(directory.glob("*/verify/output")) == []  # right, and to be had again
    assert list(directory.glob("*/verify/boundary")) == []


def test_a_person_accepts_a_run_by_the_dag(site: Site, accepted: Night, run: str) -> None:
    assert accepted.returncode == 0, accepted.stdout
    with site.store() as store:
        rows = store.acceptances(ENGINE, "tiny", "local")
        assert {(row.query, row.night_id, row.who, row.reason) for row in rows} == {
            (query, run, f"{process_user()} (for ada)", "the first night")
            for query in ("q5", "mine", OWN_FILES, *APPLICATIONS)
        }


def test_a_slowed_engine_turns_the_night_red_and_names_the_query(site: Site, red: Night) -> None:
    assert red.returncode == 1, red.stdout + red.stderr
    (verdict,) = [line for line in red.stdout.splitlines() if line.startswith("verdict: ")]
    assert "3 of 4 queries fail the night: " in verdict
    assert "q5 REGRESSION" in verdict
    assert site.leftovers() == []


def test_a_query_that_fails_is_missing_and_does_not_stop_the_next(red: Night) -> None:
    (verdict,) = [line for line in red.stdout.splitlines() if line.startswith("verdict: ")]
    assert "q13 MISSING" in verdict
    assert "Cannot broadcast the table" in red.stdout
    assert re.search(r"\| q22 .*right.*NO BASELINE", red.stdout)


def test_a_job_whose_rows_differ_from_run_to_run_is_never_timed(red: Night) -> None:
    assert "not deterministic over the same input: rows that only one has: " in red.stdout
    assert re.search(r"one run \{drawn: \d+\}, another \{drawn: \d+\}", red.stdout)
    assert re.search(r"\| shaky .*WRONG.*INVALID|\| shaky .*WRONG.*MISSING", red.stdout)
    assert "shaky rep-1" not in red.stdout


@pytest.mark.usefixtures("red")
def test_no_jvm_has_a_variable_of_whoever_started_the_night(watching: Processes) -> None:
    roles = ("Master", "Worker", "SparkSubmit", "CoarseGrainedExecutorBackend")
    seen = {name.rpartition(".")[2] for name in watching.java}
    assert seen >= set(roles)
    assert watching.foreign == set()


@pytest.mark.usefixtures("red")
def test_everything_that_a_night_writes_is_below_its_home(site: Site) -> None:
    """Spark takes what is no URI for a path, and a blank in one for `%20`."""
    assert {path.name for path in site.home.parent.iterdir()} == {"conf", site.home.name}
