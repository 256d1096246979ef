"""The sign-off: the graph of a night, with the question to a person at its end."""

from datetime import timedelta
from typing import Any

from airflow.providers.standard.operators.hitl import ApprovalOperator
from airflow.sdk import DAG, Context
from airflow.sdk.definitions.param import ParamsDict

from nexmark.config import SIGNOFF_DAG_ID, Config
from nexmark.config.airflow_names import POOL
from nexmark.dag.dag_params import SIGNOFF_DAYS, field, signoff_params
from nexmark.dag.graph import dag_of, task_of, wire_night
from nexmark.dag.notifying import careful, notifiers, notify
from nexmark.tasks import signoff_steps as signoff
from nexmark.tasks.signoff_steps import DECISION_KEY, Approval


class SignOffOperator(ApprovalOperator):
    """Ask a person to approve or reject, and wait for the days that `timeout_days` gives.

    The answer goes into an XCom in any case; then Reject, or no answer, fails the task.
    """

    def __init__(self, **options: Any) -> None:
        """Add a field for the reason to the form; `options` are the base class's."""
        reason = field(
            "Reason",
            "Why; to approve a red night it has to be given.",
            default="",
            type=["null", "string"],
            maxLength=2000,
        )
        params = {"reason": reason}
        super().__init__(fail_on_reject=True, params=params, **options)

    def execute(self, context: Context) -> Any:
        """Ask, and wait without a worker slot."""
        self.response_timeout = timedelta(days=float(context["params"]["timeout_days"]))
        return super().execute(context)

    def execute_complete(self, context: Context, event: dict[str, Any]) -> Any:
        """Keep the decision in an XCom, then succeed or fail by it."""
        decision = Approval.of(event, self.APPROVE).model_dump()
        context["ti"].xcom_push(key=DECISION_KEY, value=decision)
        return super().execute_complete(context, event)


#: How many sign-offs may be open at once: one that waits for a person does not block the others.
_OPEN_RUNS = 10


def build_signoff_dag(config: Config) -> DAG:
    """Build the DAG by which a person signs a build off."""
    callbacks = notifiers()
    with dag_of(
        SIGNOFF_DAG_ID,
        "Nexmark: sign a release off",
        "Measure a build against the last release, and let a person decide on it",
        "signoff",
        max_active_runs=_OPEN_RUNS,
    ) as dag:
        check = task_of("preflight", 10, pool=POOL)(signoff.signoff_preflight)
        night = wire_night(check, config.gate.for_comparison())
        with night.judgement:
            question = task_of("question", 10, retries=1)(signoff.question)()
            approval = SignOffOperator(
                task_id="approval",
                subject="Sign off {{ params.build }} as {{ params.engine }}?",
                body="{{ ti.xcom_pull(task_ids='question') }}",
                notifiers=[careful(notifier) for notifier in callbacks],
                execution_timeout=timedelta(minutes=5),
                response_timeout=timedelta(days=SIGNOFF_DAYS),
            )
            evidence = task_of("evidence", 15, retries=1, trigger_rule="all_done")(
                signoff.evidence
            )()
            decision = task_of("decision", 5)(signoff.decision)()
            night.report >> night.stop
            night.report >> question >> approval >> evidence >> decision
        night.give_state(decision)
    notify(dag, callbacks)
    dag.params = ParamsDict(signoff_params(config))
    return dag
