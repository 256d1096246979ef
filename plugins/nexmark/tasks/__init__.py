"""The functions of the tasks: they translate between Airflow and the rooms of the library."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from airflow.sdk import get_current_context
from airflow.sdk.exceptions import AirflowException, AirflowFailException

from nexmark.errors import FinalError, suggest
from nexmark.night.night_plan import Night
from nexmark.tasks.executors import night_of

if TYPE_CHECKING:
    from airflow.sdk.definitions.context import Context

#: The user that `DAG.test()` names, as `airflow dags test` runs a DAG: one process, nobody's name.
DAG_TEST_USER = "dag_test"


def current_night() -> Night:
    """Return the plan of the running task's DAG run; NexmarkError before its preflight."""
    run = get_current_context()["dag_run"]
    return night_of(run.dag_id, run.run_id)


def given_params(context: "Context") -> dict[str, Any]:
    """Return the params of a DAG run; AirflowFailException if it was given one that is none."""
    known = list(context["dag"].params)
    if unknown := [name for name in context["dag_run"].conf or {} if name not in known]:
        problem = f"param {unknown[0]!r}: {context['dag_run'].dag_id} has none of that name"
        raise AirflowFailException(f"{problem}; {suggest(unknown[0], known)}")
    return dict(context["params"])


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
