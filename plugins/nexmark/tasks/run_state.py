"""The last task of a night: it gives the DAG run its state, in whatever way the night ends.

Airflow takes the state of a DAG run from its last tasks. Where somebody marks a running DAG run as
failed (or as success), it skips every waiting task but the teardowns, runs these, and then looks
at the last tasks: all are skipped, so the run would be a success. So the last task of a night is a
teardown that counts (`on_failure_fail_dagrun`). It has no setup, so Airflow always runs it.
"""

from airflow.sdk import get_current_context
from airflow.sdk.exceptions import AirflowFailException, AirflowSkipException

#: The XCom in which a preflight says why there is no night. One that Airflow has skipped has none.
NO_NIGHT_KEY = "no_night"


def no_night(reason: str) -> AirflowSkipException:
    """Return what a preflight raises where there is no night to run: the DAG run stays green."""
    get_current_context()["ti"].xcom_push(key=NO_NIGHT_KEY, value=reason)
    return AirflowSkipException(reason)


def run_state(deciding: str) -> None:
    """Fail unless the task `deciding` has succeeded; skip where there is no night to run."""
    context = get_current_context()
    instance, run = context["ti"], context["dag_run"]
    states = instance.get_task_states(run.dag_id, task_ids=[deciding], run_ids=[run.run_id])
    state = states.get(run.run_id, {}).get(deciding)
    if state == "success":
        return
    if reason := instance.xcom_pull(task_ids="preflight", key=NO_NIGHT_KEY):
        raise AirflowSkipException(reason)
    raise AirflowFailException(problem(deciding, state))


def problem(deciding: str, state: str | None) -> str:
    """Return why a run whose task `deciding` is in a `state` other than success has failed."""
    if state == "failed":
        return f"{deciding} failed: its log has the reason"
    if state == "upstream_failed":
        return f"{deciding} did not run: the log of the first red task from the left has the reason"
    return f"{deciding} did not run: somebody ended the run before; trigger the DAG again"
