"""Tell people in one line why something failed."""

import re

from nexmark.errors import NexmarkError
from nexmark.secrets import without_secrets
from nexmark_jobs.cause import failure_cause

_TIMEOUT = "the task took longer than its execution_timeout, and was ended"
_EXIT_CODE = re.compile(r"Error code is: (-?\d+)\.")  # the sentence of Airflow's Spark provider


def reason_of(error: BaseException | str | None) -> str:
    """Return the line of an error that says most about its cause; at most 500 characters.

    A text of several lines is read as a log. The name of the class comes before the text of an
    error that is neither ours nor Airflow's: the text of a KeyError is only the key.
    """
    text = without_secrets(_text_of(error)).strip()
    if "\n" in text:
        match = _EXIT_CODE.search(text)
        text = failure_cause(text, int(match[1]) if match else None)
    return (text or "no reason was given")[:500]


def _text_of(error: BaseException | str | None) -> str:
    """Return the text of an error, with the name of its class if it needs that."""
    text, kind = str(error or ""), type(error)
    if kind.__name__ == "AirflowTaskTimeout":  # its own text is `Timeout, PID: 4711`
        return _TIMEOUT
    plain = isinstance(error, str | NexmarkError | OSError | None)
    if plain or (isinstance(error, Exception) and kind.__module__.startswith("airflow.")):
        return text
    return f"{kind.__name__}: {text}" if text else kind.__name__
