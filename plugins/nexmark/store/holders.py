"""Who keeps a database locked: processes of this machine (SQLite), sessions of a server."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from textwrap import shorten

from sqlalchemy import Engine
from sqlalchemy.exc import SQLAlchemyError

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
    locks = [lock for line in _lines(PROC / "locks") if (lock := _lock(line))]
    # Some file systems (overlay, btrfs) show another device there than the files have.
    found = [x for x in locks if x.file in names] or [x for x in locks if x.inode in inodes]
    writing = {x.pid for x in found if x.writes}
    return sorted(writing or {x.pid for x in found} - {os.getpid()})


@dataclass(frozen=True)
class _Lock:
    """A lock that somebody has on a ``file`` (device:inode)."""

    pid: int
    file: str
    writes: bool

    @property
    def inode(self) -> str:
        return self.file.rpartition(":")[2]


def _lock(line: str) -> _Lock | None:
    """Read a line as ``1: POSIX  ADVISORY  WRITE 4711 fe:01:131082 120 120``; None who waits."""
    words = line.split()
    if len(words) < 6 or words[1] == "->" or int(words[4]) <= 0:
        return None
    return _Lock(int(words[4]), words[5], words[3] == "WRITE")


def _opening(files: Iterable[Path]) -> list[int]:
    """Return which other processes have one of the files open, of those that may be looked at."""
    wanted = {str(file.resolve()) for file in files}
    return sorted(
        int(process.name)
        for process in PROC.iterdir()
        if process.name.isdigit()
        and int(process.name) != os.getpid()
        and wanted.intersection(_open_files(process))
    )


def _open_files(process: Path) -> Iterator[str]:
    try:
        for file in (process / "fd").iterdir():
            yield str(file.readlink())
    except OSError:  # it has ended, or is another user's
        return


def _command(pid: int) -> str:
    """Return the command of a process in brackets, "" where it cannot be read."""
    from nexmark.secrets import without_secrets

    if pid == os.getpid():
        return " (this one)"
    words = [word for line in _lines(PROC / str(pid) / "cmdline") for word in line.split("\0")]
    if not any(words):
        return ""
    text = " ".join([Path(words[0]).name, *words[1:]])
    return f" ({shorten(without_secrets(text), WIDTH, placeholder=' ...')})"


def _lines(path: Path) -> list[str]:
    try:
        return path.read_text(errors="replace").splitlines()
    except OSError:
        return []
