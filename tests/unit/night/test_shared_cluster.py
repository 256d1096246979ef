"""A scheduled night says when the answers of all engines on its cluster are due."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace

import pytest
from airflow.utils.types import DagRunType

from nexmark.config import Config, load
from nexmark.night.make_night import make_night
from nexmark.night.night_plan import Night
from nexmark.night.night_progress import PROGRESS_VARIABLE
from nexmark.night.run_directory import ApplicationSpan
from nexmark.night.shared_cluster import answers_line
from nexmark.tasks import preflight

NOW = datetime(2026, 11, 3, 22, 0, tzinfo=UTC)
SCHEDULES = {"spark-4.3.0": "0 22 * * *", "spark-4.2.1": "30 0 * * *", "spark-4.1.4": "0 3 * * *"}


@pytest.fixture
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Config:
    """Three engines on one cluster, and one on another."""
    monkeypatch.setenv("NEXMARK_HOME", str(tmp_path / "home"))
    whole = load()
    engines = {
        name: whole.engines[name].model_copy(
            update={"schedule": schedule, "cluster": "workstation"}
        )
        for name, schedule in SCHEDULES.items()
    }
    away = whole.engines["spark-4.0.5"].model_copy(update={"cluster": "local"})
    return whole.model_copy(update={"engines": {**engines, "spark-4.0.5": away}})


def planned(config: Config, engine: str, started_by: str = "scheduled", run: str = "now") -> Night:
    dag = config.engines[engine].dag_id
    night = make_night(config, engine, dag, run, {"workload": "nightly"})
    return night.model_copy(update={"started_by": started_by})


def lasted(config: Config, engine: str, minutes: float, started_by: str = "scheduled") -> None:
    """Leave an earlier night of an engine."""
    night = planned(config, engine, started_by, f"lasted {minutes}")
    night.write()
    span = ApplicationSpan(label="q0 rep-1", start=0.0, end=60 * minutes, timed=True, query="q0")
    night.files.add_application(span)


def test_each_night_waits_for_the_one_before_it(config: Config) -> None:
    lasted(config, "spark-4.3.0", 170)
    lasted(config, "spark-4.1.4", 60)
    line = answers_line(planned(config, "spark-4.3.0"), config, NOW)
    assert line == (
        "cluster workstation: answers are due at spark-4.3.0 00:50, spark-4.2.1 03:40, "
        "spark-4.1.4 04:40 UTC; spark-4.2.1, spark-4.1.4 will have to wait for the cluster: change "
        "budget_minutes in gate.yaml, another schedule or fewer queries in engines.yaml"
    )


def test_where_nobody_waits_nothing_is_to_be_changed(config: Config) -> None:
    lasted(config, "spark-4.3.0", 140)
    line = answers_line(planned(config, "spark-4.3.0"), config, NOW)
    assert line == (
        "cluster workstation: answers are due at spark-4.3.0 00:20, spark-4.2.1 02:50, "
        "spark-4.1.4 05:20 UTC"
    )


def test_a_night_that_a_person_started_says_nothing_and_tells_no_length(config: Config) -> None:
    lasted(config, "spark-4.3.0", 10, started_by="ada")
    assert answers_line(planned(config, "spark-4.3.0"), config, NOW) == ""
    lasted(config, "spark-4.3.0", 140)
    assert answers_line(planned(config, "spark-4.3.0", "ada"), config, NOW) == ""


def test_alone_on_its_cluster_it_says_nothing(config: Config) -> None:
    lasted(config, "spark-4.0.5", 30)
    assert answers_line(planned(config, "spark-4.0.5"), config, NOW) == ""


def test_the_preflight_of_a_scheduled_night_says_so(
    config: Config, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Everything about hosts and Airflow's connections is left out: no problem stops this night."""
    lasted(config, "spark-4.3.0", 60)
    run = SimpleNamespace(
        dag_id=config.engines["spark-4.3.0"].dag_id,
        run_id="scheduled__1",
        logical_date=NOW,
        triggering_user_name=None,
        run_type=DagRunType.SCHEDULED,
    )
    monkeypatch.setenv(PROGRESS_VARIABLE, str(tmp_path / "progress"))
    monkeypatch.setattr(preflight, "get_current_context", lambda: {"dag_run": run})
    monkeypatch.setattr(preflight, "load", lambda: config)
    monkeypatch.setattr(preflight, "find_problems", lambda night: [])
    for name in ("connection_problem", "executor_problem"):
        monkeypatch.setattr(preflight, name, lambda *_: "")
    preflight.prepare_night("spark-4.3.0", {"workload": "nightly"})
    *_, last = (tmp_path / "progress").read_text().splitlines()
    assert "cluster workstation: answers are due at spark-4.3.0 " in last
