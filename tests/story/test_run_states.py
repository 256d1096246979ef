"""Nights that end early under a running scheduler.

One is refused by its preflight, one is marked failed by a person, one has a task that takes too
long. What a killed scheduler leaves is in tests/cluster. Every other way that a night can end is in
tests/dags/test_run_states.py, without a scheduler.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from nexmark.engines import Build
from tests.airflow_site import ENDED, Airflow
from tests.site import ENGINE, Site
from tests.story.conftest import HURRIED_DAG

pytestmark = [pytest.mark.slow, pytest.mark.extended]

DAG_ID = "nexmark_build"


def conf(build: str) -> dict[str, Any]:
    return {"engine": ENGINE, "build": build, "workload": "tiny", "queries": "q0"}


def told(site: Site) -> list[str]:
    """What the nights have told so far."""
    return (site.home.parent / "progress.txt").read_text().splitlines()


def test_a_night_that_is_refused_and_one_that_is_ended_have_failed(
    airflow: Airflow, site: Site, engine_build: Callable[[str], Build]
) -> None:
    """The second waits behind the first: a person ends it when it has just begun."""
    refused = airflow.trigger(DAG_ID, conf("directory:/no/spark"))
    ended = airflow.trigger(DAG_ID, conf(f"directory:{engine_build(ENGINE).spark_home}"))
    begun = ("running", "success")
    airflow.wait(lambda: airflow.task(DAG_ID, ended, "reap") in begun, DAG_ID, ended)
    airflow.ask(f"/api/v2/dags/{DAG_ID}/dagRuns/{ended}", {"state": "failed"}, "PATCH")
    airflow.wait(lambda: airflow.state(DAG_ID, ended) in ENDED, DAG_ID, ended)
    assert airflow.state(DAG_ID, refused) == "failed"
    (line,) = (line for line in told(site) if line.startswith("preflight: "))
    assert line == (
        "preflight: failed: build directory:/no/spark: /no/spark does not exist; correct the path"
    )
    assert airflow.state(DAG_ID, ended) == "failed", airflow.tasks(DAG_ID, ended)
    assert airflow.task(DAG_ID, ended, "verdict") == "skipped"
    assert airflow.task(DAG_ID, ended, "run_state") == "failed"
    assert site.leftovers() == []


def test_a_night_whose_task_takes_too_long_has_failed(airflow: Airflow, site: Site) -> None:
    """Its cluster is stopped, though it was only half started."""
    run = airflow.trigger(HURRIED_DAG, {})
    airflow.wait(lambda: airflow.state(HURRIED_DAG, run) in ENDED, HURRIED_DAG, run)
    states = {
        name: airflow.task(HURRIED_DAG, run, name)
        for name in ("deploy", "start_cluster", "verdict", "stop_cluster", "run_state")
    }
    assert states == {
        "deploy": "success",
        "start_cluster": "failed",
        "verdict": "upstream_failed",
        "stop_cluster": "success",
        "run_state": "failed",
    }
    assert airflow.state(HURRIED_DAG, run) == "failed"
    why = "the task took longer than its execution_timeout, and was ended"
    lines = [line for line in told(site) if line.startswith("start_cluster: ")]
    assert lines == [
        f"start_cluster: failed, is tried again: {why}",
        f"start_cluster: failed: {why}",
    ]
    assert site.leftovers() == []
