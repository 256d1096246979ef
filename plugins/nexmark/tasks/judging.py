"""After the queries: judge them, report, and give the night its colour."""

from __future__ import annotations

from airflow.sdk import get_current_context
from airflow.sdk.exceptions import AirflowException, AirflowFailException

from nexmark.config import paths
from nexmark.tasks.night import Night
from nexmark.tasks.operators import overhead_s
from nexmark.tasks.progress import say
from nexmark.tasks.recording import run_name


def judge() -> None:
    """Compare every query with its baseline and record the verdicts."""
    from nexmark.store import open_store
    from nexmark.verdict import judge as judge_queries

    night = Night.current()
    run = run_name(night)
    with open_store(paths.database_url()) as store:
        verdicts = judge_queries(
            night.queries,
            store.arms(run),
            store.baseline(night.engine.name, night.workload.name, night.cluster.name),
            store.invalid(run),
            night.gate,
            workload=night.workload.name,
            repetitions=night.workload.repetitions,
            missing=store.missing(run),
        )
        store.record_verdicts(run, verdicts)


def report() -> None:
    """Write the table and the files for people, and show the table."""
    from nexmark.report import write_report
    from nexmark.store import open_store

    night = Night.current()
    directory = night.directory / "report"
    with open_store(paths.database_url()) as store:
        written = write_report(directory, store, run_name(night))
    say(written.text())
    say(_overhead(night))
    say(f"report: {directory}")
    say(f"raw rows: {paths.database_url()}")
    say(f"all files of the night: {night.directory}")


def _overhead(night: Night) -> str:
    """What the night spends around its applications: samplers, expectations, Airflow's own time."""
    try:
        seconds = overhead_s(night.directory)
    except FileNotFoundError:
        return "harness: no application ran"
    repetitions = len(night.queries) * night.workload.repetitions
    return (
        f"harness: {seconds:.0f} s around the applications, {seconds / repetitions:.1f} s "
        "per timed repetition"
    )


def verdict() -> None:
    """Fail on a regression, a wrong result or a missing query, naming each with its reason."""
    from nexmark.store import open_store
    from nexmark.verdict import FAILING

    night = Night.current()
    with open_store(paths.database_url()) as store:
        rows = {row.query: row for row in store.verdicts(run_name(night))}
    lines = [
        f"{query} {row.value}: {row.reason}" for query, row in rows.items() if row.value in FAILING
    ]
    lines += [f"{query} MISSING: not judged" for query in night.queries if query not in rows]
    if lines:
        raise AirflowFailException(
            f"{len(lines)} of {len(night.queries)} queries fail the night: {' | '.join(lines)}"
        )
    say(f"the night is green: no regression, no wrong result, all {len(rows)} queries there")


def accept() -> None:
    """Make the run named in the params the baseline of its queries."""
    from nexmark.store import StoreError, open_store

    context = get_current_context()
    params = context["params"]
    who = params["by"] or context["dag_run"].triggering_user_name or ""
    try:
        with open_store(paths.database_url()) as store:
            done = store.accept(params["run"], who, params["reason"])
    except StoreError as error:
        raise AirflowFailException(str(error)) from None
    for query, why in done.left_out.items():
        say(f"not accepted: {query}: {why}")
    if not done.queries:
        raise AirflowException("nothing was accepted")
    say(f"{done.run} is now the baseline of {', '.join(done.queries)}")


__all__ = ["accept", "judge", "report", "verdict"]
