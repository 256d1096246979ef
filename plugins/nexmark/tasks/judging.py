"""After the queries: judge them, report, and give the night its colour."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

from airflow.sdk import get_current_context
from airflow.sdk.exceptions import AirflowFailException

from nexmark.config import paths
from nexmark.config.fields import HISTORY_MODE, REMEDY
from nexmark.errors import NexmarkError
from nexmark.model import Arm, Value
from nexmark.night.accepted import covered
from nexmark.night.night_progress import say
from nexmark.night.plan import Night
from nexmark.night.planning import query_names
from nexmark.night.run_directory import overhead
from nexmark.tasks.context import current_night
from nexmark.tasks.metrics import emit

if TYPE_CHECKING:
    from nexmark.store import Store
    from nexmark.verdict import Verdict
    from nexmark.verdict.measured_night import QueryVerdict

#: The name of a pair set of the self-test in the results database, by its arm.
SELF_TESTS: Mapping[str, Literal["aa", "slowdown"]] = {Arm.CONTROL: "aa", Arm.SLOWED: "slowdown"}


def judge() -> None:
    """Judge every query as the mode of the night says, and record the verdicts."""
    from nexmark.store import open_store

    night = current_night()
    if night.mode == HISTORY_MODE:  # planned by an earlier version
        raise AirflowFailException(
            f"{REMEDY} for a new night; the verdicts of this one stay as they are"
        )
    with open_store(paths.database_url()) as store:
        if night.mode == "bounds":
            _record(night, store, _judge_by_bounds(night, store))
        else:
            _judge_by_gate(night, store)


def _record(night: Night, store: Store, verdicts: Sequence[Verdict | QueryVerdict]) -> None:
    """Record verdicts, the red ones that are known with the acceptance that covers them."""
    known = covered(store, night.name, verdicts)
    store.record_verdicts(night.name, verdicts, covered=known)
    rows = {row.id: row for row in store.acceptances()} if known else {}
    for query, number in known.items():
        row = rows[number]
        until = f" until {row.expires:%Y-%m-%d}" if row.expires else ""
        say(f"{query}: known, accepted by {row.who}{until} (acceptance {number}): {row.reason}")


def _judge_by_bounds(night: Night, store: Store) -> list[Verdict]:
    """Compare the medians with the accepted run's medians."""
    from nexmark.verdict import judge as judge_queries
    from nexmark.verdict.headroom import source_bound

    place = (night.engine.name, night.workload.name, night.cluster.name)
    return judge_queries(
        night.queries,
        store.arms(night.name),
        store.baseline(*place),
        store.invalid(night.name),
        night.gate,
        workload=night.workload.name,
        repetitions=night.workload.repetitions,
        missing=store.missing(night.name),
        source_bound=source_bound(store.paired_night(night.name).measured, night.gate),
    )


def _judge_by_gate(night: Night, store: Store) -> None:
    """Judge the pairs of the night, and the gate itself by the pairs of its self-test."""
    from nexmark.store import SelfTestRecord
    from nexmark.verdict.eligibility import Grounds
    from nexmark.verdict.nightly import judge_night

    gate = night.gate
    earlier = store.earlier(night.name, gate.remembered)
    measured = store.paired_night(night.name)
    _record(night, store, judge_night(measured, earlier, gate))
    grade = Grounds(measured, gate).worst_grade()
    store.record_grade(night.name, grade.steadiness.name.lower(), grade.reason)
    for arm, query in night.self_test.items():
        tested = store.paired_night(night.name, arms=(arm, Arm.BASELINE), queries=[query])
        (found,) = (
            verdict
            for verdict in judge_night(tested, earlier, gate)
            if (verdict.query, verdict.metric) == (query, gate.metric)
        )
        store.record_self_test(
            night.name,
            SelfTestRecord(
                kind=SELF_TESTS[arm],
                query=query,
                size=1 + gate.self_test if arm == Arm.SLOWED else 1.0,
                value=found.value.value,
                ratio=found.ratio,
                lo=found.lo,
                hi=found.hi,
                gate_version=gate.version,
            ),
        )


def report() -> dict[str, Any]:
    """Write the table and the files for people, and show the table.

    Returns what notifiers and the sign-off tell of the night: `text`, the `lines` that matter, the
    `alarms` by the build they began with, whether it is `red`, and the `directory`.
    """
    from nexmark.report import report_text, write_report
    from nexmark.report.evidence_files import write_evidence
    from nexmark.secrets import without_secrets
    from nexmark.store import open_store

    night = current_night()
    directory = night.directory / "report"
    with open_store(paths.database_url()) as store:
        written = write_report(directory, store, night.name)
        evidence = write_evidence(directory, store, night.name)
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
    say(_overhead(night))
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


def _overhead(night: Night) -> str:
    """Return the night's time around its applications: samplers, expectations, Airflow itself."""
    try:
        seconds, repetitions = overhead(night.directory)
    except FileNotFoundError:
        return "harness: no application ran"
    return (
        f"harness: {seconds:.0f} s around the applications, {seconds / max(repetitions, 1):.1f} s "
        "per timed repetition"
    )


def verdict() -> None:
    """Fail on a regression, a wrong result or a missing query, naming each with its reason."""
    from nexmark.store import open_store

    night = current_night()
    with open_store(paths.database_url()) as store:
        rows = store.verdicts(night.name)
    red = [row for row in rows if row.red]
    judged = {row.query for row in rows}
    lines = [f"{row.query} {row.value}: {row.reason}" for row in red]
    lines += [f"{query} MISSING: not judged" for query in night.queries if query not in judged]
    if lines:
        raise AirflowFailException(
            f"{len(lines)} of {len(night.queries)} queries fail the night: {' | '.join(lines)}"
        )
    count = len(night.queries)
    known = [row.query for row in rows if row.decides and row.acceptance_id is not None]
    if known:
        say(f"known and accepted: {', '.join(known)}")
    if bound := [row.query for row in rows if row.decides and row.value == Value.SOURCE_BOUND]:
        say(f"no proof of anything, the figures may be the source's: {', '.join(bound)}")
    say(f"the night is green: no regression, no wrong result, all {count} queries there")


def accept() -> None:
    """Make the run named in the params the baseline of its queries, of all or of some."""
    from datetime import UTC, datetime

    from nexmark.store import open_store
    from nexmark.store.accepting import parse_expiry

    context = get_current_context()
    params = context["params"]
    who = params["by"] or context["dag_run"].triggering_user_name or ""
    try:
        expires = parse_expiry(params["expires"] or "", datetime.now(UTC))
        with open_store(paths.database_url()) as store:
            done = store.accept(
                params["run"],
                who,
                params["reason"],
                query_names(params["queries"]),
                expires=expires,
                link=params["link"],
            )
    except NexmarkError as error:
        raise AirflowFailException(str(error)) from None
    until = f" until {expires:%Y-%m-%d %H:%M} UTC" if expires else ""
    say(f"{done.run} is now the baseline of {', '.join(done.queries)}{until}")
    if done.left_out:
        refused = "; ".join(f"{query}: {why}" for query, why in done.left_out.items())
        raise AirflowFailException(f"not accepted: {refused}")
