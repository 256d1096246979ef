"""Errors of the results database, in one line that never shows a password."""

from __future__ import annotations

import sqlite3

from sqlalchemy import Engine

from nexmark.errors import NexmarkError
from nexmark.secrets import without_secrets
from nexmark.store.holders import holders

_WORTH_HIDING = 4
_BUSY = frozenset({sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED})
_LOCK_NOT_AVAILABLE = "55P03"  # PostgreSQL's


class StoreError(NexmarkError):
    """The results database cannot do what was asked; one line: what, where, remedy."""


class UnknownNight(StoreError):
    """No night of that name is recorded."""


class Refused(StoreError):
    """A person asked for something that cannot be done; the database is whole."""


def shown(engine: Engine) -> str:
    """Return the URL of a database as it may be shown."""
    return without_secrets(engine.url.render_as_string(hide_password=True))


def database_error(engine: Engine, error: Exception) -> StoreError:
    """Return the one-line error for a failure of the database; who has it, where it is locked."""
    if _is_locked(error):
        return StoreError(
            f"results database {shown(engine)}: database is locked by {holders(engine)};"
            " wait for that to end, or end it, and try again"
        )
    cause = without_secrets(str(getattr(error, "orig", None) or error))
    password = str(engine.url.password or "")
    if len(password) >= _WORTH_HIDING:
        cause = cause.replace(password, "***")
    return StoreError(
        f"results database {shown(engine)}: {cause};"
        " check NEXMARK_DB, that it can be reached and written, and its disk space"
    )


def no_results(engine: Engine) -> StoreError:
    """Return the one-line error for a database that is not there yet."""
    return StoreError(
        f"results database {shown(engine)}: there is none, so there are no results yet; start a"
        " night with `nexmark run`, or set NEXMARK_DB to the database that has them"
    )


def _is_locked(error: Exception) -> bool:
    if isinstance(error, BlockingIOError):  # who opens a database locks its directory meanwhile
        return True
    cause = getattr(error, "orig", None) or error
    code = getattr(cause, "sqlite_errorcode", None)
    if code is not None and code & 0xFF in _BUSY:  # the rest says which kind of busy
        return True
    return getattr(cause, "sqlstate", None) == _LOCK_NOT_AVAILABLE
