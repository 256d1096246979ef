"""The home: its files are for their owner's eyes only; and a disk that is full.

The umask is left alone: what hosts share has to be readable there. Everything else is below the
home, which nobody else can enter.
"""

import errno
import os
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from nexmark.config import paths
from nexmark.errors import NexmarkError
from nexmark_jobs.host.whole_files import READABLE, write_whole

DIRECTORY, FILE = 0o700, 0o600
_OTHERS = 0o077


def make_home() -> Path:
    """Makes the home if it is missing, and closes it to others, unless another user owns it."""
    home = paths.home()
    if problem := home_problem():
        raise NexmarkError(problem)
    home.mkdir(mode=DIRECTORY, parents=True, exist_ok=True)
    _close(home, DIRECTORY)
    return home


def home_problem() -> str:
    """Return the reason why the home cannot be a directory of ours, in one line, or ''."""
    home = paths.home()
    try:
        there = next(each for each in (home, *home.parents) if os.path.lexists(each))
        problem = "" if there.is_dir() else f"{there} is no directory"
        if not problem and not os.access(there, os.W_OK | os.X_OK):
            problem = f"{there} cannot be written"
    except OSError as error:  # a name that is too long, a loop of links
        problem = f"{error.strerror}"
    return f"NEXMARK_HOME: {home}: {problem}; name a directory of yours" if problem else ""


def write_private(path: Path, text: str) -> None:
    """Writes a file that only its owner can read, in one step, in a directory like it."""
    path.parent.mkdir(mode=DIRECTORY, parents=True, exist_ok=True)
    _close(path.parent, DIRECTORY)
    write_whole(path, text)


def touch_private(path: Path) -> None:
    """Makes an empty file for its owner alone; closes an existing one if it is below the home."""
    try:
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, FILE))
    except FileExistsError:
        if path.resolve().is_relative_to(paths.home()):
            _close(path, FILE)


def write_text(path: Path, text: str) -> None:
    """Write a file that others may read, in one step: a reader sees the old text or the new one."""
    write_whole(path, text, READABLE)


@contextmanager
def whole_directory(directory: Path) -> Iterator[Path]:
    """Let a directory be filled under a temporary name beside it; it is there whole or not."""
    directory.parent.mkdir(parents=True, exist_ok=True)
    temporary = directory.with_name(f".{directory.name}.{os.getpid()}.tmp")
    shutil.rmtree(temporary, ignore_errors=True)
    temporary.mkdir()
    try:
        yield temporary
        temporary.replace(directory)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def _close(path: Path, mode: int) -> None:
    stat = path.stat()
    if stat.st_uid == os.geteuid() and stat.st_mode & _OTHERS:
        path.chmod(mode)


_FULL = frozenset({errno.ENOSPC, errno.EDQUOT})
#: With less free space (bytes) nothing is expected to work.
_LEAST = 20 * 10**6
_REMEDY = "free some, or put NEXMARK_HOME on another disk, and run it again"


def is_full(error: BaseException | None) -> bool:
    """Return whether an error, or its cause, is a full disk."""
    while error is not None:
        if isinstance(error, OSError) and error.errno in _FULL:
            return True
        if getattr(error, "sqlite_errorcode", None) == sqlite3.SQLITE_FULL:
            return True
        original = getattr(error, "orig", None)  # SQLAlchemy's errors have the driver's
        error = original or error.__cause__ or error.__context__
    return False


def full_disk(directory: Path) -> str:
    """Return the problem of the disk of `directory` if it is full, or ''."""
    resolved = directory.resolve()
    existing = next(each for each in (resolved, *resolved.parents) if each.exists())
    free = shutil.disk_usage(existing).free
    if free >= _LEAST:
        return ""
    return f"disk: {existing} is full ({free / 1e6:.1f} MB are free); {_REMEDY}"


def remedied(error: BaseException, reason: str) -> str:
    """Return `reason`, with the remedy if `error` is a full disk."""
    return f"{reason}; the disk is full: {_REMEDY}" if is_full(error) else reason
