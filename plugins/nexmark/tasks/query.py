"""The tasks of a query: its verification, and the first round of its repetitions."""

from collections.abc import Sequence

from airflow.sdk import exceptions, get_current_context

from nexmark.config import known_queries
from nexmark.errors import NexmarkError
from nexmark.night.applications import (
    baseline_verification,
    repetition_submission,
    verify_submission,
)
from nexmark.night.deployments import Deployments
from nexmark.night.night_clusters import check_layout
from nexmark.night.night_plan import Night
from nexmark.night.night_progress import say
from nexmark.night.night_runs import first_runs
from nexmark.night.run_directory import Json, TurnFile, failure_kept
from nexmark.night.submission import (
    NextTurn,
    NoVerification,
    QueryVerification,
    Repetition,
    written,
)
from nexmark.night.verification import plan_together, result_line, take, verify
from nexmark.recording.night_records import record_group, results
from nexmark.sampling import sampler_processes
from nexmark.tasks import current_night, failing
from nexmark.tasks.infrastructure import heal

#: The XCom of `plan` with the verification run; its return value are the repetitions.
VERIFY_KEY = "verify"


def select() -> None:
    """Skip the tasks of the queries that this night is not asked for, but for their `record`.

    The next query waits for it; were it skipped now, all queries would start at once. Pushes what
    SparkSubmit is given to verify the others together.
    """
    night = current_night()
    together = plan_together(night, Deployments.read(night).candidate)
    get_current_context()["ti"].xcom_push(key=VERIFY_KEY, value=written(together))
    others = set(known_queries()) - set(night.queries)
    names = [str(name) for name in get_current_context()["dag"].task_ids]
    split = [(name, *name.rpartition(".")) for name in names]
    skipped = [name for name, group, _, task in split if group in others and task != "record"]
    if skipped:
        raise exceptions.DownstreamTasksSkipped(tasks=skipped)  # type: ignore[no-untyped-call]


def plan(query: str) -> list[dict[str, Json]]:
    """Return the submissions of the timed repetitions of `query`.

    The cluster is made whole first: what died under the query before is not to hurt this one. A
    job whose tables could not be laid out fails here.
    """
    night = current_night()
    directory = night.files.group(query)
    directory.forget_failure()
    with failing(NexmarkError), failure_kept(directory):
        check_layout(night, query)
        heal(night, query)
        deployments = Deployments.read(night)
        alone = _verification(night, deployments, query)
        get_current_context()["ti"].xcom_push(key=VERIFY_KEY, value=written(alone))
        runs = first_runs(night, query)
        submissions = [repetition_submission(night, deployments, run) for run in runs]
        return in_turn(directory.turns, submissions)


def _verification(
    night: Night, deployments: Deployments, query: str
) -> QueryVerification | NoVerification:
    """Return the run that verifies a query alone, with the baseline's if there is one."""
    if night.is_application(query):
        return NoVerification()
    alone = verify_submission(night, deployments.candidate, query)
    beside = baseline_verification(night, deployments, query)
    return alone.model_copy(update={"baseline": beside})


def in_turn(turns: TurnFile, submissions: Sequence[Repetition]) -> list[dict[str, Json]]:
    """Return the values to map the operator over: it runs `submissions` one by one, in order."""
    turns.write([written(each) for each in submissions])
    return [{"submission": written(NextTurn(turns=turns.path))} for _ in submissions]


def expectations(query: str) -> None:
    """Compare the verification run's outputs with the reference; fails if one is wrong."""
    night = current_night()
    with failing(NexmarkError), failure_kept(night.files.group(query).verify):
        early = take(night, query)
        verification = early or verify(night, query)
        verification.write(night.query_dir(query))
    if not verification.success:
        raise exceptions.AirflowFailException(result_line(query, verification))
    if early is None:
        say(result_line(query, verification))


def start_samplers(group: str) -> None:
    """Start the samplers of all hosts, and wait until their first readings are written."""
    with failing(NexmarkError):
        sampler_processes.start_samplers(current_night(), group)


def stop_samplers(group: str) -> None:
    """End the samplers, and fetch what they have written."""
    with failing(NexmarkError):
        sampler_processes.stop_samplers(current_night(), group)


def record(query: str) -> None:
    """Measure and record every planned repetition of `query`: right, wrong, or not there."""
    night = current_night()
    if query not in night.queries:
        raise exceptions.AirflowSkipException(f"{query} is not among the queries of this night")
    with results() as store:
        record_group(night, query, store, say)
