"""Calls the Airflow notifiers of `notifications.yaml` when a night is red.

They are callbacks of the task `verdict`, and of the tasks whose failure keeps a night from getting
there: in each red night one of these tasks fails. In a sign-off that never came to its question,
`evidence` fails as well. Airflow renders their templates; the summary of the night is the XCom of
`report`.
"""

import importlib
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, cast

from nexmark.config.experiment_models import Notification, load_notifications
from nexmark.night.night_progress import say

if TYPE_CHECKING:
    from airflow.sdk import DAG, BaseNotifier, Context

#: The ids of the tasks at which a red night ends; each DAG has some of them.
LAST_TASKS = (
    "preflight",
    "reap",
    "deploy",
    "start_cluster",
    "dump_events",
    "judge",
    "report",
    "verdict",
    "question",
    "evidence",
    "decision",
    "stage",
    "prune",
)


def notifiers() -> "list[BaseNotifier]":
    """Return the configured notifiers; import nothing for those that are not configured.

    Raises ConfigError, with file and line, for one that cannot be imported or refuses its kwargs.
    """
    return [_notifier(each) for each in load_notifications()]


def notify(dag: "DAG", callbacks: "Sequence[BaseNotifier]") -> None:
    """Let the tasks of `dag` at which a red night ends call `callbacks` when they fail."""
    for task_id in LAST_TASKS if callbacks else ():
        if dag.has_task(task_id):
            task = dag.get_task(task_id)
            before = cast(Sequence[Any], task.on_failure_callback)
            task.on_failure_callback = [*before, *callbacks]


def careful(notifier: "BaseNotifier") -> "Callable[[Context], None]":
    """Return a notifier for a task that has not failed; if it raises, the task goes on."""

    def tell(context: "Context") -> None:
        try:
            notifier({"exception": None, **context})
        except Exception as error:
            say(f"notifier {type(notifier).__name__} failed: {_line(error)}")

    return tell


def _notifier(wanted: Notification) -> "BaseNotifier":
    from airflow.sdk import BaseNotifier

    what, (module, _, name) = f"notifier {wanted.notifier}", wanted.notifier.rpartition(".")
    try:
        notifier = getattr(importlib.import_module(module), name)
    except Exception as error:  # whatever a module of somebody else raises
        remedy = "correct the path, or install the provider it is in"
        raise wanted.error(f"{what} cannot be imported: {_line(error)}; {remedy}") from None
    if not (isinstance(notifier, type) and issubclass(notifier, BaseNotifier)):
        remedy = "name a subclass of airflow.sdk.BaseNotifier"
        raise wanted.error(f"{what} is not an Airflow notifier; {remedy}")
    try:
        return notifier(**wanted.kwargs)
    except Exception as error:
        raise wanted.error(f"{what} refuses its kwargs: {_line(error)}; correct them") from None


def _line(error: BaseException) -> str:
    return " ".join(str(error).split())[:300]
