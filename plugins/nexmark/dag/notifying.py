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

#: Where a red night ends; a DAG has some of them.
ENDS = (
    *("preflight", "reap", "deploy", "start_cluster", "dump_events", "judge", "report", "verdict"),
    *("question", "evidence", "decision", "stage", "prune"),
)


def notifiers() -> "list[BaseNotifier]":
    """The configured notifiers; nothing is imported for those that are not configured.

    Raises ConfigError naming file and line for one that cannot be imported or made.
    """
    return [_notifier(each) for each in load_notifications()]


def notify(dag: "DAG", callbacks: "Sequence[BaseNotifier]") -> None:
    """Let the tasks of `dag` at which a red night ends call `callbacks` when they fail."""
    for task_id in ENDS if callbacks else ():
        if dag.has_task(task_id):
            task = dag.get_task(task_id)
            before = cast(Sequence[Any], task.on_failure_callback)
            task.on_failure_callback = [*before, *callbacks]


def careful(notifier: "BaseNotifier") -> "Callable[[Context], None]":
    """`notifier` for a task that has not failed, and that is not to fail for want of a mail."""

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
        made = getattr(importlib.import_module(module), name)
    except Exception as error:  # whatever a module of somebody else raises
        remedy = "correct the path, or install the provider it is in"
        raise wanted.error(f"{what} cannot be imported: {_line(error)}; {remedy}") from None
    if not (isinstance(made, type) and issubclass(made, BaseNotifier)):
        remedy = "name a subclass of airflow.sdk.BaseNotifier"
        raise wanted.error(f"{what} is not an Airflow notifier; {remedy}")
    try:
        return made(**wanted.kwargs)
    except Exception as error:
        raise wanted.error(f"{what} refuses its kwargs: {_line(error)}; correct them") from None


def _line(error: BaseException) -> str:
    return " ".join(str(error).split())[:300]
