"""How a job ends: with an exit code that its starter can read, and one line where it failed."""

import contextlib
import functools
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn

from nexmark_jobs.cause import error_classes, innermost, java_errors

#: The environment variable with the file that a job writes its exit code to.
VARIABLE = "NEXMARK_EXIT_CODE_FILE"

_MAX_LENGTH = 400


def end(code: int) -> NoReturn:
    """End this process with exit code `code`; write it to the file of `VARIABLE`, if it is set."""
    path = os.environ.get(VARIABLE)
    if path:
        with contextlib.suppress(OSError):  # the process itself has the code, too
            Path(path).write_text(f"{code}\n", encoding="utf-8")
    sys.exit(code)


def exit_code(path: Path) -> int | None:
    """Return the exit code that a job wrote to `path`; None if the job was killed."""
    try:
        return int(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None


class JobError(Exception):
    """A query job cannot go on; the message is one line: what, where, remedy."""

    exit_code = 1


class UsageError(JobError):
    """Arguments or input data that no retry can fix."""

    exit_code = 2


class LateRowsError(JobError):
    """Spark dropped rows that came behind the watermark: the table of the query lacks them."""


class QueryFailedError(JobError):
    """A streaming query has failed; `causes` has the text of each cause on lines of its own."""

    def __init__(self, causes: str) -> None:
        """Say the cause in one line."""
        super().__init__(f"the query failed: {one_line(causes)}")
        self.causes = causes


def command(program: str) -> Callable[[Callable[[list[str]], None]], Callable[[list[str]], int]]:
    """Make a command of a function: it returns the exit code, and says why it failed on stderr."""
    from pyspark.errors import PySparkException

    def made(work: Callable[[list[str]], None]) -> Callable[[list[str]], int]:
        @functools.wraps(work)
        def run(arguments: list[str]) -> int:
            try:
                work(arguments)
            except JobError as error:
                print(f"{program}: error: {error}", file=sys.stderr)
                return error.exit_code
            except (PySparkException, OSError) as error:
                print(f"{program}: error: {one_line(error)}", file=sys.stderr)
                return 1
            return 0

        return run

    return made


def error_class(error: BaseException | str) -> str:
    """Spark's error class of an error; where it has none, the last Java class in its text."""
    text = str(error)
    found = [each[1:].partition("]")[0] for each in error_classes(text)]
    return [*found[:1], *list(java_errors(text))[-1:], type(error).__name__][0]


def one_line(error: BaseException | str) -> str:
    """The cause of an error, in one line: the innermost one, else the first line of its text."""
    text = str(error)
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    reason = innermost(text) or [*lines, type(error).__name__][0]
    return reason if len(reason) <= _MAX_LENGTH else reason[: _MAX_LENGTH - 3] + "..."
