"""Why something failed, in one line, for people."""

import re

from nexmark.errors import NexmarkError
from nexmark.secrets import without_secrets
from nexmark_jobs.cause import failure_cause

_EXIT_CODE = re.compile(r"Error code is: (-?\d+)\.")  # the sentence of Airflow's Spark provider


def reason_of(error: BaseException | str | None) -> str:
    """Return the line of an error that says most; at most 500 characters.

    A text of several lines is a log. An error that is neither ours nor Airflow's has the name of
    its class: the text of a KeyError is only the key.
    """
    text = without_secrets(_told(error)).strip()
    if "\n" in text:
        match = _EXIT_CODE.search(text)
        text = failure_cause(text, int(match[1]) if match else None)
    return (text or "no reason was given")[:500]


def _told(error: BaseException | str | None) -> str:
    text, kind = str(error or ""), type(error)
    plain = isinstance(error, str | NexmarkError | OSError | None)
    if plain or (isinstance(error, Exception) and kind.__module__.startswith("airflow.")):
        return text
    return f"{kind.__name__}: {text}" if text else kind.__name__
