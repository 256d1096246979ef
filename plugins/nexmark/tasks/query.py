"""Which queries run, and the tasks of one: plan and expectations (`recording` has the last)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from airflow.sdk import get_current_context
from airflow.sdk.exceptions import (
    AirflowException,
    AirflowFailException,
    DownstreamTasksSkipped,
)

from nexmark.config import KNOWN_QUERIES
from nexmark.night.night_progress import say
from nexmark.night.plan import Deployments, Night
from nexmark.night.run_directory import clear_failure, in_sequence, write_failure
from nexmark.night.runs import first_runs
from nexmark.night.shared_verification import plan_together
from nexmark.night.submission import repetition_submission, verify_sink, verify_submission
from nexmark.night.verification import Verification
from nexmark.tasks.context import current_night
from nexmark.tasks.infrastructure import heal

if TYPE_CHECKING:
    from nexmark.expectations import ValidationOutcome

#: The XCom of `plan` with the verification run; its return value are the repetitions.
VERIFY_KEY = "verify"


def select() -> None:
    """Skip the tasks of the queries that this night is not asked for, but for their `record`.

    The next query waits for it; were it skipped now, all queries would start at once. Pushes what
    SparkSubmit is given to verify the others together.
    """
    night = current_night()
    together = plan_together(night, Deployments.read(night).candidate)
    get_current_context()["ti"].xcom_push(key=VERIFY_KEY, value=together)
    names = [str(name) for name in get_current_context()["dag"].task_ids]
    skipped = [name for name in names if _is_skipped(name, night.queries)]
    if skipped:
        raise DownstreamTasksSkipped(tasks=skipped)  # type: ignore[no-untyped-call]


def plan(query: str) -> list[dict[str, Any]]:
    """Return the submissions of the timed repetitions of `query`.

    The cluster is made whole first: what died under the query before is not to hurt this one.
    """
    night = current_night()
    clear_failure(night.query_dir(query))
    try:
        heal(night, query)
    except AirflowException as error:
        write_failure(night.query_dir(query), str(error))
        raise
    deployments = Deployments.read(night)
    instance = get_current_context()["ti"]
    verify = verify_submission(night, deployments.candidate, query)
    instance.xcom_push(key=VERIFY_KEY, value=verify)
    runs = first_runs(night, query)
    submissions = [repetition_submission(night, deployments, run) for run in runs]
    return in_sequence(night.query_dir(query) / "sequence.json", submissions)


def expectations(query: str) -> None:
    """Compare the verification run's outputs with the reference; fails if one is wrong."""
    night = current_night()
    verification = verify(night, query)
    verification.write(night.query_dir(query))
    if not verification.success:
        raise AirflowFailException(f"{query} is wrong: {' | '.join(verification.failures)}")
    rows, more = (verification.statistics.get(name) for name in ("rows", "boundary_rows"))
    say(
        f"{query} verify: {rows} rows, and {more} over the boundary events, equal the reference, "
        f"{verification.evaluated} expectations"
    )


def verify(night: Night, query: str) -> Verification:
    """Return the expectations' outcome on both outputs of the verification run."""
    from nexmark.expectations import validate, validate_boundary

    docs, sink = night.directory / "data_docs", verify_sink(query)
    generated = _verification(
        lambda: validate(query, night.verified_dir(query), night.events_dir, docs, sink)
    )
    return generated.with_boundary(
        _verification(lambda: validate_boundary(query, night.boundary_dir(query), docs, sink))
    )


def _verification(check: Callable[[], ValidationOutcome]) -> Verification:
    """The outcome of a check; wrong if it cannot be made."""
    from nexmark.expectations import ExpectationsError

    try:
        outcome = check()
    except ExpectationsError as error:
        return Verification(success=False, failures=(str(error),))
    return Verification(
        success=outcome.success,
        failures=outcome.failures,
        evaluated=outcome.expectations_evaluated,
        statistics=outcome.statistics,
    )


def _is_skipped(task_id: str, queries: Sequence[str]) -> bool:
    query, _, task = task_id.rpartition(".")
    return query in KNOWN_QUERIES and query not in queries and task != "record"
