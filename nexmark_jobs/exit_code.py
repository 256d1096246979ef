"""Exit codes of the jobs. Each job also writes its exit code to a file, which its starter reads.

Airflow's SparkSubmitHook says that spark-submit has failed, but does not return its exit code.
"""

import contextlib
import functools
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn

from nexmark_jobs.errors import JobError, one_line

#: The environment variable that names the file of the exit code.
FILE_VARIABLE = "NEXMARK_EXIT_CODE_FILE"


def exit_with(code: int) -> NoReturn:
    """End this process with exit code `code`; write it to the file of `FILE_VARIABLE`, if set."""
    path = os.environ.get(FILE_VARIABLE)
    if path:
        with contextlib.suppress(OSError):  # the process itself has the code, too
            Path(path).write_text(f"{code}\n", encoding="utf-8")
    sys.exit(code)


def read_exit_code(path: Path) -> int | None:
    """Return the exit code that a job wrote to `path`; None if the job was killed."""
    try:
        return int(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None


def command(program: str) -> Callable[[Callable[[list[str]], None]], Callable[[list[str]], int]]:
    """Make a command of a function: the command returns an exit code and never raises a JobError.

    Why the function failed goes to stderr, in one line that begins with the name `program`.
    """
    from pyspark.errors import PySparkException

    def decorate(work: Callable[[list[str]], None]) -> Callable[[list[str]], int]:
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

    return decorate
