"""How a command ends its processes: on Ctrl-C, on SIGTERM, and when it is killed itself."""

import ctypes
import shutil
import signal
import tempfile
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

_PR_SET_PDEATHSIG = 1  # linux/prctl.h


@contextmanager
def _handled(handler: Any, *signals: signal.Signals) -> Iterator[None]:
    before = {number: signal.signal(number, handler) for number in signals}
    try:
        yield
    finally:
        for number, earlier in before.items():
            signal.signal(number, earlier)


def terminated_as_interrupt() -> AbstractContextManager[None]:
    """Makes SIGTERM end the command as Ctrl-C does."""
    return _handled(signal.default_int_handler, signal.SIGTERM)


def undisturbed() -> AbstractContextManager[None]:
    """Ignores a second Ctrl-C, so that the first one can end everything."""
    return _handled(signal.SIG_IGN, signal.SIGINT, signal.SIGTERM)


@contextmanager
def temporary_directory(prefix: str, below: Path | None = None) -> Iterator[Path]:
    """Yield a temporary directory that is removed even if a second Ctrl-C comes."""
    if below is not None:
        below.mkdir(parents=True, exist_ok=True)
    directory = Path(tempfile.mkdtemp(prefix=prefix, dir=below))
    try:
        yield directory
    finally:
        with undisturbed():
            shutil.rmtree(directory, ignore_errors=True)


def signalled_with_parent(number: signal.Signals) -> Callable[[], object]:
    """For `preexec_fn`: the kernel sends signal `number` when the parent process has ended."""
    return partial(ctypes.CDLL(None).prctl, _PR_SET_PDEATHSIG, number)
