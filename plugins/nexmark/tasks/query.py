"""The tasks of one query: plan, expectations, record."""

from __future__ import annotations

from typing import Any

from airflow.sdk import get_current_context
from airflow.sdk.exceptions import AirflowFailException, AirflowSkipException

from nexmark.tasks.night import Deployment, Night
from nexmark.tasks.outcome import Verification
from nexmark.tasks.progress import say
from nexmark.tasks.submission import repetition_submission, verify_sink, verify_submission

#: The XCom of `plan` with the verification run; its return value are the repetitions.
VERIFY_KEY = "verify"


def plan(query: str) -> list[dict[str, Any]]:
    """What SparkSubmit is given for each timed repetition of `query`; skips what is not asked."""
    night = Night.current()
    if query not in night.queries:
        raise AirflowSkipException(f"{query} is not among this night's queries")
    deployment = Deployment.read(night)
    instance = get_current_context()["ti"]
    instance.xcom_push(key=VERIFY_KEY, value=verify_submission(night, deployment, query))
    say(night.position(query))
    return [
        {"submission": repetition_submission(night, deployment, query, number)}
        for number in range(1, night.workload.repetitions + 1)
    ]


def expectations(query: str) -> None:
    """Compare the verification run's output with the reference; fails if it is wrong."""
    from nexmark.expectations import ExpectationsError, validate

    night = Night.current()
    directory = night.query_dir(query)
    try:
        outcome = validate(
            query,
            directory / "verify" / "output",
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
        say(f"{query}: WRONG: {verification.failures[0]}")
        raise AirflowFailException(f"{query} is wrong: {' | '.join(verification.failures)}")
    rows = verification.statistics.get("rows")
    say(f"{query} verify: {rows} rows equal the reference, {verification.evaluated} expectations")

def record(query):
    pass
