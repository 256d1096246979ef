"""What the results database cannot do, in one line that never shows a password."""

from __future__ import annotations

import re

from sqlalchemy import Engine

from nexmark.errors import NexmarkError

_SECRETS = (
    re.compile(r"(://[^:/@\s]*:)\S*(?=@)"),
    re.compile(r"([?&](?:ssl)?password=)[^&;\s'\"]*"),
)
_WORTH_HIDING = 4


class StoreError(NexmarkError):
    """The results database cannot do what was asked; one line: what, where, remedy."""


def without_secrets(text: str) -> str:
    """Return a text with the passwords of the URLs in it blanked out."""
    for pattern in _SECRETS:
        text = pattern.sub(r"\1***", text)
    return text


def shown(engine: Engine) -> str:
    """Return the URL of a database as it may be shown."""
    return without_secrets(engine.url.render_as_string(hide_password=True))


def database_error(engine: Engine, error: Exception) -> StoreError:
    """Return the one-line error for a failure of the database."""
    cause = without_secrets(str(getattr(error, "orig", None) or error))
    password = str(engine.url.password or "")
    if len(password) >= _WORTH_HIDING:
        cause = cause.replace(password, "***")
    return StoreError(
        f"results database {shown(engine)}: {cause};"
        " check NEXMARK_DB, that it can be reached and written, and its disk space"
    )


__all__ = ["StoreError", "database_error", "shown", "without_secrets"]
