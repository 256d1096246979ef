"""The functions of the tasks, thin: they call the rooms of the library."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from airflow.sdk import get_current_context
from airflow.sdk.exceptions import AirflowException

from nexmark.config import paths
from nexmark.night.plan import Night

if TYPE_CHECKING:
    from nexmark.store import Store


def current_night() -> Night:
    """The plan of the running task's DAG run; NexmarkError before its preflight has passed."""
    run = get_current_context()["dag_run"]
    return Night.read(run.dag_id, run.run_id)


def results() -> "Store":
    """The results database."""
    from nexmark.store import open_store

    return open_store(paths.database_url())


@contextmanager
def failing(error: type[Exception], as_: type[Exception] = AirflowException) -> Iterator[None]:
    """Let the task fail in one line by an error of ours; Airflow tries it again."""
    try:
        yield
    except error as found:
        raise as_(str(found)) from None
