"""How a job ends: with an exit code that its starter can read, and one line where it failed."""

import contextlib
import functools
import os
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn

#: The environment variable with the file that a job writes its exit code to.
VARIABLE = "NEXMARK_EXIT_CODE_FILE"

_ERROR_CLASS = re.compile(r"\[(?P<name>[A-Z][A-Z0-9_.]+)\] [^\n]+")
_WRAPPERS = {"FOREACH_BATCH_USER_FUNCTION_ERROR", "STREAM_FAILED", "TASK_WRITE_FAILED"}
_JAVA_ERROR = re.compile(r"\b[a-z][\w.]*\.(?P<name>[A-Z]\w+(?:\$\w+)?):")
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
    found = (m["name"] for m in _ERROR_CLASS.finditer(text) if m["name"] not in _WRAPPERS)
    java = [m["name"] for m in _JAVA_ERROR.finditer(text)]
    return next(found, None) or (java[-1] if java else type(error).__name__)


def one_line(error: BaseException | str) -> str:
    """The cause of an error, in one line.

    This is the first of Spark's error classes in its text that does not just wrap another error,
    else the last Java error, which is the innermost cause, else the first line that is not empty.
    """
    text = str(error)
    found = [m[0] for m in _ERROR_CLASS.finditer(text) if m["name"] not in _WRAPPERS]
    java = [line[m.start() :] for line in text.splitlines() if (m := _JAVA_ERROR.search(line))]
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    reason = [*found[:1], *java[-1:], *lines, type(error).__name__][0]
    return reason if len(reason) <= _MAX_LENGTH else reason[: _MAX_LENGTH - 3] + "..."
