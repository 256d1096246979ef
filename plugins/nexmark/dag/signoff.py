"""The graph of the sign-off: the graph of a night, with a person's decision at its end."""

from __future__ import annotations

from datetime import timedelta

from airflow.sdk import DAG
from airflow.sdk.definitions.param import ParamsDict

from nexmark.airflow_site.airflow_home import POOL
from nexmark.config import SIGNOFF_DAG_ID, Config
from nexmark.dag.approval import SignOffOperator
from nexmark.dag.dag_params import SIGNOFF_DAYS, signoff_params
from nexmark.dag.documentation import signoff_doc
from nexmark.dag.graph import dag_of, task_of, wire_night
from nexmark.dag.notifying import careful, notifiers, notify
from nexmark.night.runs import run_order
from nexmark.tasks import signoff_steps as signoff

#: A sign-off that waits for a person does not keep another one from being run.
_AT_ONCE = 10


def build_signoff_dag(config: Config) -> DAG:
    """The DAG by which a person signs a build off."""
    told = notifiers()
    with dag_of(
        SIGNOFF_DAG_ID,
        "Nexmark: sign a release off",
        "Measure a build against the last release, and let a person decide on it",
        signoff_doc(),
        "signoff",
        max_active_runs=_AT_ONCE,
    ) as dag:
        report, stop = wire_night(
            task_of("preflight", 10, pool=POOL)(signoff.signoff_preflight)(), run_order(config.gate)
        )
        question = task_of("question", 10, retries=1)(signoff.question)()
        approval = SignOffOperator(
            task_id="approval",
            subject="Sign off {{ params.build }} as {{ params.engine }}?",
            body="{{ ti.xcom_pull(task_ids='question') }}",
            notifiers=[careful(notifier) for notifier in told],
            execution_timeout=timedelta(minutes=5),
            response_timeout=timedelta(days=SIGNOFF_DAYS),
        )
        evidence = task_of("evidence", 15, retries=1, trigger_rule="all_done")(signoff.evidence)()
        decision = task_of("decision", 5)(signoff.decision)()
        report >> stop
        report >> question >> approval >> evidence >> decision
    notify(dag, told)
    dag.params = ParamsDict(signoff_params(config, signoff.MORE_PAIRS))
    return dag
