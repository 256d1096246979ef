"""Print the lines of a command or a night: lines that stay, and a last line that is replaced."""

import shutil
import sqlite3
import sys
import time
import traceback
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from io import TextIOWrapper
from textwrap import wrap
from typing import TextIO

from nexmark.errors import NexmarkError
from nexmark.home import home_problem, is_full, remedied
from nexmark.interrupts import terminated_as_interrupt
from nexmark.secrets import without_secrets

#: The mark at the start of a momentary line, which the next line replaces.
MOMENTARY = "\x1f"
#: If the output is no terminal (a file, a CI log): least seconds between two momentary lines.
EVERY_S = 30.0

#: The exit codes of commands beside 0, green: docs/versions.md.
FOUND_RED, COULD_NOT_RUN, INTERRUPTED = 1, 2, 130

_CLEAR = "\r\x1b[K"


def show_line(text: str) -> None:
    """Print a line of a command without secrets, and at once, even if the output is a file.

    Tasks of a DAG print their lines by `nexmark.night.night_progress.say`.
    """
    print(without_secrets(text), flush=True)


def run_command(run: Callable[[], int]) -> int:
    """Run a command; SIGTERM ends it as Ctrl-C does.

    Returns:
        The exit code of the command; 2 after an error, which is printed to stderr in one line; 130
        if the command was interrupted.
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
    except KeyboardInterrupt:
        return INTERRUPTED
    except Exception as error:  # one of this package says nothing about a build: it is not red
        if isinstance(error, OSError | sqlite3.Error) and is_full(error):
            print(remedied(error, str(error)), file=sys.stderr)
        else:
            traceback.print_exc()
    return COULD_NOT_RUN


def columns(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a table as text: a line of `heads`, then `rows`, in columns as wide as their cells."""
    widths = [max(map(len, column)) for column in zip(heads, *rows, strict=True)]
    return "\n".join(
        "  ".join(f"{cell:<{width}}" for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in (heads, *rows)
    )


def sentences(lines: Iterable[str], indent: str = "") -> str:
    """Return sentences as text: on a terminal in lines as wide as it is, each a little indented.

    A list in a sentence (` | `) gets a line for each entry there. A command stays whole, so that a
    person can copy it; so does everything where the output is a file.
    """
    if not sys.stdout.isatty():
        return "\n".join(indent + line for line in lines)
    width, deeper = shutil.get_terminal_size().columns, indent + 4 * " "
    made: list[str] = []
    for line in lines:
        for number, entry in enumerate(line.split(" | ")):
            text, command, rest = entry.partition(": nexmark ")
            start = deeper if number else indent
            made += wrap(
                text + ":" * bool(command),
                width,
                initial_indent=start,
                subsequent_indent=deeper,
                break_long_words=False,
                break_on_hyphens=False,
            )
            made += [f"{deeper}nexmark {rest}"] if command else []
    return "\n".join(made)


@dataclass
class Terminal:
    """The output that a person watches.

    A momentary line is overwritten on a terminal, and written now and then to a file.
    """

    stream: TextIO
    clock: Callable[[], float] = time.monotonic
    _dirty: bool = False
    _next: float = 0.0

    def show(self, line: str) -> None:
        """Show a line that `nexmark.night.night_progress` has written."""
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
        """Show all of these lines."""
        for line in lines:
            self.show(line)

    def clear(self) -> None:
        """Remove the momentary line."""
        if self._dirty:
            self._write(_CLEAR)
        self._dirty = False

    def _write(self, text: str) -> None:
        self.stream.write(text)
        self.stream.flush()
