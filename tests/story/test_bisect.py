"""The first bad one of three commits is built, and found by nights that a scheduler runs.

They measure a job over files of a person's own.
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable

import pytest

from nexmark.airflow_site.api import TOKEN
from nexmark.engines import Build
from nexmark.store import open_store
from tests.airflow_site import START_S, Airflow
from tests.nights.files_job import JOB, write_job
from tests.nights.orders_job import write_jobs
from tests.site import ENGINE, NIGHT_TIMEOUT_S, Site
from tests.slower_commits import BUILD_COMMAND, assert_found, slower_commits

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.long]

PAIRS = 3


@pytest.fixture(scope="module")
def commits(site: Site, engine_build: Callable[[str], Build]) -> list[str]:
    return slower_commits(site.home.parent / "clone", engine_build(ENGINE))


@pytest.fixture(scope="module")
def job(
    site: Site, tmp_path_factory: pytest.TempPathFactory, engine_build: Callable[[str], Build]
) -> str:
    """The name of the job."""
    files = tmp_path_factory.mktemp("files")
    write_jobs(site.conf, files, engine_build(ENGINE), "secret")  # with the JAR of the job
    write_job(site.conf, files / "spending")
    return JOB


@pytest.fixture(scope="module")
def search(airflow: Airflow, site: Site, commits: list[str], job: str, results: str) -> str:
    """What `nexmark bisect` printed."""
    deadline = time.monotonic() + START_S
    while not any(
        task["task_id"].startswith(f"{job}.")
        for task in airflow.ask("/api/v2/dags/nexmark_build/tasks")["tasks"]
    ):
        assert time.monotonic() < deadline, "Airflow has not read the DAG again"
        time.sleep(2)
    command = [sys.executable, "-m", "nexmark.cli", "bisect", "--query", job, "--engine", ENGINE]
    command += ["--repo", str(site.home.parent / "clone"), "--build-command", BUILD_COMMAND]
    command += ["--good", commits[0], "--bad", "main"]
    command += ["--workload", "tiny", "--cluster", "local", "--repetitions", str(PAIRS)]
    command += ["--airflow", f"http://127.0.0.1:{airflow.port}"]
    run = subprocess.run(
        command,
        env={**site.environment, "NEXMARK_DB": results, TOKEN: airflow.token},
        capture_output=True,
        text=True,
        timeout=3 * NIGHT_TIMEOUT_S,
    )
    assert run.returncode == 0, run.stdout + run.stderr
    return run.stdout


def test_the_first_bad_commit_is_found(search: str, commits: list[str]) -> None:
    assert_found(search, commits, JOB)


def test_its_nights_are_those_of_the_scheduler(
    airflow: Airflow, site: Site, results: str, search: str, commits: list[str]
) -> None:
    with open_store(results) as store:
        nights = [x for x in store.nights() if x.dag_id == "nexmark_build"]
        sources = {store.build(night.build_id).source for night in nights}
        assert {source.rpartition("/")[2] for source in sources} == {*commits[1:]}
        for night in nights:
            assert airflow.state("nexmark_build", night.run_id) == "failed"  # it is slower
            arms = [x.arm for x in store.repetitions(night.id) if x.counts]  # without a recorder
            assert sorted(arms) == ["baseline"] * PAIRS + ["candidate"] * PAIRS
    assert site.leftovers() == []
