"""Sign-off, rollout, experiment, acceptance, build on demand: their graphs and their params."""

from __future__ import annotations

import itertools
from datetime import timedelta

import pytest
from airflow.dag_processing.dagbag import DagBag
from airflow.sdk import DAG
from airflow.sdk.exceptions import ParamValidationError

from nexmark.config import Retention, load
from nexmark.config.airflow_names import POOL
from nexmark.dag.prune_dag import build_prune_dag

COMPARISON = "nexmark_build"
"""The DAG of a comparison: its night has as many rounds as theirs."""


class TestSignOff:
    @pytest.fixture
    def signoff(self, bag: DagBag) -> DAG:
        return bag.dags["nexmark_signoff"]

    def test_it_is_a_night_with_a_person_at_its_end(self, signoff: DAG, bag: DagBag) -> None:
        """A red verdict does not keep the question from being asked."""
        own = {"question", "approval", "evidence", "decision"}
        night = set(bag.dags[COMPARISON].task_ids)
        assert set(signoff.task_ids) - night == own
        assert night - set(signoff.task_ids) == {"verdict"}
        order = ["report", "question", "approval", "evidence", "decision"]
        for before, after in itertools.pairwise(order):
            assert signoff.get_task(after).upstream_task_ids == {before}

    def test_the_evidence_is_written_whatever_is_decided(self, signoff: DAG) -> None:
        assert signoff.get_task("evidence").trigger_rule == "all_done"
        assert signoff.get_task("approval").fail_on_reject

    def test_only_an_approval_makes_it_green(self, signoff: DAG) -> None:
        assert [task.task_id for task in signoff.leaves] == ["run_state"]
        assert signoff.get_task("run_state").upstream_task_ids == {"decision", "stop_cluster"}
        assert signoff.get_task("decision").trigger_rule == "all_success"
        assert signoff.get_task("decision").retries == 0

    def test_the_cluster_is_not_kept_while_somebody_thinks(self, signoff: DAG) -> None:
        upstream = signoff.get_task("stop_cluster").upstream_task_ids
        assert "report" in upstream
        assert upstream.isdisjoint({"question", "approval", "evidence", "decision"})
        assert signoff.get_task("approval").pool == "default_pool"
        assert signoff.max_active_runs > 1

    def test_a_person_has_days_and_the_task_minutes(self, signoff: DAG) -> None:
        approval = signoff.get_task("approval")
        assert approval.response_timeout == timedelta(days=7)
        assert approval.execution_timeout == timedelta(minutes=5)

    def test_the_build_has_to_be_named(self, signoff: DAG) -> None:
        from airflow.sdk.exceptions import ParamValidationError

        for wrong in (None, ""):
            with pytest.raises(ParamValidationError):
                signoff.params.get_param("build").resolve(wrong)
        assert signoff.params.get_param("verify_scale").value == 5
        assert signoff.params.get_param("against").value is None

    def test_the_documentation_tells_of_its_own_tasks(self, signoff: DAG) -> None:
        for name in ("question", "approval", "evidence", "decision", "nexmark verify"):
            assert name in str(signoff.doc_md)


class TestRollout:
    @pytest.fixture
    def dag(self, bag: DagBag) -> DAG:
        return bag.dags["nexmark_rollout"]

    def test_a_run_is_a_night_that_its_stage_decides(self, dag: DAG, bag: DagBag) -> None:
        night = set(bag.dags[COMPARISON].task_ids)
        assert set(dag.task_ids) - night == {"stage", "next_stage"}
        assert night - set(dag.task_ids) == {"verdict"}
        assert {task.task_id for task in dag.leaves} == {"next_stage", "run_state"}
        assert dag.get_task("run_state").upstream_task_ids == {"stage", "stop_cluster"}
        assert "report" in dag.get_task("stop_cluster").upstream_task_ids

    def test_only_a_green_stage_is_followed_by_the_next(self, dag: DAG) -> None:
        stage, following = dag.get_task("stage"), dag.get_task("next_stage")
        assert stage.upstream_task_ids == {"report"}
        assert following.upstream_task_ids == {"stage"}
        assert (stage.trigger_rule, following.trigger_rule) == ("all_success", "all_success")
        assert (stage.retries, dag.max_active_runs) == (0, 1)

    def test_a_new_one_and_one_to_resume_are_both_allowed(self, dag: DAG) -> None:
        from airflow.sdk.exceptions import ParamValidationError

        dag.params.validate()
        for name, wrong in (("workload", "no-such"), ("repetitions", 0), ("stages", 3)):
            with pytest.raises(ParamValidationError):
                dag.params.get_param(name).resolve(wrong)

    def test_the_documentation_tells_of_its_own_tasks_and_params(self, dag: DAG) -> None:
        for name in ("stage", "next_stage", *dag.params):
            assert f"`{name}`" in str(dag.doc_md), name


class TestExperiment:
    @pytest.fixture
    def dag(self, bag: DagBag) -> DAG:
        return bag.dags["nexmark_experiment"]

    def test_arms_take_turns_and_the_table_comes_whatever_became_of_them(self, dag: DAG) -> None:
        measure, table = dag.get_task("measure"), dag.get_task("table")
        assert measure.max_active_tis_per_dagrun == 1
        assert {dag.get_task(name).pool for name in dag.task_ids} == {POOL}
        assert table.trigger_rule == "all_done"
        assert [task.task_id for task in dag.leaves] == ["table"]
        assert (table.retries, measure.retries) == (0, 1)

    def test_the_experiment_has_to_be_named(self, dag: DAG) -> None:
        from airflow.sdk.exceptions import ParamValidationError

        name = dag.params.get_param("name")
        assert name.resolve("long-window") == "long-window"
        for wrong in (None, "", "long-windows"):
            with pytest.raises(ParamValidationError):
                name.resolve(wrong)


@pytest.mark.parametrize(
    ("param", "good"),
    [
        ("queries", [None, "", "q5,q7", ["q5"]]),
        ("expires", ["", None, "30d", "2027-01-31"]),
        ("link", ["", None, "https://issues/1"]),
    ],
)
def test_an_acceptance_may_be_of_some_queries_until_a_day(
    bag: DagBag, param: str, good: list[object]
) -> None:
    definition = bag.dags["nexmark_accept"].params.get_param(param)
    for value in good:
        assert definition.resolve(value) == value


def test_an_acceptance_needs_a_run_and_a_reason(bag: DagBag) -> None:
    from airflow.sdk.exceptions import ParamValidationError

    params = bag.dags["nexmark_accept"].params
    for name in ("run", "reason"):
        with pytest.raises(ParamValidationError):
            params.get_param(name).resolve("")


def test_a_build_on_demand_needs_a_build_and_takes_the_rest_from_its_engine(bag: DagBag) -> None:
    from airflow.sdk.exceptions import ParamValidationError

    dag = bag.dags["nexmark_build"]
    assert type(dag.timetable).__name__ == "NullTimetable"
    assert (dag.catchup, dag.max_active_runs) == (False, 1)
    params = dag.params
    with pytest.raises(ParamValidationError):
        params.validate()
    params.get_param("build").resolve("pypi:4.2.1")
    with pytest.raises(ParamValidationError):
        params.get_param("build").resolve("")
    assert params.get_param("engine").resolve() == "spark-4.3.0"
    for name in ("workload", "cluster", "against", "queries", "repetitions", "mode"):
        assert params.get_param(name).resolve() is None
    for name in ("engine", "workload", "cluster"):
        with pytest.raises(ParamValidationError):
            params.get_param(name).resolve("no-such")


class TestPrune:
    @pytest.fixture
    def dag(self, bag: DagBag) -> DAG:
        return bag.dags["nexmark_prune"]

    def test_it_waits_for_a_repetition_to_end(self, dag: DAG) -> None:
        """Deleting files beside a repetition would be measured with it."""
        (task,) = dag.tasks
        assert (task.pool, task.pool_slots) == (POOL, 1)

    def test_it_runs_when_the_configuration_says(self, dag: DAG) -> None:
        schedule = load().retention.schedule
        assert schedule is not None
        assert getattr(dag.timetable, "expression", None) == schedule
        without = build_prune_dag(load().model_copy(update={"retention": Retention()}))
        assert without.schedule is None

    def test_a_run_deletes_unless_it_is_a_dry_one(self, dag: DAG) -> None:
        assert dag.params["dry_run"] is False
        with pytest.raises(ParamValidationError):
            dag.params.get_param("dry_run").resolve("maybe")
