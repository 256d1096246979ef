"""Why something failed, in one line, for people."""

import re

from nexmark.errors import NexmarkError
from nexmark.secrets import without_secrets

_JOBS = ("run_query.py:", "verify_queries.py:", "dump_events.py:")
_FRAME = re.compile(r"at [\w.$/]+\(.*\)|\.\.\. \d+ more")


def reason_of(error: BaseException | str | None) -> str:
    """The line of an error that says most: a job's own, else the last; at most 500 characters.

    The frames of a Java stack trace say nothing. An error that is neither ours nor Airflow's has
    the name of its class: the text of a KeyError is only the key.
    """
    text = without_secrets(_told(error))
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    lines = [line for line in lines if not _FRAME.match(line)] or lines
    told = [line for line in lines if line.startswith(_JOBS)]
    return (told or lines or ["no reason was given"])[-1][:500]


def _told(error: BaseException | str | None) -> str:
    told, kind = str(error or ""), type(error)
    plain = isinstance(error, str | NexmarkError | OSError | None)
    if plain or (isinstance(error, Exception) and kind.__module__.startswith("airflow.")):
        return told
    return f"{kind.__name__}: {told}" if told else kind.__name__
