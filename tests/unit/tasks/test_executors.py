"""An executor whose tasks do not all run on one machine is refused in one line."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from airflow.sdk.exceptions import AirflowFailException
from airflow.utils.types import DagRunType

from nexmark.config import load
from nexmark.errors import NexmarkError
from nexmark.night.make_night import make_night
from nexmark.night.night_plan import Night
from nexmark.people import process_user
from nexmark.tasks import current_night, failing, preflight
from nexmark.tasks.executors import executor, executor_problem
from tests.site import ENGINE

PARAMS = {"workload": "smoke", "cluster": "local", "queries": "q0", "mode": "bounds"}
CELERY = "airflow.providers.celery.executors.celery_executor.CeleryExecutor"
KUBERNETES = "airflow.providers.cncf.kubernetes.executors.kubernetes_executor.KubernetesExecutor"


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("NEXMARK_HOME", str(tmp_path / "home"))
    monkeypatch.delenv("NEXMARK_DB", raising=False)
    return tmp_path / "home"


def run_as(user: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    run = SimpleNamespace(
        dag_id=ENGINE,
        run_id="manual__1",
        logical_date=None,
        triggering_user_name=user,
        run_type=DagRunType.SCHEDULED,
    )
    for module in ("nexmark.tasks", "nexmark.tasks.preflight"):
        monkeypatch.setattr(f"{module}.get_current_context", lambda: {"dag_run": run})


@pytest.mark.parametrize(
    ("setting", "name"),
    [
        ("LocalExecutor", "LocalExecutor"),
        ("CeleryExecutor,LocalExecutor", "CeleryExecutor"),
        (f"pods:{KUBERNETES}", "KubernetesExecutor"),
        (KUBERNETES, "KubernetesExecutor"),
        ("LocalExecutor;team1=CeleryExecutor", "LocalExecutor"),
    ],
)
def test_the_first_executor_counts_by_its_class(
    setting: str, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AIRFLOW__CORE__EXECUTOR", setting)
    assert executor() == name


def test_a_container_for_each_task_is_refused_in_preflight(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("AIRFLOW__CORE__EXECUTOR", KUBERNETES)
    run_as("ada", monkeypatch)
    with pytest.raises(AirflowFailException) as refused:
        preflight.prepare_night("spark-4.3.0", PARAMS)
    (line,) = (x for x in str(refused.value).split(" | ") if x.startswith("core.executor: "))
    assert line.startswith("core.executor: KubernetesExecutor gives each task a container")
    assert line.endswith("; set AIRFLOW__CORE__EXECUTOR=LocalExecutor; see docs/your-airflow.md")


@pytest.mark.parametrize(
    ("user", "kind", "starter"),
    [
        ("ada", DagRunType.MANUAL, "ada"),
        ("ada", DagRunType.BACKFILL_JOB, "ada"),
        (None, DagRunType.SCHEDULED, "scheduled"),
        ("", DagRunType.ASSET_TRIGGERED, "asset_triggered"),
        ("dag_test", DagRunType.MANUAL, process_user()),
    ],
)
def test_a_night_knows_who_started_it(user: str | None, kind: DagRunType, starter: str) -> None:
    run: Any = SimpleNamespace(triggering_user_name=user, run_type=kind)
    assert preflight.starter_of(run) == starter


def test_airflow_dags_test_needs_no_executor(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AIRFLOW__CORE__EXECUTOR", KUBERNETES)
    run_as("dag_test", monkeypatch)
    with pytest.raises(AirflowFailException, match="there is none") as refused:
        preflight.prepare_night("spark-4.3.0", PARAMS)  # for want of a connection
    assert "core.executor" not in str(refused.value)


@pytest.mark.parametrize("setting", ["LocalExecutor", CELERY])
def test_one_machine_is_enough_for_any_other(setting: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AIRFLOW__CORE__EXECUTOR", setting)
    assert executor_problem() == ""
    run_as("ada", monkeypatch)
    planned().write()
    assert current_night() == planned()


def planned(**changes: object) -> Night:
    return make_night(load(), "spark-4.3.0", ENGINE, "manual__1", PARAMS).model_copy(update=changes)


def test_a_task_on_another_machine_than_the_preflight_is_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Its processes are not there; also where both machines see the same home."""
    monkeypatch.setenv("AIRFLOW__CORE__EXECUTOR", CELERY)
    run_as("ada", monkeypatch)
    planned(machine="worker-1").write()
    with pytest.raises(AirflowFailException) as refused, failing(NexmarkError):
        current_night()
    assert str(refused.value).startswith("the night began on machine worker-1; this task runs on ")
    assert "keep one worker of CeleryExecutor, or set AIRFLOW__" in str(refused.value)


def test_a_task_without_the_home_of_the_preflight_says_so(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("AIRFLOW__CORE__EXECUTOR", CELERY)
    run_as("ada", monkeypatch)
    match = "all tasks of a night have to run on one machine"
    with pytest.raises(AirflowFailException, match=match), failing(NexmarkError):
        current_night()


def test_a_local_executor_in_a_container_may_change_its_name(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("AIRFLOW__CORE__EXECUTOR", "LocalExecutor")
    run_as("ada", monkeypatch)
    planned(machine="container-1").write()
    assert current_night().machine == "container-1"
    planned().files.night.unlink()
    with pytest.raises(NexmarkError, match="there is no such file; start a new DAG run"):
        current_night()
