"""Errors that end a job with one line on stderr."""

from __future__ import annotations

import re


class JobError(Exception):
    """A query job cannot go on; the message is one line: what, where, remedy."""

    exit_code = 1


class UsageError(JobError):
    """Arguments or input data that no retry will mend."""

    exit_code = 2


_ERROR_CLASS = re.compile(r"\[(?P<name>[A-Z][A-Z0-9_.]+)\] [^\n]+")
_WRAPPERS = {"FOREACH_BATCH_USER_FUNCTION_ERROR", "STREAM_FAILED", "TASK_WRITE_FAILED"}
_MAX_LENGTH = 400


def one_line(error: BaseException | str) -> str:
    """What an error is about, in one line.

    That is the first of Spark's error classes in its text that does not just wrap another error,
    or else the first line that says anything.
    """
    text = str(error)
    found = (m[0] for m in _ERROR_CLASS.finditer(text) if m["name"] not in _WRAPPERS)
    lines = (line.strip() for line in text.splitlines())
    reason = next(found, None) or next((line for line in lines if line), type(error).__name__)
    return reason if len(reason) <= _MAX_LENGTH else reason[: _MAX_LENGTH - 3] + "..."
