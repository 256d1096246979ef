"""How a command ends its processes: on Ctrl-C, on SIGTERM, and when it is killed itself."""

from __future__ import annotations

import ctypes
import shutil
import signal
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NoReturn

_PR_SET_PDEATHSIG = 1  # linux/prctl.h
_SIGNALS = (signal.SIGINT, signal.SIGTERM)


@contextmanager
def terminated_as_interrupt() -> Iterator[None]:
    """Makes SIGTERM end the command as Ctrl-C does."""

    def interrupt(number: int, frame: object) -> NoReturn:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


@contextmanager
def undisturbed() -> Iterator[None]:
    """Ignores a second Ctrl-C, so that the first one can end everything."""
    before = {number: signal.signal(number, signal.SIG_IGN) for number in _SIGNALS}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def temporary_directory(prefix: str, below: Path | None = None) -> Iterator[Path]:
    """A temporary directory that is removed even if a second Ctrl-C comes."""
    if below is not None:
        below.mkdir(parents=True, exist_ok=True)
    directory = Path(tempfile.mkdtemp(prefix=prefix, dir=below))
    try:
        yield directory
    finally:
        with undisturbed():
            shutil.rmtree(directory, ignore_errors=True)


def signalled_with_parent(number: signal.Signals) -> Callable[[], None]:
    """For `preexec_fn`: the kernel sends signal `number` when the parent process has ended."""

    def ask() -> None:
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, number)

    return ask
