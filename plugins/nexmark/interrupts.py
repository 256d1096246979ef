"""Let a command end its processes: on Ctrl-C, on SIGTERM, and when it is killed itself."""

import ctypes
import shutil
import signal
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

_PR_SET_PDEATHSIG = 1  # linux/prctl.h


@contextmanager
def _handled(handler: Any, *signals: signal.Signals) -> Iterator[None]:
    """Handle signals by `handler` while the block runs, and as before it afterwards."""
    earlier_handlers = {number: signal.signal(number, handler) for number in signals}
    try:
        yield
    finally:
        for number, earlier in earlier_handlers.items():
            signal.signal(number, earlier)


def terminated_as_interrupt() -> AbstractContextManager[None]:
    """Return a context in which SIGTERM ends the command as Ctrl-C does."""
    return _handled(signal.default_int_handler, signal.SIGTERM)


def undisturbed() -> AbstractContextManager[None]:
    """Return a context that ignores Ctrl-C and SIGTERM, so that a block can end its processes."""
    return _handled(signal.SIG_IGN, signal.SIGINT, signal.SIGTERM)


@contextmanager
def interrupts_held_back() -> Iterator[Callable[[], None]]:
    """Hold Ctrl-C and SIGTERM back, so that a block knows what it has started before they come.

    Yield a function that lets them through, the one that has come included. The end of the block
    does so, too. In a thread nothing is held back, since signals come to the main thread only.
    """
    came: list[int] = []
    earlier_handlers: dict[signal.Signals, Any] = {}

    def let_through() -> None:
        while earlier_handlers:
            number, earlier = earlier_handlers.popitem()
            signal.signal(number, earlier)
        while came:
            signal.raise_signal(came.pop())

    if threading.current_thread() is threading.main_thread():
        for number in (signal.SIGINT, signal.SIGTERM):
            earlier_handlers[number] = signal.signal(number, lambda each, _: came.append(each))
    try:
        yield let_through
    finally:
        let_through()


@contextmanager
def temporary_directory(prefix: str, below: Path | None = None) -> Iterator[Path]:
    """Yield a temporary directory in `below`; remove it, even if a second Ctrl-C comes."""
    if below is not None:
        below.mkdir(parents=True, exist_ok=True)
    directory = Path(tempfile.mkdtemp(prefix=prefix, dir=below))
    try:
        yield directory
    finally:
        with undisturbed():
            shutil.rmtree(directory, ignore_errors=True)


def signalled_with_parent(number: signal.Signals) -> Callable[[], object]:
    """Return a function for `preexec_fn` that couples the process to its parent.

    The kernel sends signal `number` to the process when its parent process has ended.
    """
    return partial(ctypes.CDLL(None).prctl, _PR_SET_PDEATHSIG, number)
