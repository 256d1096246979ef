"""A night that is red, was ended, or could not run is a failed DAG run, in every way it can end.

Airflow's own code decides here as it does in its scheduler, over a database of its own: which task
is ready, what is skipped, what a person's mark does, what a run is at its end. A task that is not
looked at ends as a test says. The same under a running scheduler is in tests/story.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest
import yaml
from airflow.sdk import DAG

from nexmark.config import Config, load
from nexmark.dag import graph
from nexmark.dag.signoff import build_signoff_dag
from nexmark.engines import Build
from tests.site import ENGINE, make_site

if TYPE_CHECKING:
    from airflow.models.dagrun import DagRun
    from airflow.models.taskinstance import TaskInstance
    from airflow.serialization.definitions.dag import SerializedDAG
    from sqlalchemy.orm import Session

#: The query of these nights, and the engine that has a build for some dates only.
QUERY, SNAPSHOTS = "q14", "spark-next"
DATE = datetime(2026, 11, 1, 22, tzinfo=UTC)
#: Tasks of a night, from the first one to the last one before the verdict.
BEFORE_THE_VERDICT = (
    "preflight",
    "reap",
    "deploy",
    "start_cluster",
    "dump_events",
    "select",
    f"{QUERY}.expectations",
    f"{QUERY}.repetition",
    "judge",
    "report",
)
#: Tasks without which no night comes to its verdict.
NEEDED = ("preflight", "reap", "deploy", "start_cluster", "dump_events", "judge", "report")


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Session]:
    """A session of Airflow, on a database of its own that has no DAG yet."""
    from airflow import settings
    from airflow.dag_processing.bundles.manager import DagBundlesManager
    from airflow.utils.db import initdb

    def connect() -> None:
        settings.dispose_orm()
        settings.configure_vars()
        settings.configure_orm()

    database = tmp_path_factory.mktemp("airflow") / "airflow.db"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("AIRFLOW__DATABASE__SQL_ALCHEMY_CONN", f"sqlite:///{database}")
        connect()
        initdb()
        with settings.Session() as opened:
            DagBundlesManager().sync_bundles_to_db(session=opened)
            opened.commit()
            yield opened
    connect()


@pytest.fixture(scope="module")
def config(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Config]:
    """A configuration with an engine that has no build for any date; its gate has one round."""
    home = tmp_path_factory.mktemp("run_states")
    build = Build("c430", "4.3.0", "pypi:4.3.0", home / "spark")
    site = make_site(home / "home", home / "conf", build, shares=False)
    engines = site.conf / "engines.yaml"
    content = yaml.safe_load(engines.read_text())
    tarball = f"{home}/spark-{{{{ ds }}}}.tgz"
    content["engines"][SNAPSHOTS] = {
        "build": {"directory": str(build.spark_home)},
        "workload": "tiny",
        "snapshots": {"tarball": tarball, "sha512": f"{tarball}.sha512"},
    }
    engines.write_text(yaml.safe_dump(content))
    one_round: dict[str, object] = {"rounds": [3], "pursue_z": []}
    site.gate(**one_round, comparison=one_round)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("NEXMARK_HOME", str(site.home))
        patch.setenv("NEXMARK_CONF", str(site.conf))
        patch.delenv("NEXMARK_DB", raising=False)
        patch.setattr(graph, "run_order", lambda gate: [QUERY])
        yield load()


class Run:
    """A run of a DAG in Airflow's database, and what its scheduler makes of it."""

    def __init__(self, session: Session, dag: DAG, conf: dict[str, Any] | None = None) -> None:
        from airflow.dag_processing.collection import update_dag_parsing_results_in_db
        from airflow.models.serialized_dag import SerializedDagModel
        from airflow.serialization.serialized_objects import LazyDeserializedDAG
        from airflow.utils.types import DagRunTriggeredByType, DagRunType

        self.session, self.dag = session, dag
        parsed = [LazyDeserializedDAG.from_dag(dag)]
        update_dag_parsing_results_in_db("dags-folder", None, parsed, {}, None, set(), session)
        session.commit()
        self.known: SerializedDAG = SerializedDagModel.get_dag(dag.dag_id, session=session)
        count = session.info.setdefault("runs", 0) + 1
        session.info["runs"] = count
        date = DATE + timedelta(days=count)
        self.run: DagRun = self.known.create_dagrun(
            run_id=f"manual__{count}",
            logical_date=date,
            data_interval=(date, date),
            run_after=date,
            conf=conf,
            run_type=DagRunType.MANUAL,
            state="running",
            triggered_by=DagRunTriggeredByType.TEST,
            triggering_user_name="dag_test",
            start_date=date,
            session=session,
        )
        session.commit()

    def task(self, task_id: str) -> TaskInstance:
        (found,) = [ti for ti in self._tasks() if ti.task_id == task_id]
        return found

    def states(self) -> dict[str, str | None]:
        return {ti.task_id: ti.state and str(ti.state) for ti in self._tasks()}

    def _tasks(self) -> list[TaskInstance]:
        self.session.expire_all()
        return list(self.run.get_task_instances(session=self.session))

    def come_to(self, task_id: str, state: str) -> None:
        """All that the task waits for has succeeded; the task itself is in this state."""
        before = self.known.get_task(task_id).get_flat_relative_ids(upstream=True)
        for ti in self._tasks():
            if ti.task_id in before:
                ti.state = "success"
            if ti.task_id == task_id:
                ti.state = state
        self.session.commit()

    def mark(self, state: str) -> None:
        """A person marks the run."""
        from airflow.api.common import mark_tasks

        mark = {
            "failed": mark_tasks.set_dag_run_state_to_failed,
            "success": mark_tasks.set_dag_run_state_to_success,
        }[state]
        mark(dag=self.known, run_id=self.run.run_id, commit=True, session=self.session)
        self.session.commit()

    def execute(self, task_id: str) -> str:
        """Run a task, as `airflow dags test` does; the state that it ends in."""
        from airflow.sdk.definitions.dag import _run_task

        ti = self.task(task_id)
        ti.try_number += 1
        ti.state = "scheduled"
        self.session.commit()
        ti.task = self.known.get_task(task_id)
        _run_task(ti=ti, task=self.dag.get_task(task_id))
        self.session.commit()
        return str(self.task(task_id).state)

    def end(self, **ends: str) -> str:
        """Go on to the end; its state. A task that becomes ready succeeds, or ends by `ends`."""
        for _ in range(100):
            if str(self.run.state) not in ("queued", "running"):
                return str(self.run.state)
            self.session.expire_all()
            ready, _ = self.run.update_state(session=self.session)
            self.session.commit()
            for ti in ready:
                if ti.task_id == "run_state":
                    self.execute("run_state")
                else:
                    ti.state = ends.get(ti.task_id, "success")
            self.session.commit()
        raise AssertionError(self.states())


@pytest.fixture
def begin(session: Session, config: Config) -> Callable[..., Run]:
    def begun(kind: str = "nightly", **conf: Any) -> Run:
        builders: Mapping[str, Callable[[], DAG]] = {
            "nightly": lambda: graph.build_nightly_dag(config.engines[ENGINE], config),
            "snapshots": lambda: graph.build_nightly_dag(config.engines[SNAPSHOTS], config),
            "build": lambda: graph.build_on_demand_dag(config),
            "rollout": lambda: graph.build_rollout_dag(config),
            "signoff": lambda: build_signoff_dag(config),
        }
        return Run(session, builders[kind](), conf)

    return begun


def test_a_night_with_a_green_verdict_is_green(begin: Callable[..., Run]) -> None:
    run = begin()
    run.come_to("verdict", "success")
    assert run.end() == "success"
    assert run.states()["run_state"] == "success"


@pytest.mark.parametrize(
    ("task_id", "state"),
    [
        *((task_id, "failed") for task_id in BEFORE_THE_VERDICT),
        ("preflight", "success"),
        ("judge", "success"),
    ],
)
def test_a_run_that_a_person_marks_while_it_runs_has_failed(
    begin: Callable[..., Run], task_id: str, state: str
) -> None:
    """Marked as a success, too: half a night has shown nothing."""
    run = begin()
    run.come_to(task_id, "running")
    run.mark(state)
    assert run.end() == "failed"
    assert run.states()["verdict"] == "skipped"


def test_a_verdict_that_is_marked_failed_while_it_runs_has_failed(
    begin: Callable[..., Run],
) -> None:
    run = begin()
    run.come_to("verdict", "running")
    run.mark("failed")
    assert run.end() == "failed"


@pytest.mark.parametrize("waiting", [None, "scheduled", "queued"])
def test_a_run_that_is_marked_before_its_first_task_has_failed(
    begin: Callable[..., Run], waiting: str | None
) -> None:
    """It waits for another run, or for the pool. Its preflight is skipped, as without a build."""
    run = begin()
    run.task("preflight").state = waiting
    run.session.commit()
    run.mark("failed")
    assert run.states()["preflight"] == "skipped"
    assert run.end() == "failed"


@pytest.mark.parametrize("task_id", [*NEEDED, "verdict"])
def test_a_night_whose_task_fails_has_failed(begin: Callable[..., Run], task_id: str) -> None:
    run = begin()
    run.come_to(task_id, "failed")
    assert run.end() == "failed"


@pytest.mark.parametrize("task_id", ["deploy", "start_cluster", "dump_events", "judge"])
@pytest.mark.parametrize("marked", [False, True])
def test_a_cluster_that_was_claimed_is_stopped(
    begin: Callable[..., Run], task_id: str, marked: bool
) -> None:
    """A start that fails may leave Kafka's topics, or a broker; every night leaves its claim."""
    run = begin()
    run.come_to(task_id, "running" if marked else "failed")
    if marked:
        run.mark("failed")
    assert run.end() == "failed"
    assert run.states()["stop_cluster"] == "success"


@pytest.mark.parametrize("task_id", ["preflight", "reap"])
def test_a_cluster_that_was_not_claimed_is_not_touched(
    begin: Callable[..., Run], task_id: str
) -> None:
    """Another night may have it."""
    run = begin()
    run.come_to(task_id, "failed")
    assert run.end() == "failed"
    assert run.states()["stop_cluster"] == "upstream_failed"


def test_a_cluster_that_cannot_be_stopped_turns_no_green_night_red(
    begin: Callable[..., Run],
) -> None:
    run = begin()
    run.come_to("verdict", "success")
    assert run.end(stop_cluster="failed") == "success"


def test_a_task_that_takes_too_long_fails_its_night(begin: Callable[..., Run]) -> None:
    run = begin()
    run.dag.get_task("preflight").execution_timeout = timedelta(milliseconds=1)
    assert run.execute("preflight") == "failed"
    assert run.end() == "failed"


def test_a_night_that_its_preflight_refuses_has_failed(begin: Callable[..., Run]) -> None:
    run = begin("build", build="directory:/no/spark", workload="tiny")
    assert run.execute("preflight") == "failed"
    assert run.end() == "failed"
    assert run.states()["verdict"] == "upstream_failed"


def test_a_date_without_a_build_stays_green(begin: Callable[..., Run], config: Config) -> None:
    run = begin("snapshots")
    assert run.execute("preflight") == "skipped"
    assert run.end() == "success"
    assert set(run.states().values()) == {"skipped"}


def test_what_a_killed_scheduler_has_left_is_done_again_or_has_failed(
    begin: Callable[..., Run],
) -> None:
    """Another scheduler finds a task that nothing runs any more, and begins it again."""
    from airflow.jobs.job import Job
    from airflow.jobs.scheduler_job_runner import SchedulerJobRunner

    run = begin()
    run.come_to("judge", "running")
    killed = Job(job_type="SchedulerJob", state="running")
    killed.latest_heartbeat = datetime.now(UTC) - timedelta(hours=1)
    run.session.add(killed)
    run.session.flush()
    run.task("judge").queued_by_job_id = killed.id
    run.session.commit()
    SchedulerJobRunner(Job()).adopt_or_reset_orphaned_tasks(session=run.session)
    run.session.commit()
    assert run.states()["judge"] is None
    assert run.end(judge="failed") == "failed"


@pytest.mark.parametrize(
    ("task_id", "state"),
    [("question", "running"), ("approval", "awaiting_input"), ("evidence", "queued")],
)
def test_a_sign_off_that_is_marked_before_its_decision_has_failed(
    begin: Callable[..., Run], task_id: str, state: str
) -> None:
    run = begin("signoff", build="pypi:4.3.0")
    run.come_to(task_id, state)
    run.mark("failed")
    assert run.end() == "failed"


@pytest.mark.parametrize(("decision", "state"), [("success", "success"), ("failed", "failed")])
def test_a_sign_off_ends_as_it_was_decided(
    begin: Callable[..., Run], decision: str, state: str
) -> None:
    run = begin("signoff", build="pypi:4.3.0")
    run.come_to("approval", "success" if decision == "success" else "failed")
    assert run.end(decision=decision) == state


@pytest.mark.parametrize("state", ["running", "queued"])
def test_a_rollout_that_is_marked_before_its_stage_is_judged_has_failed(
    begin: Callable[..., Run], state: str
) -> None:
    run = begin("rollout")
    run.come_to("stage", state)
    run.mark("failed")
    assert run.end() == "failed"
    assert run.states()["next_stage"] == "skipped"
