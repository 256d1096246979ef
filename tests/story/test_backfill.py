"""Airflow's own backfill runs a night for each date that has a build, and says where there is none.

`nexmark backfill`, which starts Airflow by itself, has its tests in tests/dags.
"""

from __future__ import annotations

import hashlib
import json
import subprocess
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from nexmark.airflow_site.airflow_home import airflow_command
from nexmark.engines import Build
from nexmark.store import open_store
from tests.airflow_site import ENDED, Airflow
from tests.site import ENGINE, Site

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.long]

DAG_ID = "nexmark_spark_next"
MISSING, THERE = "2026-11-01", "2026-11-02"


@pytest.fixture(scope="module")
def snapshot(site: Site, engine_build: Callable[[str], Build]) -> Path:
    """The build of one of two dates, as it would be published."""
    directory = site.home.parent / "snapshots"
    directory.mkdir()
    archive = directory / f"spark-{THERE}.tgz"
    with tarfile.open(archive, "w") as tar:  # packing it is not what is tested
        tar.add(engine_build(ENGINE).spark_home, arcname="spark")
    with archive.open("rb") as file:
        checksum = hashlib.file_digest(file, "sha512").hexdigest()
    (directory / f"{archive.name}.sha512").write_text(checksum)
    return archive


@pytest.fixture(scope="module")
def runs(airflow: Airflow, snapshot: Path) -> dict[str, dict[str, Any]]:
    """The DAG runs of the backfill by date, when all have ended."""
    command = [
        *("backfill", "create", "--dag-id", DAG_ID, "--max-active-runs", "1"),
        *("--from-date", f"{MISSING}T00:00:00+00:00", "--to-date", f"{THERE}T23:59:59+00:00"),
    ]
    created = subprocess.run(
        airflow_command(command),
        env=airflow.environment,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert created.returncode == 0, created.stdout + created.stderr

    def found() -> dict[str, dict[str, Any]]:
        listed = airflow.ask(f"/api/v2/dags/{DAG_ID}/dagRuns")["dag_runs"]
        return {x["logical_date"][:10]: x for x in listed}

    def over() -> bool:
        states = [run["state"] for run in found().values()]
        return len(states) == 2 and all(state in ENDED for state in states)

    airflow.wait(over, DAG_ID, "")
    return found()


def test_a_date_without_a_build_is_reported_skipped_and_green(
    airflow: Airflow, site: Site, runs: dict[str, dict[str, Any]]
) -> None:
    run = runs[MISSING]
    assert (run["run_type"], run["state"]) == ("backfill", "success")
    assert airflow.tasks(DAG_ID, run["dag_run_id"]) == {}  # skipped, all of them
    told = (site.home.parent / "progress.txt").read_text()
    assert f"no build for {MISSING}: " in told
    assert f"spark-{MISSING}.tgz.sha512 is not there; the night is skipped" in told


def test_a_date_with_a_build_has_its_night(
    site: Site, results: str, snapshot: Path, runs: dict[str, dict[str, Any]]
) -> None:
    run = runs[THERE]
    assert (run["run_type"], run["state"]) == ("backfill", "success")
    with open_store(results) as store:
        (night,) = (x for x in store.nights() if x.dag_id == DAG_ID)
        assert night.run_id == run["dag_run_id"]
        deployed = json.loads((Path(night.directory) / "deployment.json").read_text())
        assert deployed["candidate"]["source"].startswith(f"tarball:{snapshot}#sha512=")
        assert {row.status for row in store.repetitions(night.id)} == {"ok"}
        assert [row.query for row in store.verdicts(night.id)] == ["q0"]
    assert site.leftovers() == []
