"""Shows what a night tells: lines that stay, and one at the bottom that is only of the moment."""

import shutil
import sqlite3
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from io import TextIOWrapper
from typing import TextIO

from nexmark.errors import NexmarkError
from nexmark.home import home_problem, is_full, remedied
from nexmark.interrupts import terminated_as_interrupt
from nexmark.secrets import without_secrets

#: Before a line that is only of the moment: the next one takes its place.
MOMENTARY = "\x1f"
#: Where the output is no terminal (a file, a CI log), a line of the moment at most so often.
EVERY_S = 30.0

#: The exit code of a command that was interrupted.
INTERRUPTED = 130

_CLEAR = "\r\x1b[K"


def show_line(text: str) -> None:
    """Print a line of a command at once, also where the output is a file; without secrets.

    What a task of a DAG tells goes through `nexmark.night.night_progress.say`.
    """
    print(without_secrets(text), flush=True)


def run_command(run: Callable[[], int]) -> int:
    """Run a command, with SIGTERM as Ctrl-C.

    Returns:
        Its exit code; 1 after one line on stderr for what is wrong; 130 when interrupted.
    """
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):  # a letter that the terminal lacks becomes `?`
            stream.reconfigure(errors="replace")
    try:
        if problem := home_problem():
            raise NexmarkError(problem)
        with terminated_as_interrupt():
            return run()
    except NexmarkError as error:
        print(error, file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return INTERRUPTED
    except (OSError, sqlite3.Error) as error:
        if not is_full(error):
            raise
        print(remedied(error, str(error)), file=sys.stderr)
        return 1


def columns(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return rows in columns as wide as they have to be; the last column has no end."""
    widths = [max(map(len, column)) for column in zip(heads, *rows, strict=True)]
    return "\n".join(
        "  ".join(f"{cell:<{width}}" for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in (heads, *rows)
    )


@dataclass
class Terminal:
    """Where a person watches; the last line of a terminal is overwritten, a file only grows."""

    stream: TextIO
    clock: Callable[[], float] = time.monotonic
    _dirty: bool = False
    _next: float = 0.0

    def show(self, line: str) -> None:
        """Show a line as `nexmark.night.night_progress` wrote it."""
        text = line.rstrip("\n")
        if not text.startswith(MOMENTARY):
            self.clear()
            self._write(text + "\n")
        elif self.stream.isatty():
            width = shutil.get_terminal_size().columns
            self._write(_CLEAR + text.removeprefix(MOMENTARY)[: width - 1])
            self._dirty = True
        elif self.clock() >= self._next:
            self._write(text.removeprefix(MOMENTARY) + "\n")
            self._next = self.clock() + EVERY_S

    def show_all(self, lines: Iterable[str]) -> None:
        """Show all lines that there are so far."""
        for line in lines:
            self.show(line)

    def clear(self) -> None:
        """Take the line of the moment away."""
        if self._dirty:
            self._write(_CLEAR)
        self._dirty = False

    def _write(self, text: str) -> None:
        self.stream.write(text)
        self.stream.flush()
