"""Makes errors of the results database: each is one line, and never shows a password."""

import os
import sqlite3
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from textwrap import shorten
from typing import NamedTuple

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
    """Name the processes or sessions that have a database locked; "another process" if unknown."""
    names = _processes(engine) if engine.dialect.name == "sqlite" else _sessions(engine)
    return " and ".join(names) or "another process"


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
    """Return the ids of processes that have a lock on one of the files.

    These are the processes with a lock to write; if there are none, other processes with a lock to
    read.
    """
    facts = [file.stat() for file in files if file.exists()]
    names = {
        f"{os.major(fact.st_dev):02x}:{os.minor(fact.st_dev):02x}:{fact.st_ino}" for fact in facts
    }
    inodes = {str(fact.st_ino) for fact in facts}
    locks = _locks()
    # Some file systems (overlay, btrfs) show another device there than the files have.
    ours = [lock for lock in locks if lock.file in names] or [
        lock for lock in locks if lock.file.rpartition(":")[2] in inodes
    ]
    writing = {lock.pid for lock in ours if lock.writes}
    return sorted(writing or {lock.pid for lock in ours} - {os.getpid()})


class _Lock(NamedTuple):
    """A lock of a process on a file; ``file`` is the device and the inode, as fe:01:131082."""

    pid: int
    file: str
    writes: bool


def _locks() -> list[_Lock]:
    """Return the locks on all files of this machine, without the processes that wait for one."""
    # 1: POSIX  ADVISORY  WRITE 4711 fe:01:131082 120 120; a process that waits has -> before POSIX
    lines = map(str.split, _lines(PROC / "locks"))
    held = [words for words in lines if len(words) > 5 and words[1] != "->" and int(words[4]) > 0]
    return [_Lock(int(words[4]), words[5], words[3] == "WRITE") for words in held]


def _opening(files: Iterable[Path]) -> list[int]:
    """Return the ids of other processes that have one of the files open.

    Processes of other users are left out: their open files cannot be read.
    """
    wanted, pids = {str(file.resolve()) for file in files}, set()
    for process in PROC.glob("[0-9]*"):
        with suppress(OSError):  # it has ended, or is another user's
            if wanted.intersection(str(link.readlink()) for link in (process / "fd").iterdir()):
                pids.add(int(process.name))
    return sorted(pids - {os.getpid()})


def _command(pid: int) -> str:
    """Return the command of a process in parentheses; "" if it cannot be read."""
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
    """An error of the results database, in one line: problem, place, remedy."""


class UnknownNight(StoreError):
    """No night with this name is recorded."""


class Refused(StoreError):
    """A person asked for something that cannot be done; the database itself works."""


def shown(engine: Engine) -> str:
    """Return the URL of a database without its password."""
    return without_secrets(engine.url.render_as_string(hide_password=True))


def database_error(engine: Engine, error: Exception) -> StoreError:
    """Return the error for a failure of the database, in one line.

    If the database is locked, the error names the processes that have it locked.
    """
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
    """Return the error for a database that does not exist yet, or is empty, in one line."""
    return StoreError(
        f"results database {shown(engine)}: {problem}, so there are no results yet; start a"
        " night with `nexmark run`, or set NEXMARK_DB to the database that has them"
    )


def _is_damaged(error: Exception) -> bool:
    code = getattr(getattr(error, "orig", None) or error, "sqlite_errorcode", 0) & 0xFF
    return code in _DAMAGED


def _is_locked(error: Exception) -> bool:
    if isinstance(error, BlockingIOError):  # from the lock on the directory, see ``open_engine``
        return True
    cause = getattr(error, "orig", None) or error
    code = getattr(cause, "sqlite_errorcode", 0) & 0xFF  # the rest says which kind of busy
    return code in _BUSY or getattr(cause, "sqlstate", None) == _LOCK_NOT_AVAILABLE
