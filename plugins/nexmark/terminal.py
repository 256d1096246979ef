"""Shows what a night tells: lines that stay, and one at the bottom that is only of the moment."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable
from typing import TextIO

from nexmark.tasks.progress import MOMENTARY

#: Where the output is no terminal (a file, a CI log), a line of the moment at most so often.
EVERY_S = 30.0

_CLEAR = "\r\x1b[K"


class Terminal:
    """Where a person watches; the last line of a terminal is overwritten, a file only grows."""

    def __init__(self, stream: TextIO, clock: Callable[[], float] = time.monotonic) -> None:
        """`clock` tells seconds."""
        self._stream = stream
        self._clock = clock
        self._dirty = False
        self._next = 0.0

    def show(self, line: str) -> None:
        """Show a line as `nexmark.tasks.progress` wrote it."""
        text = line.rstrip("\n")
        if not text.startswith(MOMENTARY):
            self.clear()
            self._write(text + "\n")
        elif self._stream.isatty():
            width = shutil.get_terminal_size().columns
            self._write(_CLEAR + text.removeprefix(MOMENTARY)[: width - 1])
            self._dirty = True
        elif self._clock() >= self._next:
            self._write(text.removeprefix(MOMENTARY) + "\n")
            self._next = self._clock() + EVERY_S

    def clear(self) -> None:
        """Take the line of the moment away."""
        if self._dirty:
            self._write(_CLEAR)
        self._dirty = False

    def _write(self, text: str) -> None:
        self._stream.write(text)
        self._stream.flush()


__all__ = ["EVERY_S", "Terminal"]
