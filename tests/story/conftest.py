"""One real Airflow for a whole story: scheduler and API server, everything in one PostgreSQL.

A release is measured and signed off, its night accepted, dates are backfilled, a change is looked
for by bisection. `make test` gives all files of this directory to one process.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import yaml

from nexmark.engines import Build
from tests.airflow_site import Airflow, airflow_of
from tests.site import ENGINE, Site, make_site
from tests.story.signing_off import DAG_ID, SCALE, SignOff, sign_off
from tests.unit.store.postgresql import Postgresql, server

#: Not the ports of the other nights, which may run at the same time.
PORTS = {
    "master_port": 27177,
    "master_ui_port": 28180,
    "worker_port": 27178,
    "worker_ui_port": 28181,
}
#: The engine that has a build for some dates.
SNAPSHOTS = "spark-next"
#: The engine whose nights may take a second to start their cluster: too short for any.
HURRIED, HURRIED_DAG = "spark-hurried", "nexmark_spark_hurried"
DAGS = (DAG_ID, "nexmark_accept", "nexmark_build", "nexmark_spark_next", HURRIED_DAG)
#: Airflow's own place for what a site changes in the tasks of all DAGs.
POLICY = f"""
from datetime import timedelta


def task_policy(task):
    if (task.dag_id, task.task_id) == ("{HURRIED_DAG}", "start_cluster"):
        task.execution_timeout = timedelta(seconds=1)
"""
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


@pytest.fixture(scope="package")
def postgresql() -> Iterator[Postgresql]:
    with server() as running:
        if running is None:
            pytest.skip("PostgreSQL is not installed (Debian: apt-get install postgresql)")
        for name in ("results", "airflow"):
            running.execute(f"CREATE DATABASE {name}")
        yield running


@pytest.fixture(scope="package")
def results(postgresql: Postgresql) -> str:
    """The URL of the results database."""
    return postgresql.url("results")


@pytest.fixture(scope="package")
def site(
    tmp_path_factory: pytest.TempPathFactory, engine_build: Callable[[str], Build]
) -> Iterator[Site]:
    directory = tmp_path_factory.mktemp("story")
    build = engine_build(ENGINE)
    home, conf = directory / "home", directory / "conf"
    made = make_site(home, conf, build, interpreted=True, repetitions=1)
    tarball = f"{directory}/snapshots/spark-{{{{ ds }}}}.tgz"
    engine = {"build": {"directory": str(build.spark_home)}, "workload": "tiny"}
    snapshots = {"tarball": tarball, "sha512": f"{tarball}.sha512"}
    engines = {SNAPSHOTS: {**engine, "snapshots": snapshots, "schedule": "0 22 * * *"}}
    engines[HURRIED] = engine
    _edit(made.conf / "engines.yaml", lambda all_: all_["engines"].update(engines))
    _edit(made.conf / "workloads.yaml", lambda x: x["workloads"]["tiny"].update(queries=["q0"]))
    _edit(made.conf / "clusters.yaml", lambda x: x["clusters"]["local"].update(PORTS))
    one_round: dict[str, object] = {"rounds": [3], "pursue_z": []}
    made.gate(self_test=0, **one_round, comparison=one_round)
    (directory / "told_by_tests.py").write_text(NOTIFIER)
    (directory / "airflow_local_settings.py").write_text(POLICY)
    text = "{{ ti.task_id }}: {{ ti.xcom_pull(task_ids='report').lines[0] }} {{ exception or '' }}"
    told = {"path": str(directory / "told.txt"), "text": text}
    entry = {"notifier": "told_by_tests.FileNotifier", "kwargs": told}
    (made.conf / "notifications.yaml").write_text(yaml.safe_dump({"notifications": [entry]}))
    yield made
    made.stop()


def _edit(path: Path, change: Callable[[dict[str, object]], None]) -> None:
    content = yaml.safe_load(path.read_text())
    change(content)
    path.write_text(yaml.safe_dump(content))


@pytest.fixture(scope="package")
def airflow(
    site: Site, postgresql: Postgresql, results: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Airflow]:
    metadata = postgresql.url("airflow")
    variables = {
        "NEXMARK_DB": results,
        "NEXMARK_PROGRESS": str(site.home.parent / "progress.txt"),
        "PYTHONPATH": str(site.home.parent),
        "AIRFLOW__SCHEDULER__USE_JOB_SCHEDULE": "False",
        "AIRFLOW__DATABASE__SQL_ALCHEMY_CONN": metadata.replace("://", "+psycopg://", 1),
        "AIRFLOW__DATABASE__SQL_ALCHEMY_CONN_ASYNC": metadata.replace(
            "://", "+psycopg_async://", 1
        ),
    }
    with airflow_of(site, tmp_path_factory.mktemp("logs"), *DAGS, **variables) as made:
        yield made


@pytest.fixture(scope="package")
def asked(airflow: Airflow, site: Site, engine_build: Callable[[str], Build]) -> SignOff:
    """A sign-off that waits for its person."""
    return sign_off(airflow, site, engine_build(ENGINE), SCALE)
