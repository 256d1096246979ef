"""A release is signed off by a person, through a real Airflow on PostgreSQL.

`airflow dags test` cannot answer a question, so there are a scheduler and an API server. The build
is rejected, then the question is asked again, and it is approved.
"""

from __future__ import annotations

import subprocess
import sys
import urllib.error
from pathlib import Path

import pytest

from nexmark.config import paths
from nexmark.store import open_store
from tests.airflow_site import Airflow
from tests.site import ENGINE, TINY, Site
from tests.story.signing_off import DAG_ID, SCALE, SignOff, answer, ended, wait_for_question

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.extended]


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
    command = [sys.executable, "-m", "nexmark.cli", "verify", str(directory)]
    return subprocess.run(command, capture_output=True, text=True)


def test_the_person_sees_the_report_and_the_cluster_is_free(asked: SignOff) -> None:
    print(asked.body)
    assert "**Nothing was compared.**" in asked.body
    assert "| q0 " in asked.body
    assert "NOTHING COMPARED: no accepted baseline" in asked.body
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
    assert "approval: NOTHING COMPARED" in told  # somebody is asked
    assert "decision: NOTHING COMPARED" in told
    assert "is not signed off: rejected by admin: q0 is odd" in told


def test_an_approval_ends_green_with_evidence_of_its_own(
    site: Site,
    asked: SignOff,
    approved: tuple[str, dict[str, str]],
    results: str,
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
    assert "<b>all" not in page
    kept = site.home / "signoffs" / paths.safe_name(f"{DAG_ID}/{asked.run}")
    copies = [kept, kept.with_name(f"{kept.name}-2")]
    for directory in (asked.directory / "signoff", asked.directory / "signoff-2", *copies):
        checked = verify(directory)
        assert checked.returncode == 0, checked.stderr
        assert {f"{x.stat().st_mode:o}" for x in directory.rglob("*.json")} == {"100444"}
    with open_store(results) as store:
        assert store.night(f"{DAG_ID}/{asked.run}").engine == ENGINE


@pytest.mark.usefixtures("approved")
def test_nobody_answers_twice(airflow: Airflow, asked: SignOff) -> None:
    with pytest.raises(urllib.error.HTTPError, match="409"):
        answer(airflow, asked.run, "Reject", "changed my mind")
