"""Prints a night's progress for the person who waits, beside Airflow's own logs."""

from __future__ import annotations

import logging
import os
import re
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from nexmark.home import remedied
from nexmark.secrets import without_secrets

if TYPE_CHECKING:
    from airflow.sdk import Context

#: A file that `nexmark run` shows while the night runs; not set under a scheduler.
PROGRESS_VARIABLE = "NEXMARK_PROGRESS"
#: Before a line of that file that is only of the moment: the next one takes its place.
MOMENTARY = "\x1f"

_JOBS = ("run_query.py:", "verify_queries.py:", "dump_events.py:")

_FRAME = re.compile(r"at [\w.$/]+\(.*\)|\.\.\. \d+ more")

log = logging.getLogger(__name__)


def say(text: str) -> None:
    """Log `text` and, where a person waits, show it."""
    text = without_secrets(text)
    log.info("%s", text)
    _show(text)


def say_for_now(text: str) -> None:
    """Show `text`, which is one line, where a person waits, until there is something else."""
    _show(MOMENTARY + text)


def _show(text: str) -> None:
    target = os.environ.get(PROGRESS_VARIABLE)
    if target:
        with suppress(OSError), Path(target).open("a", encoding="utf-8") as file:
            file.write(text + "\n")  # with a full disk the progress is in the log only


def tell_failure(context: Context) -> None:
    """Callback of every task: say that it has failed for good, and why."""
    say(f"{_task(context)}: failed: {_why(context)}")


def tell_retry(context: Context) -> None:
    """Callback of every task: say that it has failed and is tried again."""
    say(f"{_task(context)}: failed, is tried again: {_why(context)}")


def reason(error: BaseException | str | None) -> str:
    """The line of an error that says most: a job's own, else the last; at most 500 characters.

    The frames of a Java stack trace say nothing.
    """
    text = without_secrets(str(error or ""))
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    lines = [line for line in lines if not _FRAME.match(line)] or lines
    told = [line for line in lines if line.startswith(_JOBS)]
    return (told or lines or ["no reason was given"])[-1][:500]


def _why(context: Context) -> str:
    error = context.get("exception")
    return remedied(error, reason(error)) if isinstance(error, BaseException) else reason(error)


def _task(context: Context) -> str:
    instance = context["ti"]
    index = instance.map_index
    return str(instance.task_id) + (f"[{index}]" if index is not None and index >= 0 else "")
