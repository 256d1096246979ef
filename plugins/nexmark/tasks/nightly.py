"""The graph of an engine's DAG: wiring of the task functions, nothing else.

    preflight >> reap >> deploy >> start_cluster >> dump_events >> ready >> q0 >> q1 ... >> judge
        >> report >> verdict >> stop_cluster

    q:  plan >> verify >> expectations >> start_samplers >> repetition (mapped) >> stop_samplers
        >> record

`start_cluster` and `dump_events` are setups of the teardown `stop_cluster`: if one fails, nothing
between them runs (whatever its trigger rule), and the cluster is stopped in any case. A query that
fails does not keep the next one from running: `plan` and `record` run when all before them is
done. `record` never takes a failure for an absence: it looks for every repetition that was planned.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

from airflow.providers.standard.operators.empty import EmptyOperator
from airflow.sdk import DAG, TaskGroup, XComArg, task
from airflow.sdk.definitions.mappedoperator import OperatorPartial
from airflow.sdk.definitions._internal.mixins import DependencyMixin

from nexmark.airflow_home import POOL
from nexmark.config import KNOWN_QUERIES, Config, Engine
from nexmark.tasks import infrastructure, judging, query, sampling
from nexmark.tasks.documentation import nightly_doc
from nexmark.tasks.operators import NexmarkSubmitOperator
from nexmark.tasks.params import nightly_params
from nexmark.tasks.preflight import preflight



START_DATE = datetime(2026, 1, 1, tzinfo=UTC)
RETRY_DELAY = timedelta(seconds=15)
#: How often and how long a night waits for the cluster that another night uses.
WAIT_RETRIES, WAIT_DELAY = 72, timedelta(minutes=10)

_SUBMIT_OPTIONS: dict[str, Any] = {"pool": POOL, "retries": 1, "durable": False}


def build_nightly_dag(engine: Engine, config: Config) -> DAG:
    """The nightly DAG of `engine`."""
    with DAG(
        engine.dag_id,
        dag_display_name=f"Nexmark on {engine.name}",
        description=f"Nexmark queries on {engine.name}: right, measured, compared",
        doc_md=nightly_doc(engine),
        schedule=engine.schedule,
        start_date=START_DATE,
        catchup=False,
        max_active_runs=1,
        params=nightly_params(engine, config),
        tags={"nexmark", "nightly", engine.name},
        default_args={"retries": 0, "retry_delay": RETRY_DELAY},
        fail_fast=False,
    ) as dag:
        _wire(engine)
    return dag


def _wire(engine: Engine) -> None:
    check = _task("preflight", 10)(preflight)(engine.name)
    reap = _task("reap", 10, pool=POOL, retries=WAIT_RETRIES, retry_delay=WAIT_DELAY)(
        infrastructure.reap
    )()
    deploy = _task("deploy", 60, retries=2)(infrastructure.deploy)()
    start = _task("start_cluster", 10, pool=POOL, retries=1)(infrastructure.start_cluster)()
    dump = _submit("dump_events", 60)(submission=deploy)
    last: DependencyMixin = EmptyOperator(task_id="ready")
    check >> reap >> deploy >> start.as_setup() >> dump.as_setup() >> last
    for name in KNOWN_QUERIES:
        last = _query(name, last)
    judge = _task("judge", 15, retries=1, trigger_rule="all_done")(judging.judge)()
    report = _task("report", 15, retries=1)(judging.report)()
    verdict = _task("verdict", 5)(judging.verdict)()
    stop = _task("stop_cluster", 10, pool=POOL, retries=1)(infrastructure.stop_cluster)()
    last >> judge >> report >> verdict >> stop
    stop.as_teardown(setups=[start, dump])


def _query(name: str, before: DependencyMixin) -> DependencyMixin:
    """The tasks of one query, after `before`; returns the last of them."""
    with TaskGroup(name, tooltip=f"Nexmark {name}"):
        plan = _task("plan", 5, trigger_rule="all_done", retries=1)(query.plan)(name)
        verify = _submit("verify", 60)(submission=XComArg(plan.operator, key=query.VERIFY_KEY))
        expectations = _task("expectations", 60, pool=POOL)(query.expectations)(name)
        start = _task("start_samplers", 5, pool=POOL, retries=1)(sampling.start_samplers)(name)
        repetitions = _submit_each("repetition", 120).expand_kwargs(plan)
        stop = _task("stop_samplers", 5, pool=POOL, retries=1)(sampling.stop_samplers)(name)
        record = _task("record", 15, trigger_rule="all_done", retries=2)(query.record)(name)
        before >> plan >> verify >> expectations >> start >> repetitions >> stop >> record
        stop.as_teardown(setups=start)
        repetitions >> record
    return record


def _task(task_id: str, minutes: int, **options: Any) -> Any:
    return task(task_id=task_id, execution_timeout=timedelta(minutes=minutes), **options)


def _submit(task_id: str, minutes: int) -> Callable[..., NexmarkSubmitOperator]:
    return partial(
        NexmarkSubmitOperator,
        task_id=task_id,
        execution_timeout=timedelta(minutes=minutes),
        **_SUBMIT_OPTIONS,
    )


def _submit_each(task_id: str, minutes: int) -> OperatorPartial:
    """As `_submit`, for a task that is mapped; one repetition runs at a time."""
    return NexmarkSubmitOperator.partial(
        task_id=task_id,
        execution_timeout=timedelta(minutes=minutes),
        max_active_tis_per_dagrun=1,
        **_SUBMIT_OPTIONS,
    )


__all__ = ["POOL", "build_nightly_dag"]
