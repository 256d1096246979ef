"""What a night tells the person who waits for it, besides Airflow's own logs."""

from __future__ import annotations

import logging
import os
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from airflow.sdk import Context

#: A file that `make run` shows while the night runs; not set under a scheduler.
PROGRESS_VARIABLE = "NEXMARK_PROGRESS"
#: Before a line of that file that is only of the moment: the next one takes its place.
MOMENTARY = "\x1f"

_JOBS = ("run_query.py:", "dump_events.py:")

log = logging.getLogger(__name__)


def say(text: str) -> None:
    """Log `text` and, where a person waits, show it."""
    log.info("%s", text)
    _show(text)


def say_for_now(text: str) -> None:
    """Show `text`, which is one line, where a person waits, until there is something else."""
    _show(MOMENTARY + text)


def _show(text: str) -> None:
    target = os.environ.get(PROGRESS_VARIABLE)
    if target:
        with Path(target).open("a", encoding="utf-8") as file:
            file.write(text + "\n")


def tell_failure(context: Context) -> None:
    """Callback of every task: say that it has failed for good, and why."""
    say(f"{_task(context)}: failed: {reason(context.get('exception'))}")


def tell_retry(context: Context) -> None:
    """Callback of every task: say that it has failed and is tried again."""
    say(f"{_task(context)}: failed, is tried again: {reason(context.get('exception'))}")


def reason(error: BaseException | str | None) -> str:
    """The line of an error that says most: a job's own, else the last; at most 500 characters."""
    lines = [line.strip() for line in str(error or "").splitlines() if line.strip()]
    told = [line for line in lines if line.startswith(_JOBS)]
    return (told or lines or ["no reason was given"])[-1][:500]


def _task(context: Context) -> str:
    instance = context["ti"]
    index = instance.map_index
    return str(instance.task_id) + (f"[{index}]" if index is not None and index >= 0 else "")


__all__ = [
    "MOMENTARY",
    "PROGRESS_VARIABLE",
    "reason",
    "say",
    "say_for_now",
    "tell_failure",
    "tell_retry",
]
