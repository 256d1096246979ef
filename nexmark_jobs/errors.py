"""The errors of a job, and an error of Spark in one line."""

from nexmark_jobs.cause import error_classes, innermost, java_errors

_MAX_LENGTH = 400


class JobError(Exception):
    """A query job cannot go on; the message is one line: what, where, remedy."""

    exit_code = 1


class UsageError(JobError):
    """Arguments or input data are wrong, so that a retry fails, too."""

    exit_code = 2


class LateRowsError(JobError):
    """Spark dropped rows that came behind the watermark: the table of the query lacks them."""


class QueryFailedError(JobError):
    """A streaming query has failed; `causes` has the text of each cause on lines of its own."""

    def __init__(self, causes: str) -> None:
        """Make the message, one line, from `causes`."""
        super().__init__(f"the query failed: {one_line(causes)}")
        self.causes = causes


def error_class(error: BaseException | str) -> str:
    """Return Spark's error class of an error, e.g. `CANNOT_LOAD_STATE_STORE.UNCATEGORIZED`.

    An error without one has the last Java class in its text, else its Python class.
    """
    text = str(error)
    classes = [line[1:].partition("]")[0] for line in error_classes(text)]
    return [*classes[:1], *list(java_errors(text))[-1:], type(error).__name__][0]


def one_line(error: BaseException | str) -> str:
    """Return the innermost cause of an error in one line, else the first line of its text."""
    text = str(error)
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    reason = innermost(text) or [*lines, type(error).__name__][0]
    return reason if len(reason) <= _MAX_LENGTH else reason[: _MAX_LENGTH - 3] + "..."
