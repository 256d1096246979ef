"""Whatever keeps an application from running, its reason is what the pages say, never a guess."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from airflow.sdk.exceptions import AirflowException, AirflowTaskTimeout

from nexmark.cluster import ClusterError, Lease
from nexmark.config import paths
from nexmark.dag.submit_operator import NexmarkSubmitOperator
from nexmark.errors import NexmarkError
from nexmark.model import FIRST_ROUND
from nexmark.night.night_plan import Night
from nexmark.night.night_runs import first_runs
from nexmark.night.run_directory import Run, TaskDirectory
from nexmark.night.submission import written
from nexmark.night.verification import Verification
from nexmark.sampling import sampler_processes
from nexmark.sampling.group_samples import GroupSamples
from nexmark.store import open_store
from nexmark.tasks import experiment_steps, infrastructure, upgrading
from nexmark.tasks import query as tasks
from tests.unit.tasks.submissions import repetition
from tests.unit.tasks.test_recording import begin, produced, verified

CHANGED = "include/conf/engines.yaml: spark.x of spark-4.3.0 is not what it was"


@pytest.fixture
def night(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Night:
    monkeypatch.setenv("NEXMARK_HOME", str(tmp_path))
    monkeypatch.delenv("NEXMARK_DB", raising=False)
    return begin("run 1", monkeypatch)


def submission(night: Night, stage: int = FIRST_ROUND, **fields: Any) -> dict[str, Any]:
    """Repetition 1 of q0; `fields` are of its application."""
    run, place = Run(query="q0", number=1, stage=stage), night.query_dir("q0") / "rep-1"
    return written(repetition(night, run, place, **fields))


def submit(night: Night, monkeypatch: pytest.MonkeyPatch, **fields: Any) -> BaseException:
    """What the operator of repetition 1 raises."""
    connection = {"conn_type": "spark", "host": "spark://127.0.0.1", "port": 7077}
    monkeypatch.setenv("AIRFLOW_CONN_NEXMARK_LOCAL", json.dumps(connection))
    operator = NexmarkSubmitOperator(task_id="q", submission=submission(night, **fields))
    names = {"dag_id": night.dag_id, "run_id": "r", "task_id": "q0.repetition", "map_index": 0}
    instance = SimpleNamespace(**names, xcom_push=lambda **_: 0)
    with pytest.raises(BaseException) as raised:  # noqa: PT011
        operator.execute({"ti": instance})  # type: ignore[typeddict-item]
    return raised.value


def recorded(night: Night) -> str:
    """The reason of repetition 1, as the pages have it."""
    tasks.record("q0")
    with open_store(paths.database_url()) as store:
        return next(x.reason or "" for x in store.repetitions(night.name) if x.number == 1)


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        (
            {"engine": "spark-4.3.0", "secret_confs": {"spark.x.password": "<1234>"}},
            "spark.x.password of spark-4.3.0 is not what it was when the night was planned",
        ),
        ({"kafka": "no_such_connection"}, "no_such_connection"),
        ({"stage": 2}, "deployment.json: there is no such file; start a new DAG run"),
        ({"profile": "no_such"}, "/no_such.conf"),
    ],
    ids=["secret", "connection", "cluster", "file"],
)
def test_a_repetition_that_cannot_be_submitted_says_why(
    night: Night,
    monkeypatch: pytest.MonkeyPatch,
    fields: dict[str, Any],
    said: str,
) -> None:
    if "stage" in fields:
        (night.directory / "deployment.json").unlink()
        monkeypatch.setattr(infrastructure, "_lease", lambda x: Lease(x.dag_id, x.run_id))
    error = submit(night, monkeypatch, **fields)
    assert said in str(error)
    verified(night)
    assert recorded(night).startswith("the application failed: ")
    assert said in recorded(night)


def test_a_night_s_own_error_ends_its_task_as_airflow_s_do(
    night: Night,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    error = submit(night, monkeypatch, engine="spark-4.3.0", secret_confs={"spark.x": "<1>"})
    assert isinstance(error, AirflowException)


def test_a_task_whose_time_is_over_says_so(
    night: Night,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(
        NexmarkSubmitOperator, "_submit", raising(AirflowTaskTimeout("Timeout, PID: 1"))
    )
    assert isinstance(submit(night, monkeypatch), AirflowTaskTimeout)
    verified(night)
    took = "the task took longer than its execution_timeout, and was ended"
    assert recorded(night) == f"the application failed: {took}"


def raising(error: BaseException) -> Callable[..., Any]:
    def raises(*_: Any, **__: Any) -> Any:
        raise error

    return raises


def test_a_query_that_cannot_be_planned_says_why(
    night: Night,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(tasks, "heal", lambda *_: None)
    monkeypatch.setattr(tasks, "verify_submission", raising(NexmarkError(CHANGED)))
    with pytest.raises(AirflowException, match="is not what it was"):
        tasks.plan("q0")
    assert recorded(night) == f"not run, because it could not be prepared: {CHANGED}"


def test_a_comparison_that_fails_is_not_without_a_reason(
    night: Night,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    produced(night.query_dir("q0") / "verify")
    monkeypatch.setattr(tasks, "verify", raising(MemoryError()))
    with pytest.raises(MemoryError):
        tasks.expectations("q0")
    assert Verification.read(night.query_dir("q0")) is None
    assert recorded(night).endswith("could not be compared with the reference: MemoryError")


def test_a_sampler_that_does_not_start_is_why_the_repetitions_are_missing(
    night: Night,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sampler_processes, "run_canary", lambda *_: None)
    (night.directory / "deployment.json").unlink()
    with pytest.raises(AirflowException, match=r"deployment\.json"):
        tasks.start_samplers("q0")
    verified(night)
    assert "deployment.json: there is no such file" in recorded(night)


def test_samples_that_could_not_be_fetched_say_why(
    night: Night,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    cluster = type(night.spark_cluster)
    monkeypatch.setattr(sampler_processes, "run_canary", lambda *_: None)
    monkeypatch.setattr(cluster, "stop_samplers", raising(ClusterError("nexmark02: no answer")))
    with pytest.raises(AirflowException, match="no answer"):
        tasks.stop_samplers("q0")
    problem = GroupSamples.read(night, "q0").problem
    assert problem is not None
    assert problem.endswith(": nexmark02: no answer")


def test_an_upgrade_that_cannot_be_checked_says_why(
    night: Night,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    baseline = SimpleNamespace(build="b" * 16, spark_version="4.2.1")
    candidate = SimpleNamespace(build="c" * 16, spark_version="4.3.0")
    check = raising(NexmarkError("no events: the disk is full"))
    one = SimpleNamespace(queries=["q0"], baseline=baseline, candidate=candidate, check=check)
    monkeypatch.setattr("nexmark.compatibility.upgrade.why_not", lambda *_: "")
    monkeypatch.setattr("nexmark.compatibility.upgrade.upgrades", lambda *_: [one])
    with pytest.raises(AirflowException, match=r"q0 .*: no events: the disk is full"):
        upgrading.compatibility()


def test_a_step_of_an_experiment_keeps_the_reason_whatever_the_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = tmp_path / "1-plain"
    trial = SimpleNamespace(name="x", run=raising(KeyError("batches")), place_of=lambda *_: place)
    context = {"ti": SimpleNamespace(map_index=0)}
    monkeypatch.setattr(experiment_steps, "_trials", lambda: [trial])
    monkeypatch.setattr(experiment_steps, "get_current_context", lambda: context)
    steps = tmp_path / "steps.json"
    steps.write_text(json.dumps([{"trial": 0, "pair": 1, "arm": "plain"}]))
    with pytest.raises(KeyError):
        experiment_steps.measure({"sequence": str(steps)})
    assert TaskDirectory(place).failure() == "KeyError: 'batches'"


def test_what_never_began_is_still_said_to_be_that(night: Night) -> None:
    verified(night)
    assert [run.number for run in first_runs(night, "q0")] == [1, 2, 3]
    assert recorded(night) == "the application failed: it was not started, or was killed"
