"""Running a sign-off up to its question, and answering it."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from nexmark.config import paths
from nexmark.engines import Build
from tests.airflow_site import ENDED, Airflow
from tests.site import ENGINE, Site

DAG_ID = "nexmark_signoff"
SCALE = 2


@dataclass
class SignOff:
    """A run of the sign-off, what the person was shown, and the run's directory."""

    run: str
    body: str
    directory: Path
    leftovers: list[str]

    def evidence(self, name: str) -> dict[str, Any]:
        text = (self.directory / name / "evidence.json").read_text()
        found: dict[str, Any] = json.loads(text)
        return found


def sign_off(airflow: Airflow, site: Site, build: Build, scale: int) -> SignOff:
    """Run a sign-off of a build until a person is asked."""
    conf = {
        "engine": ENGINE,
        "build": f"directory:{build.spark_home}",
        "workload": "tiny",
        "cluster": "local",
        "mode": "bounds",
        "verify_scale": scale,
    }
    run = airflow.trigger(DAG_ID, conf)
    wait_for_question(airflow, run)
    body = airflow.ask(details(run))["body"]
    directory = site.home / "runs" / DAG_ID / paths.safe_name(run)
    return SignOff(run, body, directory, site.leftovers())


def details(run: str) -> str:
    return f"/api/v2/dags/{DAG_ID}/dagRuns/{run}/taskInstances/approval/-1/hitlDetails"


def wait_for_question(airflow: Airflow, run: str) -> None:
    """Wait until the cluster is stopped and the person is asked."""

    def asked() -> bool:
        waits = airflow.task(DAG_ID, run, "approval") == "awaiting_input"
        stopped = waits and airflow.task(DAG_ID, run, "stop_cluster") == "success"
        return stopped or is_over(airflow, run)

    airflow.wait(asked, DAG_ID, run)
    assert airflow.state(DAG_ID, run) == "running", airflow.tasks(DAG_ID, run)
    _let_the_scheduler_see(airflow, run)


def _let_the_scheduler_see(airflow: Airflow, run: str) -> None:
    """Wait as long as a person takes to read, by the scheduler's own clock.

    Airflow 3.3.2 fails a task that is resumed before its scheduler has read that the process which
    asked has ended: the answer came 0.8 s behind the question.
    """
    for _ in range(2):
        seen = heartbeat(airflow)
        airflow.wait(lambda seen=seen: heartbeat(airflow) != seen, DAG_ID, run)  # type: ignore[misc]


def heartbeat(airflow: Airflow) -> str:
    """When the scheduler has last been alive."""
    return str(airflow.ask("/api/v2/monitor/health")["scheduler"]["latest_scheduler_heartbeat"])


def ended(airflow: Airflow, run: str) -> dict[str, str]:
    """The states of the tasks that are not mapped."""
    return {x.partition("[")[0]: state for x, state in airflow.tasks(DAG_ID, run).items()}


def is_over(airflow: Airflow, run: str) -> bool:
    return airflow.state(DAG_ID, run) in ENDED


def answer(airflow: Airflow, run: str, option: str, reason: str) -> str:
    """Answer the question; the state that the run ends in."""
    response = {"chosen_options": [option], "params_input": {"reason": reason}}
    airflow.ask(details(run), response, "PATCH")
    airflow.wait(lambda: is_over(airflow, run), DAG_ID, run)
    return airflow.state(DAG_ID, run)
