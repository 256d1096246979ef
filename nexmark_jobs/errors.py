"""Errors that end a job with one line on stderr."""

from __future__ import annotations


class JobError(Exception):
    """A query job cannot go on; the message is one line: what, where, remedy."""

    exit_code = 1


class UsageError(JobError):
    """Arguments or input data that no retry will mend."""

    exit_code = 2


def one_line(error: BaseException, limit: int = 400) -> str:
    """The first line of an error's own message that says something, cut at `limit` characters."""
    lines = (line.strip() for line in str(error).splitlines())
    text = next((line for line in lines if line), type(error).__name__)
    return text if len(text) <= limit else text[: limit - 3] + "..."
