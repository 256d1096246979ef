"""The graphs of the DAGs: wiring of the task functions, nothing else.

    preflight >> reap >> deploy >> start_cluster >> dump_events >> select >> q0 >> q1 ... >> judge
        >> report >> verdict >> stop_cluster

    q:  plan >> verify >> expectations >> start_samplers >> repetition (mapped) >> stop_samplers
        >> record

`start_cluster` and `dump_events` are setups of the teardown `stop_cluster`: if one fails, nothing
between them runs (whatever its trigger rule), and the cluster is stopped in any case. `select`
skips the queries that are not asked for, all at once but for `record`, which keeps the order of the
others. A query that fails does not keep the next one from running: `plan` and `record` run when
all before them is done. `record` never takes a failure for an absence: it looks for every
repetition that was planned.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

from airflow.sdk import DAG, TaskGroup, XComArg, task
from airflow.sdk.definitions.mappedoperator import OperatorPartial
from airflow.sdk.definitions.param import ParamsDict

from nexmark.airflow_home import POOL
from nexmark.config import KNOWN_QUERIES, Config, Engine
from nexmark.tasks import infrastructure, judging, query, sampling
from nexmark.tasks.documentation import accept_doc, nightly_doc
from nexmark.tasks.operators import NexmarkSubmitOperator
from nexmark.tasks.params import accept_params, nightly_params
from nexmark.tasks.preflight import preflight
from nexmark.tasks.progress import tell_failure, tell_retry
from nexmark.tasks.recording import record

START_DATE = datetime(2026, 1, 1, tzinfo=UTC)
RETRY_DELAY = timedelta(seconds=10)
#: How often and how long a night waits for the cluster that another night uses.
WAIT_RETRIES, WAIT_DELAY = 72, timedelta(minutes=10)

_DEFAULTS: dict[str, Any] = {
    "retries": 0,
    "retry_delay": RETRY_DELAY,
    "on_failure_callback": tell_failure,
    "on_retry_callback": tell_retry,
}
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
        tags={"nexmark", "nightly", engine.name},
        default_args=_DEFAULTS,
        fail_fast=False,
    ) as dag:
        _wire(engine)
    # Not before: every task would copy them, which is two thirds of the time to parse.
    dag.params = ParamsDict(nightly_params(engine, config))
    return dag


def build_accept_dag() -> DAG:
    """The DAG that makes a run the baseline of its engine and workload."""
    with DAG(
        "nexmark_accept",
        dag_display_name="Nexmark: accept a run as the baseline",
        description="Make a night the baseline that later nights are compared with",
        doc_md=accept_doc(),
        schedule=None,
        start_date=START_DATE,
        catchup=False,
        max_active_runs=1,
        params=accept_params(),
        tags={"nexmark", "acceptance"},
        default_args=_DEFAULTS,
    ) as dag:
        _task("accept", 5)(judging.accept)()
    return dag


def _wire(engine: Engine) -> None:
    check = _task("preflight", 10)(preflight)(engine.name)
    reap = _task("reap", 10, pool=POOL, retries=WAIT_RETRIES, retry_delay=WAIT_DELAY)(
        infrastructure.reap
    )()
    deploy = _task("deploy", 60, retries=2)(infrastructure.deploy)()
    start = _task("start_cluster", 10, pool=POOL, retries=1)(infrastructure.start_cluster)()
    dump: Any = _submit("dump_events", 60)(submission=start)
    last = _task("select", 5, retries=1)(query.select)()
    check >> reap >> deploy >> start.as_setup() >> dump.as_setup() >> last
    for name in KNOWN_QUERIES:
        last = _query(name, last)
    judge = _task("judge", 15, retries=1, trigger_rule="all_done")(judging.judge)()
    report = _task("report", 15, retries=1)(judging.report)()
    verdict = _task("verdict", 5)(judging.verdict)()
    stop = _task("stop_cluster", 10, pool=POOL, retries=1)(infrastructure.stop_cluster)()
    last >> judge >> report >> verdict >> stop
    stop.as_teardown(setups=[start, dump])


def _query(name: str, before: Any) -> Any:
    """The tasks of one query, after `before`; returns the last of them."""
    with TaskGroup(name, tooltip=f"Nexmark {name}"):
        plan = _task("plan", 5, trigger_rule="all_done", retries=1)(query.plan)(name)
        verify = _submit("verify", 60)(submission=XComArg(plan.operator, key=query.VERIFY_KEY))
        expectations = _task("expectations", 60, pool=POOL)(query.expectations)(name)
        start = _task("start_samplers", 5, pool=POOL, retries=1)(sampling.start_samplers)(name)
        repetitions = _submit_each("repetition", 120).expand_kwargs(plan)
        stop = _task("stop_samplers", 5, pool=POOL, retries=1)(sampling.stop_samplers)(name)
        last = _task("record", 15, trigger_rule="all_done", retries=2)(record)(name)
        before >> plan >> verify >> expectations >> start >> repetitions >> stop >> last
        stop.as_teardown(setups=start)
        [before, repetitions] >> last
    return last


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


__all__ = ["build_accept_dag", "build_nightly_dag"]
