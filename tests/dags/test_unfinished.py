"""What was killed is ended in Airflow by its REST API, whatever database Airflow has: PostgreSQL.

The same on SQLite is in test_backfill.py, where a backfill ends, and in test_nights.py.
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from datetime import date
from pathlib import Path

import pytest

from nexmark.airflow_site.airflow_home import (
    Components,
    airflow_command,
    airflow_environment,
    own_airflow,
    prepare,
)
from nexmark.airflow_site.api import CONFLICT, ApiError, OwnAirflow
from nexmark.airflow_site.backfills import (
    abandoned,
    close_abandoned,
    close_all,
    create,
    is_paused,
    runs,
    unpaused,
)
from nexmark.config import Config, load
from nexmark.errors import NexmarkError
from tests.unit.store.postgresql import server

pytestmark = [pytest.mark.slow, pytest.mark.extended]

DAG_ID = "long_nights"
#: Airflow keeps a run with a teardown for a scheduler, as every night has one.
DAG_FILE = """
import time
from datetime import datetime
from pathlib import Path

from airflow.sdk import DAG, setup, task, teardown

with DAG("long_nights", schedule="0 22 * * *", start_date=datetime(2026, 1, 1), catchup=False):
    @setup
    def start(): ...
    @task
    def query(marker):
        Path(marker).touch()
        time.sleep(600)
    @task(trigger_rule="all_done")
    def record(): ...
    @teardown
    def stop(): ...
    started = start()
    started >> query("{marker}") >> record() >> stop().as_teardown(setups=started)
"""


@dataclass
class Site:
    config: Config
    environment: dict[str, str]
    directory: Path
    port: int

    @property
    def marker(self) -> Path:
        return self.directory / "running"


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """A home whose Airflow has its state in a PostgreSQL server of the test's own."""
    directory = tmp_path_factory.mktemp("postgresql-airflow")
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = int(probe.getsockname()[1])
    (directory / "dags").mkdir()
    (directory / "plugins").mkdir()
    text = DAG_FILE.replace("{marker}", str(directory / "running"))
    (directory / "dags" / "nights.py").write_text(text)
    with server() as postgresql, pytest.MonkeyPatch.context() as patch:
        if postgresql is None:
            pytest.skip("PostgreSQL is not installed (Debian: apt-get install postgresql)")
        patch.setenv("NEXMARK_HOME", str(directory / "home"))
        with postgresql.database() as url:
            patch.setenv("NEXMARK_AIRFLOW_DB", url)
            config = load()
            environment = airflow_environment(config, port) | {
                "AIRFLOW__CORE__DAGS_FOLDER": str(directory / "dags"),
                "AIRFLOW__CORE__PLUGINS_FOLDER": str(directory / "plugins"),
            }
            prepare(environment)
            yield Site(config, environment, directory, port)


@pytest.fixture(scope="module")
def killed(site: Site) -> None:
    """A run of `airflow dags test` that was killed in the middle of a task."""
    night = subprocess.Popen(
        airflow_command(["dags", "test", DAG_ID]),
        env=site.environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        deadline = time.monotonic() + 300
        while not site.marker.exists():
            assert night.poll() is None
            assert time.monotonic() < deadline
            time.sleep(0.1)
    finally:
        os.killpg(night.pid, signal.SIGKILL)
        night.wait()


@pytest.fixture(scope="module")
def api(site: Site, killed: None) -> Iterator[OwnAirflow]:
    with closing(Components(site.environment, site.port, site.directory)) as components:
        components.bring_up("api-server")
        yield own_airflow(site.port)


def test_a_night_that_was_killed_has_failed(site: Site, api: OwnAirflow) -> None:
    """A scheduler would wait for it for ever, or go on with its teardown."""
    ((dag_id, run_id),) = abandoned(api, live=())
    assert dag_id == DAG_ID
    assert list(abandoned(api, live=[(dag_id, run_id)])) == []
    assert list(abandoned(api, live=[("another_dag", run_id)])) == [(dag_id, run_id)]
    close_abandoned(site.config, api)
    assert list(abandoned(api, live=())) == []
    (run,) = api.every(f"dags/{DAG_ID}/dagRuns", "dag_runs")
    assert run["state"] == "failed"
    tasks = api.every(f"dags/{DAG_ID}/dagRuns/{run_id}/taskInstances", "task_instances")
    assert {task["task_id"]: task["state"] for task in tasks} == {
        "start": "success",
        "query": "failed",
        "record": "skipped",
        "stop": "skipped",
    }
    assert not (site.directory / "home" / "airflow" / "airflow.db").exists()


def test_a_backfill_that_was_killed_is_ended_and_another_one_can_be_made(api: OwnAirflow) -> None:
    days = (date(2026, 11, 1), date(2026, 11, 2))
    made = create(api, DAG_ID, days, {}, "none")
    assert [(run.day, run.state) for run in runs(api, made)] == [
        (days[0], "queued"),
        (days[1], "queued"),
    ]
    with pytest.raises(ApiError, match="already a running backfill") as refused:
        create(api, DAG_ID, days, {}, "none")
    assert refused.value.status == CONFLICT
    close_all(api, [DAG_ID, "nexmark_never_seen"])
    assert {run.state for run in runs(api, made)} == {"failed"}
    again = create(api, DAG_ID, (days[0], date(2026, 11, 3)), {}, "none")
    found = runs(api, again)
    assert [(run.day.day, run.left_out) for run in found] == [
        (1, "already exists"),
        (2, "already exists"),
        (3, ""),
    ]
    close_all(api, [DAG_ID])
    assert all(run.ended for run in runs(api, again))


def test_a_dag_is_switched_on_for_as_long_as_it_takes(api: OwnAirflow) -> None:
    api.ask(f"dags/{DAG_ID}", {"is_paused": True}, "PATCH")
    with unpaused(api, DAG_ID):
        assert not is_paused(api, DAG_ID)
    assert is_paused(api, DAG_ID)
    with pytest.raises(NexmarkError, match="nexmark_x: Airflow does not know this DAG"):
        is_paused(api, "nexmark_x")


def test_a_token_that_is_not_good_any_more_is_renewed(api: OwnAirflow) -> None:
    api.token = "expired"
    assert api.ask("version")["version"]
    assert api.ask("dags")["total_entries"] == 1
    assert api.token != "expired"
