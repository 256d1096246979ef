"""The DAGs load, are cheap to parse, and have what an operator needs of them."""

from __future__ import annotations

import itertools
import json
import os
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from airflow.dag_processing.dagbag import DagBag
from airflow.sdk import DAG, TaskGroup
from airflow.sdk.definitions.context import _AIRFLOW_PARSING_CONTEXT_DAG_ID

from nexmark.config import KNOWN_QUERIES, load
from nexmark.config.airflow_names import POOL
from nexmark.dag.dag_params import SECTIONS
from nexmark.night.night_runs import later_groups, run_order

ROOT = Path(__file__).parents[2]
NIGHTLY = sorted(engine.dag_id for engine in load().engines.values())
INFRASTRUCTURE = {
    "reap",
    "deploy",
    "start_cluster",
    "dump_events",
    "select",
    "plan",
    "verify",
    "start_samplers",
    "repetition",
    "stop_samplers",
    "record",
    "judge",
    "report",
    "stop_cluster",
    "run_state",
}
ON_THE_CLUSTER = {
    "preflight",
    "reap",
    "deploy",
    "start_cluster",
    "dump_events",
    "plan",
    "verify",
    "expectations",
    "start_samplers",
    "repetition",
    "stop_samplers",
    "stop_cluster",
    "compatibility",
}


@pytest.fixture(params=NIGHTLY)
def nightly(request: pytest.FixtureRequest, bag: DagBag) -> DAG:
    return bag.dags[request.param]


@pytest.fixture(params=[*NIGHTLY, "nexmark_build"])
def graph(request: pytest.FixtureRequest, bag: DagBag) -> DAG:
    """Every DAG with the graph of a night."""
    return bag.dags[request.param]


def later(graph: DAG) -> list[str]:
    """The groups behind the queries."""
    gate = load().gate
    return later_groups(gate if graph.dag_id in NIGHTLY else gate.for_comparison())


def short(task_id: str) -> str:
    return task_id.rpartition(".")[2]


@pytest.mark.parametrize(
    "wanted", [NIGHTLY[0], "nexmark_build", "nexmark_rollout", "nexmark_signoff"]
)
def test_a_task_builds_no_large_dag_but_its_own(
    wanted: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(_AIRFLOW_PARSING_CONTEXT_DAG_ID, wanted)
    own = DagBag(str(ROOT / "dags"))
    small = {"nexmark_accept", "nexmark_experiment", "nexmark_prune"}
    assert own.import_errors == {}
    assert set(own.dags) == {wanted, *small}


def test_every_engine_has_its_dag_and_none_is_broken(bag: DagBag) -> None:
    assert bag.import_errors == {}
    others = ("accept", "build", "experiment", "prune", "rollout", "signoff")
    assert sorted(bag.dags) == sorted([*NIGHTLY, *(f"nexmark_{name}" for name in others)])
    assert "nexmark_spark_4_3_0" in NIGHTLY


def test_an_engine_is_added_by_adding_an_entry(tmp_path: Path) -> None:
    import shutil

    conf = tmp_path / "conf"
    shutil.copytree(ROOT / "include" / "conf", conf)
    with (conf / "engines.yaml").open("a") as file:
        file.write("  spark-9.9.9-rc1:\n    build: {directory: /opt/spark-9.9.9-rc1}\n")
    program = (
        "from airflow.dag_processing.dagbag import DagBag;"
        f"print(*DagBag({str(ROOT / 'dags')!r}).dags, sep='\\n')"
    )
    environment = {**os.environ, "NEXMARK_CONF": str(conf)}
    run = subprocess.run(
        [sys.executable, "-c", program], env=environment, capture_output=True, text=True
    )
    assert "nexmark_spark_9_9_9_rc1" in run.stdout.splitlines(), run.stderr


def test_a_mistake_in_a_job_breaks_no_dag(tmp_path: Path) -> None:
    """The nights of all other queries go on; `q5` is no name that a job can have."""
    import shutil

    conf = tmp_path / "conf"
    shutil.copytree(ROOT / "include" / "conf", conf)
    for name in ("broken", "q5", "verify"):
        (conf / "jobs" / f"{name}.yaml").write_text("tables: nexmark\nsqll: x.sql\n")
    program = (
        "from airflow.dag_processing.dagbag import DagBag;"
        f"bag = DagBag({str(ROOT / 'dags')!r}); print(bag.import_errors, len(bag.dags))"
    )
    environment = {**os.environ, "NEXMARK_CONF": str(conf)}
    run = subprocess.run(
        [sys.executable, "-c", program], env=environment, capture_output=True, text=True
    )
    assert run.stdout.splitlines()[-1] == f"{{}} {len(NIGHTLY) + 6}", run.stdout + run.stderr


def test_parsing_is_cheap_and_imports_nothing_heavy() -> None:
    """Airflow parses a DAG file again for every task: hundreds of times a night.

    Calls are counted, not seconds, which are more on a busy machine. There are 3.8 million
    (2026-11-24).
    """
    program = """
import json, sys
from airflow.dag_processing.dagbag import DagBag
DagBag("dags")
calls = 0
def count(frame, event, argument):
    global calls
    calls += event in ("call", "c_call")
sys.setprofile(count)
bag = DagBag("dags")
sys.setprofile(None)
heavy = ["pyspark", "great_expectations", "pandas", "numpy", "duckdb", "scipy", "alembic"]
print(json.dumps({
    "errors": bag.import_errors, "tasks": sum(len(dag.tasks) for dag in bag.dags.values()),
    "calls": calls, "heavy": [name for name in heavy if name in sys.modules],
}))
"""
    run = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True
    )
    found = json.loads(run.stdout.splitlines()[-1])
    assert found["errors"] == {}
    assert found["heavy"] == []
    assert found["tasks"] > 5 * 7 * len(KNOWN_QUERIES)
    assert found["calls"] < 5_000_000


def test_what_only_a_rollout_needs_costs_the_nights_nothing() -> None:
    """The operator that triggers a DAG run brings 200 modules."""
    program = (
        "import sys, nexmark_nightly; print([x for x in sys.modules if 'trigger_dagrun' in x])"
    )
    nightly = {**os.environ, "PYTHONPATH": str(ROOT / "dags")}
    run = subprocess.run(
        [sys.executable, "-c", program], env=nightly, capture_output=True, text=True, check=True
    )
    assert run.stdout.splitlines()[-1] == "[]"


def test_schedule_and_limits(nightly: DAG) -> None:
    assert nightly.catchup is False
    assert nightly.max_active_runs == 1
    assert nightly.fail_fast is False
    engine = next(e for e in load().engines.values() if e.dag_id == nightly.dag_id)
    assert getattr(nightly.timetable, "expression", None) == engine.schedule


def test_tags_and_documentation_tell_an_operator_what_to_do(bag: DagBag) -> None:
    for dag in bag.dags.values():
        assert "nexmark" in dag.tags
        assert dag.doc_md is not None
        assert "## When it is red" in dag.doc_md
        assert dag.description


def test_the_documentation_covers_every_task(graph: DAG) -> None:
    green_by_nature = {"select", "plan", "start_samplers", "stop_samplers", "judge", "report"}
    for name in {short(task.task_id) for task in graph.tasks} - green_by_nature:
        assert name == "stop_cluster" or name in str(graph.doc_md), name


def test_every_task_ends_in_time(bag: DagBag) -> None:
    for dag in bag.dags.values():
        for task in dag.tasks:
            assert task.execution_timeout is not None, task.task_id
            assert timedelta(0) < task.execution_timeout <= timedelta(hours=2), task.task_id


def test_only_infrastructure_is_tried_again(graph: DAG) -> None:
    """A verdict or an expectation that fails has failed."""
    for task in graph.tasks:
        expected = short(task.task_id) in INFRASTRUCTURE
        assert (task.retries > 0) == expected, task.task_id


def test_what_uses_the_cluster_is_in_the_pool(graph: DAG) -> None:
    for task in graph.tasks:
        expected = POOL if short(task.task_id) in ON_THE_CLUSTER else "default_pool"
        assert task.pool == expected, task.task_id


def test_queries_run_one_after_another_whatever_became_of_the_one_before(graph: DAG) -> None:
    before = "verify"
    order = run_order(load().gate)
    assert sorted(order) == sorted(KNOWN_QUERIES)
    assert order != list(KNOWN_QUERIES)
    for query in order:
        plan = graph.get_task(f"{query}.plan")
        assert plan.upstream_task_ids == {before}
        assert plan.trigger_rule == "all_done"
        record = graph.get_task(f"{query}.record")
        assert before in record.upstream_task_ids  # also when the query itself is skipped
        assert record.trigger_rule == "all_done"
        before = record.task_id
    for group in later(graph):
        assert graph.get_task(f"{group}.plan").upstream_task_ids == {before}
        record = graph.get_task(f"{group}.record")
        for task in (graph.get_task(f"{group}.plan"), record):
            assert task.trigger_rule == "all_done"
        before = record.task_id
    assert graph.get_task("flames.draw").upstream_task_ids == {before}
    assert graph.get_task("flames.draw").trigger_rule == "all_done"
    assert graph.get_task("judge").trigger_rule == "all_done"
    assert graph.get_task("compatibility").upstream_task_ids == {"flames.draw"}
    assert graph.get_task("compatibility").trigger_rule == "all_done"
    assert graph.get_task("judge").upstream_task_ids == {"compatibility"}


def test_the_verdict_decides_the_colour_of_the_night(graph: DAG) -> None:
    """Not the teardown that stops the cluster: the last task, which looks at the verdict."""
    assert [task.task_id for task in graph.leaves] == ["run_state"]
    stop, last = graph.get_task("stop_cluster"), graph.get_task("run_state")
    assert stop.is_teardown
    assert not stop.on_failure_fail_dagrun
    assert "verdict" in stop.upstream_task_ids
    assert last.upstream_task_ids == {"verdict", "stop_cluster"}


def test_nothing_of_a_query_runs_without_the_cluster_and_the_events(graph: DAG) -> None:
    setups = {"start_cluster", "dump_events"}
    for task in graph.tasks:
        if "." in task.task_id or task.task_id in ("judge", "report", "verdict"):
            found = {t.task_id for t in task.get_upstreams_only_setups_and_teardowns()}
            assert found >= setups, task.task_id


@pytest.mark.parametrize(
    "dag_id", [*NIGHTLY, "nexmark_build", "nexmark_signoff", "nexmark_rollout"]
)
def test_a_night_is_five_boxes_until_a_person_opens_one(bag: DagBag, dag_id: str) -> None:
    boxes = bag.dags[dag_id].task_group.children
    assert list(boxes) == ["prepare", "queries", "confirmation", "judgement", "end"]
    assert [getattr(box, "label", None) for box in boxes.values()] == [
        *("prepare", "queries", "confirmation", "verdict", "end")
    ]


def test_a_query_says_when_it_is_measured(graph: DAG) -> None:
    """Airflow keeps the order of the groups, and sorts other lists by their names."""
    queries = graph.task_group.get_child_by_label("queries")
    assert isinstance(queries, TaskGroup)
    labels = [str(query.label) for query in queries.children.values()]
    order = run_order(load().gate)
    assert labels == [f"{place}. {query}" for place, query in enumerate(order, 1)]


def test_samplers_surround_the_timed_repetitions(graph: DAG) -> None:
    for group in (*KNOWN_QUERIES, *later(graph)):
        start = graph.get_task(f"{group}.start_samplers")
        stop = graph.get_task(f"{group}.stop_samplers")
        assert start.is_setup
        assert stop.is_teardown
        assert start.downstream_task_ids == {f"{group}.repetition", f"{group}.stop_samplers"}
        assert f"{group}.repetition" in stop.upstream_task_ids
        assert graph.get_task(f"{group}.repetition").max_active_tis_per_dagrun == 1


@pytest.mark.parametrize(
    ("param", "good", "bad"),
    [
        ("queries", [None, "", "q0", "q1, q14_python_udf", ["q0", "q5"]], ["q99", "q0;q1", ["x"]]),
        ("workload", ["smoke", "nightly"], ["smok", None, 3]),
        ("repetitions", [None, 1, 100], [0, -1, 101, "3", 1.5]),
        ("candidate", [None, "pypi:4.3.0"], [3, "x" * 5000]),
        ("mode", [None, "paired", "bounds"], ["history", "pair", "", 1]),
        ("against", [None, "pypi:4.2.1"], [3, "x" * 5000]),
        ("cluster", ["local"], ["lokal", None]),
    ],
)
def test_params_refuse_what_makes_no_sense(
    nightly: DAG, param: str, good: list[object], bad: list[object]
) -> None:
    from airflow.sdk.exceptions import ParamValidationError

    definition = nightly.params.get_param(param)
    for value in good:
        assert definition.resolve(value) == value
    for value in bad:
        with pytest.raises(ParamValidationError):
            definition.resolve(value)


@pytest.mark.parametrize(
    ("dag_id", "first"),
    [
        (NIGHTLY[0], ["candidate", "workload", "queries"]),
        ("nexmark_build", ["build", "against", "workload", "queries"]),
        ("nexmark_signoff", ["build", "against", "workload"]),
        ("nexmark_rollout", ["stages", "build", "candidate_conf", "workload"]),
    ],
)
def test_a_form_shows_what_matters_and_folds_the_rest(
    bag: DagBag, dag_id: str, first: list[str]
) -> None:
    """As Airflow keeps it for its form: in this order, the rest in sections."""
    from airflow.serialization.serialized_objects import DagSerialization

    kept = DagSerialization.deserialize_dag(DagSerialization.serialize_dag(bag.dags[dag_id]))
    sections = {name: kept.params.get_param(name).schema.get("section") for name in kept.params}
    assert [name for name, section in sections.items() if section is None] == first
    assert list(sections)[: len(first)] == first
    folded = [str(section) for section in sections.values() if section is not None]
    assert set(folded) <= set(SECTIONS)
    assert [section for section, _ in itertools.groupby(folded)] == list(dict.fromkeys(folded))


@pytest.mark.parametrize(("late", "waits"), [(timedelta(hours=1), True), (timedelta(), False)])
def test_a_dag_that_never_ran_waits_for_its_next_date(late: timedelta, waits: bool) -> None:
    """Unpaused, it begins no night of a date that has passed. What has just been due is begun."""
    from airflow.serialization.serialized_objects import DagSerialization

    from nexmark.dag.graph import build_nightly_dag

    now = datetime.now(UTC)
    due = now - late
    config = load()
    engine = config.newest.model_copy(update={"schedule": f"{due.minute} {due.hour} * * *"})
    dag = build_nightly_dag(engine, config)
    known = DagSerialization.deserialize_dag(DagSerialization.serialize_dag(dag))
    begins = known.next_dagrun_info(last_automated_run_info=None)
    assert begins is not None
    assert (begins.run_after > now) == waits


def test_defaults_are_valid_so_that_a_scheduled_night_can_start(bag: DagBag) -> None:
    for name in NIGHTLY:
        bag.dags[name].params.validate()


def test_notifiers_are_told_where_a_red_night_ends(tmp_path: Path) -> None:
    import shutil

    conf = tmp_path / "conf"
    shutil.copytree(ROOT / "include" / "conf", conf)
    (conf / "notifications.yaml").write_text(
        "notifications:\n"
        "  - notifier: airflow.providers.smtp.notifications.smtp.SmtpNotifier\n"
        "    kwargs: {to: [a@example.org], from_email: b@example.org, subject: red}\n"
    )
    program = """
import json
from airflow.dag_processing.dagbag import DagBag
bag = DagBag("dags")
def told(task):
    called = task.on_failure_callback  # of a mapped task as it was given: one, or a list
    called = called if isinstance(called, (list, tuple)) else [called]
    return any(type(x).__name__ == "SmtpNotifier" for x in called)
print(json.dumps({
    dag_id: sorted(task.task_id for task in dag.tasks if told(task))
    for dag_id, dag in bag.dags.items()
}))
"""
    environment = {**os.environ, "NEXMARK_CONF": str(conf)}
    run = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, env=environment, capture_output=True, text=True
    )
    found = json.loads(run.stdout.splitlines()[-1])
    before = ["deploy", "dump_events", "judge", "preflight", "reap", "report", "start_cluster"]
    assert found["nexmark_spark_4_3_0"] == [*before, "verdict"]
    assert found["nexmark_signoff"] == sorted([*before, "question", "evidence", "decision"])
    assert found["nexmark_rollout"] == sorted([*before, "stage"])
    assert found["nexmark_accept"] == []


def test_on_demand_and_nightly_are_the_same_graph(nightly: DAG, bag: DagBag) -> None:
    """But for the number of rounds: a comparison has its own."""
    other = bag.dags["nexmark_build"]
    ours, theirs = (
        [task.task_id for task in dag.tasks if not task.task_id.startswith("round_")]
        for dag in (nightly, other)
    )
    assert ours == theirs
    common = {task.task_id for task in nightly.tasks} & {task.task_id for task in other.tasks}
    ends = {f"{(*later(dag),)[-2]}.record" for dag in (nightly, other)}  # before `flames`
    for task_id in common - ends:
        downstream = nightly.get_task(task_id).downstream_task_ids
        assert other.get_task(task_id).downstream_task_ids == downstream
