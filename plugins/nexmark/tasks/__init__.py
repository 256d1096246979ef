"""The functions of the tasks: they translate between Airflow and the rooms of the library."""

from collections.abc import Iterator
from contextlib import contextmanager

from airflow.sdk import get_current_context
from airflow.sdk.exceptions import AirflowException, AirflowFailException

from nexmark.errors import FinalError
from nexmark.night.night_plan import Night
from nexmark.tasks.executors import night_of

#: The user that `DAG.test()` names, as `airflow dags test` runs a DAG: one process, nobody's name.
DAG_TEST_USER = "dag_test"


def current_night() -> Night:
    """Return the plan of the running task's DAG run; NexmarkError before its preflight."""
    run = get_current_context()["dag_run"]
    return night_of(run.dag_id, run.run_id)


@contextmanager
def failing(error: type[Exception], as_: type[Exception] = AirflowException) -> Iterator[None]:
    """Let the task fail in one line by an error of ours; Airflow tries it again.

    It does not after a FinalError.
    """
    try:
        yield
    except error as problem:
        if isinstance(problem, FinalError):
            as_ = AirflowFailException
        raise as_(str(problem)) from None
