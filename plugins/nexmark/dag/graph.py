"""The graphs of the DAGs: wiring of the task functions, nothing else.

    preflight >> reap >> deploy >> start_cluster >> dump_events >> select >> verify >> q14 >> q3
        >> ... >> round_2 >> ... >> flames >> compatibility >> judge >> report >> verdict
        >> stop_cluster

    q:  plan >> verify >> expectations >> start_samplers >> repetition (mapped) >> stop_samplers
        >> record
    round_2, ...:  plan >> start_samplers >> repetition (mapped) >> stop_samplers >> record
    flames:  the same, with a flight recorder, >> draw
    nexmark_rollout:  the night of a stage, with >> stage >> next_stage for the verdict
    nexmark_experiment:  steps >> measure (mapped: a fresh application each) >> table

`start_cluster` and `dump_events` are setups of the teardown `stop_cluster`: if one fails, nothing
between them runs (whatever its trigger rule), and the cluster is stopped in any case. `select`
skips the queries that are not asked for, all at once but for `record`, which keeps the order of the
others. Where `preflight` finds no build of the date, it is skipped, and with the setups all that is
between them and their teardown: a green night in which nothing ran. A query that fails does not
keep the next one from running: `plan` and `record` run when all before them is done. `record` never
takes a failure for an absence: it looks for every repetition that was planned.

Every task that touches the cluster, or looks at its hosts, is in the pool: where nights of several
DAGs wait for one cluster, none disturbs a repetition of another.
"""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from airflow.sdk import DAG, TaskGroup, XComArg, task
from airflow.sdk.definitions.mappedoperator import OperatorPartial
from airflow.sdk.definitions.param import ParamsDict

from nexmark.config import Config, Engine, Experiment, Gate
from nexmark.config.airflow_names import POOL
from nexmark.config.models import ACCEPT_DAG_ID, BUILD_DAG_ID, EXPERIMENT_DAG_ID, ROLLOUT_DAG_ID
from nexmark.dag import dag_params
from nexmark.dag.notifying import notifiers, notify
from nexmark.dag.submit_operator import NexmarkSubmitOperator
from nexmark.model import FLAMES, round_group
from nexmark.night.night_progress import tell_failure, tell_retry
from nexmark.night.night_runs import run_order
from nexmark.tasks import experiment_steps, judging, query, rollout_steps, upgrading
from nexmark.tasks import infrastructure as clusters
from nexmark.tasks.preflight import preflight
from nexmark.tasks.query import record
from nexmark.tasks.rounds import draw_flames, plan_recordings, plan_round, record_later

#: How often and how long a night waits for the cluster that another night uses.
WAIT_RETRIES, WAIT_DELAY = 72, timedelta(minutes=10)

DEFAULTS: dict[str, Any] = {
    "retries": 0,
    "retry_delay": timedelta(seconds=10),
    "on_failure_callback": tell_failure,
    "on_retry_callback": tell_retry,
}
#: Of a mapped task: one instance runs at a time, and is named after its application.
_IN_TURN: dict[str, Any] = {
    "max_active_tis_per_dagrun": 1,
    "map_index_template": "{{ application }}",
}
_SUBMIT_OPTIONS: dict[str, Any] = {"pool": POOL, "retries": 1, "durable": False}


def build_nightly_dag(engine: Engine, config: Config) -> DAG:
    """The nightly DAG of `engine`."""
    build = f"the Spark build `{engine.build}`"
    if engine.snapshots is not None:
        build = "the Spark build of its date (a date without one is skipped, and green)"
    with dag_of(
        engine.dag_id,
        f"Nexmark on {engine.name}",
        f"Nexmark queries on {engine.name}: right, measured, compared",
        "nightly",
        engine.name,
        values={"name": engine.name, "build": build},
        schedule=engine.schedule,
    ) as dag:
        _wire(engine.name, config.gate)
    notify(dag, notifiers())
    # Not before: every task would copy them, which is two thirds of the time to parse.
    dag.params = ParamsDict(dag_params.nightly_params(engine, config))
    return dag


def build_on_demand_dag(config: Config) -> DAG:
    """The DAG that tests any build, on the engine that its params name."""
    with dag_of(
        BUILD_DAG_ID,
        "Nexmark: a Spark build on demand",
        "Nexmark queries on any Spark build: right, measured, compared with another",
        "build",
    ) as dag:
        _wire("", config.gate.for_comparison())
    notify(dag, notifiers())
    dag.params = ParamsDict(dag_params.on_demand_params(config))
    return dag


def build_accept_dag() -> DAG:
    """The DAG that makes a run the baseline of its engine and workload."""
    with dag_of(
        ACCEPT_DAG_ID,
        "Nexmark: accept a run as the baseline",
        "Make a night the baseline that later nights are compared with",
        "acceptance",
        params=dag_params.accept_params(),
    ) as dag:
        task_of("accept", 5)(judging.accept)()
    return dag


def dag_of(
    dag_id: str,
    name: str,
    description: str,
    document: str,
    *tags: str,
    values: Mapping[str, str] | None = None,
    **options: Any,
) -> DAG:
    """A DAG of this package: one run at a time, on demand unless `options` say otherwise.

    Its `doc_md` is a document of `texts`, with `values` for its {names}. It names documents by
    their path in the repository (and in the wheel, `nexmark/site/docs`): Airflow may run without a
    network.
    """
    texts = Path(__file__).with_name("texts")
    when_red = (texts / "when_red.md").read_text(encoding="utf-8").strip()
    text = (texts / f"{document}.md").read_text(encoding="utf-8")
    for key, value in {**(values or {}), "when_red": when_red}.items():
        text = text.replace(f"{{{key}}}", value)
    return DAG(
        dag_id,
        dag_display_name=name,
        description=description,
        doc_md=text,
        start_date=datetime(2026, 1, 1, tzinfo=UTC),
        catchup=False,
        tags={"nexmark", document, *tags},
        default_args=DEFAULTS,
        fail_fast=False,
        **{"schedule": None, "max_active_runs": 1, **options},
    )


def _wire(engine: str, gate: Gate) -> None:
    report, stop = wire_night(task_of("preflight", 10, pool=POOL)(preflight)(engine), gate)
    report >> task_of("verdict", 5)(judging.verdict)() >> stop


def wire_night(check: Any, gate: Gate) -> tuple[Any, Any]:
    """All that a night does after its preflight `check`; returns `report` and `stop_cluster`.

    The queries run in the order of the `gate`, then its later rounds. `report` has to come before
    `stop_cluster`, which is a teardown.
    """
    waits = {"retries": WAIT_RETRIES, "retry_delay": WAIT_DELAY}
    reap = task_of("reap", 10, pool=POOL, **waits)(clusters.reap)()
    deploy = task_of("deploy", 60, pool=POOL, retries=2)(clusters.deploy)()
    start = task_of("start_cluster", 120, pool=POOL, retries=1)(clusters.start_cluster)()
    dump: Any = _submit("dump_events", 60, start)
    select = task_of("select", 5, retries=1)(query.select)()
    last: Any = _submit("verify", 120, XComArg(select.operator, key=query.VERIFY_KEY))
    check >> reap >> deploy >> start.as_setup() >> dump.as_setup() >> select >> last
    for name in run_order(gate):
        last = _query(name, last)
    last = _rounds(last, len(gate.rounds))
    done = {"trigger_rule": "all_done"}
    survive = task_of("compatibility", 120, pool=POOL, **done)(upgrading.compatibility)()
    judge = task_of("judge", 15, retries=1, **done)(judging.judge)()
    report = task_of("report", 15, retries=1)(judging.report)()
    stop = task_of("stop_cluster", 10, pool=POOL, retries=1)(clusters.stop_cluster)()
    last >> survive >> judge >> report
    stop.as_teardown(setups=[start, dump])
    return report, stop


def _query(name: str, before: Any) -> Any:
    """The tasks of one query, after `before`; returns the last of them."""
    with TaskGroup(name, tooltip=f"Nexmark {name}"):
        plan = task_of("plan", 5, pool=POOL, trigger_rule="all_done", retries=1)(query.plan)(name)
        verify = _submit("verify", 60, XComArg(plan.operator, key=query.VERIFY_KEY))
        expectations = task_of("expectations", 60, pool=POOL)(query.expectations)(name)
        start, stop = _samplers(name)
        repetitions = _submit_each("repetition", 120).expand_kwargs(plan)
        last = task_of("record", 15, trigger_rule="all_done", retries=2)(record)(name)
        before >> plan >> verify >> expectations >> start >> repetitions >> stop >> last
        [before, repetitions] >> last
    return last


def _rounds(before: Any, rounds: int) -> Any:
    """The tasks of the later rounds, and of the flame graphs, after `before`; returns the last."""
    last = before
    for number in range(2, rounds + 1):
        with TaskGroup(
            round_group(number), tooltip="What is undecided or suspected is measured on"
        ):
            plan = task_of("plan", 15, pool=POOL, retries=1, trigger_rule="all_done")(plan_round)
            last = _measure_planned(round_group(number), last, plan(number))
    with TaskGroup(FLAMES, tooltip="What has changed runs with a flight recorder"):
        plan = task_of("plan", 15, pool=POOL, retries=1, trigger_rule="all_done")(plan_recordings)
        recorded = _measure_planned(FLAMES, last, plan())
        drawn = task_of("draw", 30, trigger_rule="all_done")(draw_flames)()
        recorded >> drawn
    return drawn


def _measure_planned(group: str, before: Any, plan: Any) -> Any:
    """The tasks of a group that runs what its `plan` returns; returns the last of them."""
    start, stop = _samplers(group)
    repetitions = _submit_each("repetition", 120).expand_kwargs(plan)
    last = task_of("record", 15, retries=2, trigger_rule="all_done")(record_later)(group)
    before >> plan >> start >> repetitions >> stop >> last
    repetitions >> last
    return last


def _samplers(group: str) -> tuple[Any, Any]:
    start = task_of("start_samplers", 5, pool=POOL, retries=1)(query.start_samplers)(group)
    stop = task_of("stop_samplers", 5, pool=POOL, retries=1)(query.stop_samplers)(group)
    return start, stop.as_teardown(setups=start)


def task_of(task_id: str, minutes: int, **options: Any) -> Any:
    """The decorator of a task that may take `minutes` minutes."""
    return task(task_id=task_id, execution_timeout=timedelta(minutes=minutes), **options)


def _submit(task_id: str, minutes: int, submission: Any) -> NexmarkSubmitOperator:
    options = {"execution_timeout": timedelta(minutes=minutes), **_SUBMIT_OPTIONS}
    return NexmarkSubmitOperator(task_id=task_id, submission=submission, **options)


def _submit_each(task_id: str, minutes: int) -> OperatorPartial:
    options = {"execution_timeout": timedelta(minutes=minutes), **_IN_TURN, **_SUBMIT_OPTIONS}
    return NexmarkSubmitOperator.partial(task_id=task_id, **options)


def build_rollout_dag(config: Config) -> DAG:
    """The DAG of a rollout: a run is the night of a stage, and a green one triggers the next."""
    # Its modules would add a quarter to the time that every other DAG file takes to parse.
    from airflow.providers.standard.operators.trigger_dagrun import TriggerDagRunOperator

    with dag_of(
        ROLLOUT_DAG_ID,
        "Nexmark: roll a conf or a build out",
        "Give a conf or a build to queries stage by stage, up to the first red one",
        "rollout",
    ) as dag:
        check = task_of("preflight", 10, pool=POOL)(rollout_steps.rollout_preflight)()
        report, stop = wire_night(check, config.gate.for_comparison())
        stage = task_of("stage", 15)(rollout_steps.judge_stage)()
        following = TriggerDagRunOperator.partial(
            task_id="next_stage",
            trigger_dag_id=ROLLOUT_DAG_ID,
            execution_timeout=timedelta(minutes=5),
        )
        report >> stop
        report >> stage >> following.expand(conf=stage)
    notify(dag, notifiers())
    dag.params = ParamsDict(dag_params.rollout_params(config))
    return dag


def build_experiment_dag(config: Config, experiments: dict[str, Experiment]) -> DAG:
    """The DAG that measures one of `experiments`."""
    with dag_of(
        EXPERIMENT_DAG_ID,
        "Nexmark: an experiment",
        "Measure the arms of an experiment in turns, compare their results and their CPU time",
        "experiment",
        params=dag_params.experiment_params(config, experiments),
    ) as dag:
        steps = task_of("steps", 10, pool=POOL, retries=1)(experiment_steps.steps)()
        in_turn = task_of("measure", 60, pool=POOL, retries=1, **_IN_TURN)
        measured = in_turn(experiment_steps.measure).expand_kwargs(steps)
        table = task_of("table", 60, pool=POOL, trigger_rule="all_done")(experiment_steps.table)()
        steps >> measured >> table
    return dag
