"""A release is signed off by a person, through a real Airflow on PostgreSQL.

`airflow dags test` cannot answer a question, so there are a scheduler and an API server. Results
and Airflow's own metadata are in one PostgreSQL server. It is one story: the build is rejected,
then the question is asked again, and it is approved.
"""

from __future__ import annotations

import json
import subprocess
import sys
import urllib.error
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from nexmark.cluster import open_cluster
from nexmark.config import load, paths
from nexmark.engines import Build
from nexmark.store import open_store
from tests.airflow_site import ENDED, Airflow, airflow_of
from tests.site import ENGINE, TINY, Site, make_site
from tests.unit.store.postgresql import Postgresql, server

pytestmark = [pytest.mark.spark, pytest.mark.slow]

DAG_ID = "nexmark_signoff"
SCALE = 2
#: Others than those of the other nights, which may run at the same time.
PORTS = {
    "master_port": 27177,
    "master_ui_port": 28180,
    "worker_port": 27178,
    "worker_ui_port": 28181,
}
NOTIFIER = """
from airflow.sdk import BaseNotifier


class FileNotifier(BaseNotifier):
    template_fields = ("text",)

    def __init__(self, path, text):
        super().__init__()
        self.path, self.text = path, text

    def notify(self, context):
        with open(self.path, "a") as file:
            file.write(self.text + "\\n")
"""


@pytest.fixture(scope="module")
def postgresql() -> Iterator[Postgresql]:
    with server() as running:
        if running is None:
            pytest.skip("PostgreSQL is not installed (Debian: apt-get install postgresql)")
        for name in ("results", "airflow"):
            running.execute(f"CREATE DATABASE {name}")
        yield running


@pytest.fixture(scope="module")
def site(
    tmp_path_factory: pytest.TempPathFactory, engine_build: Callable[[str], Build]
) -> Iterator[Site]:
    directory = tmp_path_factory.mktemp("signoff")
    made = make_site(directory / "home", directory / "conf", engine_build(ENGINE))
    path = made.conf / "workloads.yaml"
    content = yaml.safe_load(path.read_text())
    content["workloads"]["tiny"]["queries"] = ["q0"]
    path.write_text(yaml.safe_dump(content))
    path = made.conf / "clusters.yaml"
    content = yaml.safe_load(path.read_text())
    content["clusters"]["local"] |= PORTS
    path.write_text(yaml.safe_dump(content))
    (directory / "told_by_tests.py").write_text(NOTIFIER)
    text = "{{ ti.task_id }}: {{ ti.xcom_pull(task_ids='report').lines[0] }} {{ exception or '' }}"
    told = {"path": str(directory / "told.txt"), "text": text}
    entry = {"notifier": "told_by_tests.FileNotifier", "kwargs": told}
    (made.conf / "notifications.yaml").write_text(yaml.safe_dump({"notifications": [entry]}))
    yield made
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("NEXMARK_CONF", str(made.conf))
        open_cluster(load().clusters["local"], made.home).stop()


@pytest.fixture(scope="module")
def airflow(
    site: Site, postgresql: Postgresql, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Airflow]:
    metadata = postgresql.url("airflow")
    variables = {
        "NEXMARK_DB": postgresql.url("results"),
        "PYTHONPATH": str(site.home.parent),
        "AIRFLOW__DATABASE__SQL_ALCHEMY_CONN": metadata.replace("://", "+psycopg://", 1),
        "AIRFLOW__DATABASE__SQL_ALCHEMY_CONN_ASYNC": metadata.replace(
            "://", "+psycopg_async://", 1
        ),
    }
    with airflow_of(site, tmp_path_factory.mktemp("logs"), DAG_ID, **variables) as made:
        yield made


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


def details(run: str) -> str:
    return f"/api/v2/dags/{DAG_ID}/dagRuns/{run}/taskInstances/approval/-1/hitlDetails"


def wait_for_question(airflow: Airflow, run: str) -> None:
    """Wait until the cluster is stopped and the person is asked."""

    def asked() -> bool:
        states = ended(airflow, run)
        waits = states.get("approval") == "awaiting_input"
        return (waits and states.get("stop_cluster") == "success") or is_over(airflow, run)

    airflow.wait(asked, DAG_ID, run)
    assert airflow.state(DAG_ID, run) == "running", airflow.tasks(DAG_ID, run)


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


@pytest.fixture(scope="module")
def asked(airflow: Airflow, site: Site, engine_build: Callable[[str], Build]) -> SignOff:
    """A sign-off that waits for its person."""
    conf = {
        "engine": ENGINE,
        "build": f"directory:{engine_build(ENGINE).spark_home}",
        "workload": "tiny",
        "cluster": "local",
        "mode": "bounds",
        "pairs": 1,
        "verify_scale": SCALE,
    }
    run = airflow.trigger(DAG_ID, conf)
    wait_for_question(airflow, run)
    body = airflow.ask(details(run))["body"]
    directory = site.home / "runs" / DAG_ID / paths.safe_name(run)
    return SignOff(run, body, directory, site.leftovers())


@pytest.fixture(scope="module")
def rejected(airflow: Airflow, asked: SignOff) -> tuple[str, dict[str, str]]:
    """The states of the run and of its tasks."""
    state = answer(airflow, asked.run, "Reject", "q0 is odd")
    return state, ended(airflow, asked.run)


@pytest.fixture(scope="module")
def approved(
    airflow: Airflow, asked: SignOff, rejected: tuple[str, dict[str, str]]
) -> tuple[str, dict[str, str]]:
    """As `rejected`, after it: the question was cleared, and asked again."""
    clear = {"dry_run": False, "dag_run_id": asked.run, "task_ids": ["approval"]}
    clear |= {"include_downstream": True, "only_failed": False}
    airflow.ask(f"/api/v2/dags/{DAG_ID}/clearTaskInstances", clear)
    wait_for_question(airflow, asked.run)
    state = answer(airflow, asked.run, "Approve", "<b>all</b> well")
    return state, ended(airflow, asked.run)


def verify(directory: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "nexmark.report", "verify", str(directory)]
    return subprocess.run(command, capture_output=True, text=True)


def test_the_person_sees_the_report_and_the_cluster_is_free(asked: SignOff) -> None:
    print(asked.body)
    assert "**The gate says green.**" in asked.body
    assert "| q0 " in asked.body
    assert "NIGHT OK" in asked.body
    assert str(asked.directory / "report" / "evidence.html") in asked.body
    assert asked.leftovers == []


def test_a_rejection_fails_the_run_and_is_kept(
    site: Site, asked: SignOff, rejected: tuple[str, dict[str, str]]
) -> None:
    state, tasks = rejected
    assert state == "failed"
    assert {name: tasks[name] for name in ("approval", "evidence", "decision")} == {
        "approval": "failed",
        "evidence": "success",
        "decision": "failed",
    }
    decision = asked.evidence("signoff")["decision"]
    assert (decision["choice"], decision["signed_off"]) == ("rejected", False)
    assert decision["objection"] == "rejected by admin: q0 is odd"
    told = (site.home.parent / "told.txt").read_text()
    assert "approval: NIGHT OK" in told  # somebody is asked
    assert "decision: NIGHT OK" in told
    assert "is not signed off: rejected by admin: q0 is odd" in told


def test_an_approval_ends_green_with_evidence_of_its_own(
    site: Site,
    asked: SignOff,
    approved: tuple[str, dict[str, str]],
    postgresql: Postgresql,
) -> None:
    state, tasks = approved
    assert (state, tasks["decision"]) == ("success", "success")
    found = asked.evidence("signoff-2")
    assert found["decision"]["choice"] == "approved"
    assert found["decision"]["signed_off"] is True
    assert (found["decision"]["who"], found["decision"]["reason"]) == ("admin", "<b>all</b> well")
    assert found["builds"][0]["version"] == "4.3.0"
    assert found["night"]["workload"]["verify"]["events"] == SCALE * TINY["events"]
    assert [row["query"] for row in found["verdicts"]] == ["q0"]
    assert found["hosts"]
    assert found["confs"]["candidate"]
    page = (asked.directory / "signoff-2" / "evidence.html").read_text()
    assert "&lt;b&gt;all&lt;/b&gt; well" in page
    assert "<b>" not in page
    kept = site.home / "signoffs" / paths.safe_name(f"{DAG_ID}/{asked.run}")
    copies = [kept, kept.with_name(f"{kept.name}-2")]
    for directory in (asked.directory / "signoff", asked.directory / "signoff-2", *copies):
        checked = verify(directory)
        assert checked.returncode == 0, checked.stderr
        assert {f"{x.stat().st_mode:o}" for x in directory.rglob("*.json")} == {"100444"}
    with open_store(postgresql.url("results")) as store:
        assert store.night(f"{DAG_ID}/{asked.run}").engine == ENGINE


@pytest.mark.usefixtures("approved")
def test_nobody_answers_twice(airflow: Airflow, asked: SignOff) -> None:
    with pytest.raises(urllib.error.HTTPError, match="409"):
        answer(airflow, asked.run, "Reject", "changed my mind")
