"""The verification runs: all queries in one application, and the outcome of each.

Verification is not timed, so a query needs no application of its own there. Two queries run at a
time. If the application ends early (a JVM that exits, no memory), the next one runs the rest one by
one: then the log says which query ends it. That query is left out, and another application runs the
rest. The task `verify` of a query runs alone if the query is still not done then.

These runs leave a core idle now and then, so the task that waits for them checks each query as soon
as it is done. The task `expectations` of the query then takes what was found.
"""

import json
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from pydantic import Field

from nexmark.config import Job
from nexmark.config.fields import Model
from nexmark.errors import NexmarkError
from nexmark.home import write_text
from nexmark.night.applications import shared_submission, verify_sink, verify_submission
from nexmark.night.deployments import Deployment
from nexmark.night.night_plan import Night
from nexmark.night.night_progress import say
from nexmark.night.run_directory import RunDirectory, TaskDirectory, json_lines
from nexmark.night.submission import (
    AnySubmission,
    NothingToSubmit,
    SharedQuery,
    SharedVerification,
)

if TYPE_CHECKING:
    from nexmark.expectations.suites import ValidationOutcome

DONE = ""
_POLL_S = 0.5


class _LogLine(Model):
    """A line of the log of `verify_queries.py`; `again`: the query ran and is tried again."""

    query: str
    state: Literal["begun", "done", "failed", "again"]
    reason: str = ""


class Verification(Model):
    """The answer on the verified results: right or not, and a line per failed expectation.

    `evaluated` counts the expectations. `statistics` describe the generated events; statistics of
    the boundary events have the prefix `boundary_`.
    """

    success: bool
    failures: tuple[str, ...] = ()
    evaluated: int = 0
    statistics: Mapping[str, float | int | None] = Field(default_factory=dict)

    def write(self, directory: Path) -> None:
        """Write it into the query's directory."""
        directory.mkdir(parents=True, exist_ok=True)
        write_text(TaskDirectory(directory).verification, self.model_dump_json(indent=1))

    @classmethod
    def read(cls, directory: Path) -> "Verification | None":
        """Return the verification of the query in `directory`; None if it did not get so far."""
        try:
            return cls.model_validate_json(TaskDirectory(directory).verification.read_text())
        except FileNotFoundError:
            return None


def plan_together(night: Night, deployment: Deployment) -> AnySubmission:
    """Return the submission that verifies all queries, none where a night has only one.

    ConfigError: a person added an expectation that Great Expectations does not know.
    """
    from nexmark.expectations.suites import check_added

    check_added(night.queries, {**night.jobs, **night.candidate_jobs})
    verified = [query for query in night.queries if _is_verified_together(night, query)]
    if len(verified) < 2:
        return NothingToSubmit(reason="no two queries are to be verified: each has its own task")
    alone = {query: verify_submission(night, deployment, query) for query in verified}
    queries = {
        query: SharedQuery(arguments=each.application.arguments, directories=each.directories)
        for query, each in alone.items()
    }
    return shared_submission(night, deployment, queries)


def _is_verified_together(night: Night, query: str) -> bool:
    """Tell whether a query can share an application: its job needs no confs and no JARs.

    What has no input is not verified at all.
    """
    job = night.job_of_candidate(query)
    has_input = not night.files.group(query).layout.has_failed
    return has_input and (job is None or not (job.application or job.confs or job.jars))


def run_together(
    night: RunDirectory,
    submission: SharedVerification,
    run: Callable[[SharedVerification], None],
    failure: type[Exception],
) -> None:
    """Run applications until every query of a submission has been tried.

    Args:
        night: The files of the night.
        submission: As `plan_together` returns it.
        run: Runs one application to its end; raises `failure` if it fails.
        failure: raised again where an application fails before it begins a query.
    """
    queries, at_once = submission.queries, 2
    while left := [query for query in queries if query not in outcomes(night)]:
        for query in _begun(night):
            _note(night, _LogLine(query=query, state="again"))
        plan = [{"query": query, "arguments": queries[query].arguments} for query in left]
        night.verify_plan.write_text(json.dumps(plan))
        directories = (path for query in left for path in queries[query].directories)
        application = submission.application.with_arguments(["--at-once", str(at_once)])
        changes = {
            "application": application,
            "directories": (*submission.directories, *directories),
        }
        try:
            run(submission.model_copy(update=changes))
        except failure as error:
            running = _begun(night)
            if not running:
                raise
            if len(running) == 1:
                reason = f"the application ended while it ran: {error}"
                _note(night, _LogLine(query=running[0], state="failed", reason=reason))
                say(f"{running[0]}: ended the application of all verification runs; others go on")
            at_once = 1
        else:
            if outcomes(night).keys() >= set(left):
                return
            raise NexmarkError("verify_queries.py left queries out and reported no failure")


def outcomes(night: RunDirectory) -> dict[str, str]:
    """Return why each query that was tried together has failed; DONE for one that has not."""
    return {
        query: DONE if line.state == "done" else line.reason
        for query, line in _newest(night).items()
        if line.state in ("done", "failed")
    }


def _begun(night: RunDirectory) -> list[str]:
    """Return the queries that were running when the application ended."""
    return [query for query, line in _newest(night).items() if line.state == "begun"]


def _note(night: RunDirectory, line: _LogLine) -> None:
    """Append a line to the log that the application writes."""
    with night.verify_log.open("a", encoding="utf-8") as file:
        file.write(json.dumps(line.model_dump()) + "\n")


def _newest(night: RunDirectory) -> dict[str, _LogLine]:
    """Return the last line of the log about each query."""
    lines = map(_LogLine.model_validate, json_lines(night.verify_log))
    return {line.query: line for line in lines}


def verify(night: Night, query: str) -> Verification:
    """Return the expectations' outcome on both outputs of the verification run."""
    from nexmark.expectations.suites import validate, validate_boundary

    if job := night.job_of_candidate(query):
        return _verify_own(night, job) if job.application is None else _by_repetitions(job)
    how = (night.files.data_docs, verify_sink(query))
    made = _outcome(validate, query, night.verified_dir(query), night.events_dir, *how)
    return _both(made, _outcome(validate_boundary, query, night.boundary_dir(query), *how))


def _verify_own(night: Night, job: Job) -> Verification:
    """Return the outcome of a job of a person's own.

    A job over the events of Nexmark that is proven is so over the boundary events, too.
    """
    from nexmark.expectations.own_results import validate_own, validate_own_boundary

    compares_arms = night.compares_verified_arms(job.name)
    check = partial(
        validate_own,
        again_dir=night.again_dir(job.name),
        baseline_dir=night.baseline_dir(job.name) if compares_arms else None,
    )
    docs, is_nexmark = night.files.data_docs, job.own_tables is None
    events = night.events_dir if is_nexmark else night.tables_dir(job.name)
    made = _outcome(check, job, night.verified_dir(job.name), events, docs)
    if not (job.is_proven and is_nexmark):
        return made
    boundary = _outcome(validate_own_boundary, job, night.boundary_dir(job.name), docs)
    return _both(made, boundary)


def _by_repetitions(job: Job) -> Verification:
    """Return what can be said of an application before it is timed: nothing is proven."""
    compared = bool(job.application and job.application.output)
    return Verification(success=True, statistics={"proven": 0, "compared": int(compared)})


def _both(made: Verification, boundary: Verification) -> Verification:
    """Return the outcome over generated events and over the boundary events as one."""
    failures = (f"over the boundary events: {failure}" for failure in boundary.failures)
    numbers = {f"boundary_{name}": value for name, value in boundary.statistics.items()}
    return Verification(
        success=made.success and boundary.success,
        failures=(*made.failures, *failures),
        evaluated=made.evaluated + boundary.evaluated,
        statistics={**made.statistics, **numbers},
    )


def _outcome(check: "Callable[..., ValidationOutcome]", *arguments: object) -> Verification:
    """Return the outcome of a check; wrong if it cannot be made."""
    from nexmark.expectations.contract import ExpectationsError

    try:
        checked = check(*arguments)
    except ExpectationsError as error:
        return Verification(success=False, failures=(str(error),))
    return Verification(
        success=checked.success,
        failures=checked.failures,
        evaluated=checked.expectations_evaluated,
        statistics=checked.statistics,
    )


def result_line(query: str, verification: Verification) -> str:
    """One line on the outcome."""
    if not verification.success:
        return f"{query} is wrong: {' | '.join(verification.failures)}"
    statistics = verification.statistics
    rows, more = (statistics.get(name) for name in ("rows", "boundary_rows"))
    if "compared" in statistics:
        by = "the rows that it writes" if statistics["compared"] else "its exit code alone"
        return f"{query}: is an application of your own: repetitions are judged by {by}"
    if statistics.get("proven") == 0:
        agree = "the builds agree" if statistics.get("arms") == 2 else "two runs agree"
        remedy = "add a reference to the job to prove its rows"
        return f"{query} verify: {rows} rows; {agree}; not proven: {remedy}"
    boundary = "" if more is None else f", and {more} over the boundary events,"
    equal = f"{rows} rows{boundary} equal the reference"
    return f"{query} verify: {equal}, {verification.evaluated} expectations"


@contextmanager
def checked_early(night: Night) -> Iterator[None]:
    """Check each query that is done within the context, and all of them if it ends well."""
    over, given_up = threading.Event(), threading.Event()
    thread = threading.Thread(target=_check_all, args=(night, over, given_up), daemon=True)
    thread.start()
    try:
        yield
    except BaseException:
        given_up.set()
        raise
    over.set()
    thread.join()


def take(night: Night, query: str) -> Verification | None:
    """Return the outcome that was found early, None without one; the next call finds none.

    So a task that is cleared in Airflow checks the query by itself.
    """
    early = Verification.read(_early(night, query))
    TaskDirectory(_early(night, query)).verification.unlink(missing_ok=True)
    return early


def _early(night: Night, query: str) -> Path:
    """Return where an early outcome is: every try of the run empties it."""
    return night.files.group(query).verify.path


def _check_all(night: Night, over: threading.Event, given_up: threading.Event) -> None:
    """Check what is done until it is `over`, then the rest; at most one more once `given_up`.

    It has the priority of every other program: with less, beside busy programs, the night would
    wait for it a hundred times as long as it takes.
    """
    left = [
        query
        for query in night.queries
        if Verification.read(_early(night, query)) is None
        and not night.compares_verified_arms(query)  # the baseline has not run yet
    ]
    while left and not given_up.is_set():
        last, states = over.is_set(), outcomes(night.files)
        if query := next((query for query in left if states.get(query) == DONE), None):
            verification = verify(night, query)
            verification.write(_early(night, query))
            say(result_line(query, verification))
            left.remove(query)
        elif last:
            return
        else:
            over.wait(_POLL_S)
