"""Errors of the results database, in one line that never shows a password."""

import os
import sqlite3
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from textwrap import shorten

from sqlalchemy import Engine
from sqlalchemy.exc import SQLAlchemyError

from nexmark.errors import NexmarkError
from nexmark.secrets import without_secrets

PROC = Path("/proc")
WIDTH = 80
BESIDE = ("", "-wal", "-shm", "-journal")
"""The suffixes of SQLite's files behind the name of the database."""

_SESSIONS = """
SELECT DISTINCT a.pid, a.usename, a.application_name, coalesce(host(a.client_addr), 'this machine')
FROM pg_locks l JOIN pg_stat_activity a USING (pid)
WHERE l.granted AND l.pid <> pg_backend_pid() AND a.datname = current_database()
AND (l.locktype = 'advisory' OR l.mode IN ('ExclusiveLock', 'AccessExclusiveLock'))
AND l.locktype NOT IN ('virtualxid', 'transactionid') ORDER BY a.pid
"""


def holders(engine: Engine) -> str:
    """Return who keeps a database from others, as far as it can be found out."""
    found = _processes(engine) if engine.dialect.name == "sqlite" else _sessions(engine)
    return " and ".join(found) or "another process"


def _sessions(engine: Engine) -> list[str]:
    try:
        with engine.connect() as connection:
            rows = connection.exec_driver_sql(_SESSIONS).all()
    except SQLAlchemyError:
        return []
    return [f"session {pid} of {user} ({name}, from {host})" for pid, user, name, host in rows]


def _processes(engine: Engine) -> list[str]:
    if not engine.url.database:
        return []
    database = Path(engine.url.database).absolute()
    files = [database.with_name(database.name + end) for end in BESIDE]
    pids = _locking([*files, database.parent]) or _opening(files)
    return [f"process {pid}{_command(pid)}" for pid in pids]


def _locking(files: Iterable[Path]) -> list[int]:
    """Return who has a lock on one of the files: to write, or, if nobody has, others that read."""
    facts = [file.stat() for file in files if file.exists()]
    names = {f"{os.major(x.st_dev):02x}:{os.minor(x.st_dev):02x}:{x.st_ino}" for x in facts}
    inodes = {str(x.st_ino) for x in facts}
    # 1: POSIX  ADVISORY  WRITE 4711 fe:01:131082 120 120, and who waits with -> for the kind
    lines = [x for x in map(str.split, _lines(PROC / "locks")) if len(x) > 5 and x[1] != "->"]
    locks = [(int(x[4]), x[5], x[3] == "WRITE") for x in lines if int(x[4]) > 0]
    # Some file systems (overlay, btrfs) show another device there than the files have.
    found = [x for x in locks if x[1] in names] or [
        x for x in locks if x[1].rpartition(":")[2] in inodes
    ]
    writing = {pid for pid, _, writes in found if writes}
    return sorted(writing or {pid for pid, _, _ in found} - {os.getpid()})


def _opening(files: Iterable[Path]) -> list[int]:
    """Return which other processes have one of the files open, of those that may be looked at."""
    wanted, found = {str(file.resolve()) for file in files}, set()
    for process in PROC.glob("[0-9]*"):
        with suppress(OSError):  # it has ended, or is another user's
            if wanted.intersection(str(x.readlink()) for x in (process / "fd").iterdir()):
                found.add(int(process.name))
    return sorted(found - {os.getpid()})


def _command(pid: int) -> str:
    """Return the command of a process in brackets, "" where it cannot be read."""
    if pid == os.getpid():
        return " (this one)"
    words = [word for line in _lines(PROC / str(pid) / "cmdline") for word in line.split("\0")]
    if not any(words):
        return ""
    text = " ".join([Path(words[0]).name, *words[1:]])
    return f" ({shorten(without_secrets(text), WIDTH, placeholder=' ...')})"


def _lines(path: Path) -> list[str]:
    with suppress(OSError):
        return path.read_text(errors="replace").splitlines()
    return []


_WORTH_HIDING = 4
_BUSY = frozenset({sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED})
_DAMAGED = frozenset({sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_CORRUPT})
_LOCK_NOT_AVAILABLE = "55P03"  # PostgreSQL's


class StoreError(NexmarkError):
    """The results database refuses a request, in one line: problem, place, remedy."""


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
    if _is_damaged(error):
        return StoreError(
            f"results database {shown(engine)}: it is damaged"
            f" ({getattr(error, 'orig', None) or error}); put a copy of it back, or move it away"
            " and begin with an empty one; the run directories keep all files of the nights"
        )
    cause = without_secrets(str(getattr(error, "orig", None) or error))
    password = str(engine.url.password or "")
    if len(password) >= _WORTH_HIDING:
        cause = cause.replace(password, "***")
    return StoreError(
        f"results database {shown(engine)}: {cause};"
        " check NEXMARK_DB, that it can be reached and written, and its disk space"
    )


def no_results(engine: Engine, problem: str = "there is none") -> StoreError:
    """Return the one-line error for a database that is not there yet, or is empty."""
    return StoreError(
        f"results database {shown(engine)}: {problem}, so there are no results yet; start a"
        " night with `nexmark run`, or set NEXMARK_DB to the database that has them"
    )


def _is_damaged(error: Exception) -> bool:
    code = getattr(getattr(error, "orig", None) or error, "sqlite_errorcode", 0) & 0xFF
    return code in _DAMAGED


def _is_locked(error: Exception) -> bool:
    if isinstance(error, BlockingIOError):  # who opens a database locks its directory meanwhile
        return True
    cause = getattr(error, "orig", None) or error
    code = getattr(cause, "sqlite_errorcode", 0) & 0xFF  # the rest says which kind of busy
    return code in _BUSY or getattr(cause, "sqlstate", None) == _LOCK_NOT_AVAILABLE
