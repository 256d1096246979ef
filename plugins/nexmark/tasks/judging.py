"""After the queries: judge them, report, and give the night its colour; accept a run."""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from airflow.sdk import get_current_context
from airflow.sdk.exceptions import AirflowFailException

from nexmark.config import paths
from nexmark.errors import NexmarkError
from nexmark.judging import judge_night
from nexmark.model import Value
from nexmark.night.make_night import query_names
from nexmark.night.night_plan import Night
from nexmark.night.night_progress import duration, say
from nexmark.people import process_user, signed
from nexmark.recording.night_records import record_lacking, results, results_of
from nexmark.tasks import DAG_TEST_USER, current_night, failing, given_params
from nexmark.tasks.metrics import emit

if TYPE_CHECKING:
    from nexmark.verdict.verdict import Verdict


def judge() -> None:
    """Judge every query as the mode of the night says, and record the verdicts."""
    night = current_night()
    with results_of(night) as store:
        record_lacking(night, store, say)
        judge_night(night, store)


def report() -> dict[str, Any]:
    """Write the table and the files for people, and show the table.

    Returns what notifiers and the sign-off tell of the night: `text`, the `lines` that matter, the
    `alarms` by the build they began with, whether it is `red`, and the `directory`.
    """
    from nexmark.report.evidence_files import write_night
    from nexmark.report.table import report_text
    from nexmark.secrets import without_secrets

    night = current_night()
    directory = night.files.report
    with results_of(night) as opened, opened.at_one_moment() as store:
        written, evidence = write_night(directory, store, night.name)
        steady_s = [row.steady_wall_s or 0.0 for row in store.repetitions(night.name)]
    say(report_text(written))
    for problem in evidence.problems:
        say(problem)
    if evidence.page:
        say(f"evidence: {evidence.page}")
    for query, page in evidence.alarms.items():
        say(f"evidence of {query}: {page}")
    try:
        emit(written)
    except Exception as error:  # a night does not fail for its metrics
        say(f"metrics: not sent: {type(error).__name__}: {error}")
    say(_time_line(night, sum(steady_s)))
    say(f"report: {directory}")
    say(f"raw rows: {without_secrets(paths.database_url())}")
    say(f"all files of the night: {night.directory}")
    return {
        "run": night.name,
        "red": written.failed,
        "lines": list(written.lines),
        "alarms": list(written.alarms),
        "text": report_text(written),
        "directory": str(directory),
        "evidence": str(evidence.page or ""),
    }


def _time_line(night: Night, steady_s: float) -> str:
    """Return how long the night was, and how much of it was steady measured work, in words.

    ``steady_s`` is the length of the steady states of all repetitions.
    """
    if (spent := night.files.time_spent()) is None:
        return "harness: no application ran"
    each = f"{spent.around_s / max(spent.timed, 1):.1f} s per timed repetition"
    share = f"{steady_s / max(spent.whole_s, 1.0):.0%} of {duration(spent.whole_s)}"
    return (
        f"harness: {spent.around_s:.0f} s around the applications, {each}; steady measured work: "
        f"{share}"
    )


def verdict() -> None:
    """Fail on a regression, a wrong result or a missing query, naming each with its reason."""
    night = current_night()
    with results_of(night) as store:
        rows = store.verdicts(night.name)
    red = [row for row in rows if row.red]
    judged = {row.query for row in rows}
    lines = [f"{row.query} {row.value}: {row.reason}" for row in red]
    lines += [f"{query} MISSING: not judged" for query in night.queries if query not in judged]
    if lines:
        failing_queries = f"{len(lines)} of {len(night.queries)} queries fail the night"
        raise AirflowFailException(f"{failing_queries}: {' | '.join(lines)}")
    if known := [row.query for row in rows if row.decides and row.acceptance is not None]:
        say(f"known and accepted: {', '.join(known)}")
    if bound := [row.query for row in rows if row.decides and row.value == Value.SOURCE_BOUND]:
        say(f"no proof of anything, the figures may be the source's: {', '.join(bound)}")
    say(_ending(rows))


def _ending(rows: "Sequence[Verdict]") -> str:
    """Return the last words of a night that is not red: what it has shown, and no more."""
    count = len({row.query for row in rows})
    if not any(row.ratio for row in rows) and {row.value for row in rows} == {Value.NO_BASELINE}:
        reasons = " | ".join(dict.fromkeys(row.reason for row in rows))
        return f"nothing was compared: {reasons[:300]}; all {count} queries there, no result wrong"
    open_ = [row.query for row in rows if row.decides and row.value == Value.UNDECIDED]
    undecided = f"; undecided: {', '.join(open_)}" if open_ else ""
    green = "the night is green: no regression, no wrong result"
    return f"{green}, all {count} queries there{undecided}"


def accepting_user(triggered_by: str | None, given: str | None) -> str:
    """Who accepts: Airflow's user who triggered the run, beside the name that a person has given.

    The name that is given proves nothing. Without a scheduler (`airflow dags test`) there is no
    Airflow user: then the user of the process stands for it.
    """
    real = process_user() if triggered_by in (None, "", DAG_TEST_USER) else triggered_by
    return signed(str(real), given)


def accept() -> None:
    """Make the run named in the params the baseline of its queries, of all or of some."""
    from nexmark.store.accepting import parse_expiry

    context = get_current_context()
    params = given_params(context)
    who = accepting_user(context["dag_run"].triggering_user_name, params["by"])
    with failing(NexmarkError, AirflowFailException), results() as store:
        expires = parse_expiry(params["expires"] or "", datetime.now(UTC))
        queries, link = query_names(params["queries"]), params["link"]
        run, why = params["run"], params["reason"]
        done = store.accept(run, who, why, queries, expires=expires, link=link)
    until = f" until {expires:%Y-%m-%d %H:%M} UTC" if expires else ""
    say(f"{done.run} is now the baseline of {', '.join(done.queries)}{until}")
    if done.left_out:
        refused = "; ".join(f"{query}: {why}" for query, why in done.left_out.items())
        raise AirflowFailException(f"not accepted: {refused}")
