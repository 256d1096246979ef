"""Which queries run, and the tasks of one: plan and expectations (`recording` has the last)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from airflow.sdk import get_current_context
from airflow.sdk.exceptions import (
    AirflowException,
    AirflowFailException,
    DownstreamTasksSkipped,
)

from nexmark.config import KNOWN_QUERIES
from nexmark.tasks.infrastructure import heal
from nexmark.tasks.night import Deployments, Night
from nexmark.tasks.operators import in_sequence, write_failure
from nexmark.tasks.outcome import Verification
from nexmark.tasks.progress import say
from nexmark.tasks.runs import first_runs
from nexmark.tasks.submission import repetition_submission, verify_sink, verify_submission

#: The XCom of `plan` with the verification run; its return value are the repetitions.
VERIFY_KEY = "verify"


def select() -> None:
    """Skip the tasks of the queries that this night is not asked for, but for their `record`.

    The next query waits for it; were it skipped now, all queries would start at once.
    """
    night = Night.current()
    names = [str(name) for name in get_current_context()["dag"].task_ids]
    skipped = [name for name in names if _is_skipped(name, night.queries)]
    if skipped:
        raise DownstreamTasksSkipped(tasks=skipped)  # type: ignore[no-untyped-call]


def plan(query: str) -> list[dict[str, Any]]:
    """What SparkSubmit is given for each timed repetition of `query`.

    The cluster is made whole first: what died under the query before is not to hurt this one.
    """
    night = Night.current()
    try:
        heal(night, query)
    except AirflowException as error:
        write_failure(night.query_dir(query) / "verify", str(error))
        raise
    deployments = Deployments.read(night)
    instance = get_current_context()["ti"]
    verify = verify_submission(night, deployments.candidate, query)
    instance.xcom_push(key=VERIFY_KEY, value=verify)
    runs = first_runs(night, query)
    submissions = [repetition_submission(night, deployments, run) for run in runs]
    return in_sequence(night.query_dir(query) / "sequence.json", submissions)


def expectations(query: str) -> None:
    """Compare the verification run's output with the reference; fails if it is wrong."""
    from nexmark.expectations import ExpectationsError, validate

    night = Night.current()
    directory = night.query_dir(query)
    try:
        outcome = validate(
            query,
            night.verified_dir(query),
            night.events_dir,
            night.directory / "data_docs",
            sink=verify_sink(query),
        )
    except ExpectationsError as error:
        verification = Verification(success=False, failures=(str(error),))
    else:
        verification = Verification(
            success=outcome.success,
            failures=outcome.failures,
            evaluated=outcome.expectations_evaluated,
            statistics=outcome.statistics,
        )
    verification.write(directory)
    if not verification.success:
        raise AirflowFailException(f"{query} is wrong: {' | '.join(verification.failures)}")
    rows = verification.statistics.get("rows")
    say(f"{query} verify: {rows} rows equal the reference, {verification.evaluated} expectations")


def _is_skipped(task_id: str, queries: Sequence[str]) -> bool:
    query, _, task = task_id.rpartition(".")
    return query in KNOWN_QUERIES and query not in queries and task != "record"


__all__ = ["VERIFY_KEY", "expectations", "plan", "select"]
