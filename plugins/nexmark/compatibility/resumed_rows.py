"""Are the rows of a resumed run right? A reference says so, or a run that was not interrupted."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nexmark.compatibility.results import Restart, RestartOutcome
from nexmark.config import Job

if TYPE_CHECKING:
    from nexmark.expectations.suites import ValidationOutcome


@dataclass(frozen=True)
class RightRows:
    """What the rows of a query are compared with.

    Attributes:
        query: the name of the query.
        events: the directory of what it has read: dumped events, or tables as they are laid out.
        job: the job of a person's own; None for a query.
        whole: the final table of a run that was not interrupted, for a job without a reference.
    """

    query: str
    events: Path
    job: Job | None = None
    whole: Path | None = None

    def restart(self, record: Mapping[str, Any], table: Path) -> Restart:
        """Return how a run ended; if it was done, compare its final table.

        If Spark raised an error, it has a class. If the application died or was ended, there is
        none.

        Args:
            record: the outcome of the run, from the log of the application.
            table: the directory of its final table.
        """
        if record["state"] == "wrong":
            return Restart(RestartOutcome.WRONG, reason=record["reason"])
        if record["state"] != "done":
            error_class = record.get("error_class", "")
            reason = record.get("reason", "").replace(f"{self.events.parent}/", "")
            outcome = RestartOutcome.REFUSED if error_class else RestartOutcome.NOT_ENDED
            return Restart(outcome, error_class, reason)

        from nexmark.expectations.contract import ExpectationsError

        try:
            problem = self._problem(table)
        except ExpectationsError as error:
            problem = str(error)
        return Restart(RestartOutcome.WRONG if problem else RestartOutcome.RIGHT, reason=problem)

    def _problem(self, table: Path) -> str:
        """Return what is wrong with the rows of a table; '' if they are right."""
        from nexmark.expectations.own_results import rows_apart, validate_own
        from nexmark.expectations.suites import validate

        if self.job is None:
            return _unexpected(validate(self.query, table, self.events))
        if self.whole is not None:
            names = ("an uninterrupted run", "the resumed run")
            return rows_apart((self.whole, table), names, self.job.key)
        return _unexpected(validate_own(self.job, table, self.events))


def _unexpected(validation: "ValidationOutcome") -> str:
    """Return what is wrong with the rows; '' if they are right."""
    if validation.success:
        return ""
    wrong, rows = (validation.statistics[name] for name in ("unexpected_rows", "rows"))
    return f"{wrong} of {rows} rows are not in the reference" if wrong else validation.failures[0]
