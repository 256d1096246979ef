"""Make the home and write its files, which only their owner can read; recognise a full disk.

The umask is not changed, because other users of a host have to read the files that hosts share.
All other files are below the home, which no other user can enter.
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
    """Make the home if it is missing, and close it to other users; return its directory.

    A home that another user owns keeps its mode.
    """
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
        existing = next(each for each in (home, *home.parents) if os.path.lexists(each))
        problem = "" if existing.is_dir() else f"{existing} is no directory"
        if not problem and not os.access(existing, os.W_OK | os.X_OK):
            problem = f"{existing} cannot be written"
    except OSError as error:  # a name that is too long, a loop of links
        problem = f"{error.strerror}"
    return f"NEXMARK_HOME: {home}: {problem}; name a directory of yours" if problem else ""


def write_private(path: Path, text: str) -> None:
    """Write a file that only its owner can read, in one step; make its directory as private."""
    path.parent.mkdir(mode=DIRECTORY, parents=True, exist_ok=True)
    _close(path.parent, DIRECTORY)
    write_whole(path, text)


def touch_private(path: Path) -> None:
    """Make an empty file that only its owner can read.

    A file that exists is kept; if it is below the home, it is closed to other users.
    """
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
    """Yield a temporary directory to be filled; rename it to `directory` at the end of the block.

    So `directory` has all of its files, or does not exist.
    """
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
    """Set the mode of a file or directory of ours, if other users can do anything with it."""
    stat = path.stat()
    if stat.st_uid == os.geteuid() and stat.st_mode & _OTHERS:
        path.chmod(mode)


_FULL = frozenset({errno.ENOSPC, errno.EDQUOT})
#: A disk with less free space than this, in bytes, counts as full.
_LEAST = 20 * 10**6
_REMEDY = "free some, or put NEXMARK_HOME on another disk, and run it again"


def is_full(error: BaseException | None) -> bool:
    """Tell whether an error, or its cause, says that the disk is full."""
    while error is not None:
        if isinstance(error, OSError) and error.errno in _FULL:
            return True
        if getattr(error, "sqlite_errorcode", None) == sqlite3.SQLITE_FULL:
            return True
        original = getattr(error, "orig", None)  # SQLAlchemy's errors have the driver's
        error = original or error.__cause__ or error.__context__
    return False


def full_disk(directory: Path) -> str:
    """Return the problem if the disk of `directory` is full, else ''."""
    resolved = directory.resolve()
    existing = next(each for each in (resolved, *resolved.parents) if each.exists())
    free = shutil.disk_usage(existing).free
    if free >= _LEAST:
        return ""
    return f"disk: {existing} is full ({free / 1e6:.1f} MB are free); {_REMEDY}"


def remedied(error: BaseException, reason: str) -> str:
    """Return `reason`, with the remedy if `error` says that the disk is full."""
    return f"{reason}; the disk is full: {_REMEDY}" if is_full(error) else reason
