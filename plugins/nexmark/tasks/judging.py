"""After the queries: judge them, report, send metrics, and give the night its colour.

Metrics are sent with the client that Airflow uses for its own. Nothing is sent unless Airflow's are
on (`[metrics] statsd_on`, `statsd_datadog_enabled` or `otel_on`); prefix, allow and block list are
Airflow's. As Airflow does it, each gauge goes out under one name with tags (dag_id, engine,
workload, cluster, query), and, where `legacy_names_on` is set, for plain StatsD under one that has
them in it:

    nexmark.query.ratio                                           candidate / baseline
    nexmark.query.cpu_s_per_mevent                                CPU-seconds per million events
    nexmark.query.red                                             1 where it fails the night, else 0
    nexmark.night.red, .red_queries, .wrong                       1 or 0; how many; how many
    nexmark.night.grade                                           0 steady, 1 unsteady, 2 broken
    nexmark.<dag_id>.<workload>.<cluster>.<query>.ratio           and so on
    nexmark.<dag_id>.<workload>.<cluster>.night.red               and so on
"""

import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from airflow.sdk import get_current_context
from airflow.sdk.configuration import conf
from airflow.sdk.exceptions import AirflowFailException
from airflow.sdk.observability import stats

from nexmark.config import paths
from nexmark.errors import NexmarkError
from nexmark.model import Arm, Mode, Value
from nexmark.night.accepted import covered
from nexmark.night.night_progress import say
from nexmark.night.plan import Night
from nexmark.night.planning import query_names
from nexmark.people import process_user, signed
from nexmark.tasks import current_night, failing, results
from nexmark.tasks.recording import record_lacking, results_of

if TYPE_CHECKING:
    from nexmark.evidence.night_evidence import Report
    from nexmark.store import Store
    from nexmark.store.table_rows import VerdictRow
    from nexmark.verdict.measured_night import QueryVerdict


PREFIX = "nexmark"
#: The user that `DAG.test()` names, as `airflow dags test` runs a DAG: nobody's name.
_DAG_TEST_USER = "dag_test"
_UNSAFE = re.compile(r"[^A-Za-z0-9_-]")
GRADES: Mapping[str, int] = {"steady": 0, "unsteady": 1, "broken": 2}


def emit(report: "Report") -> None:
    """Send the gauges of a night; those that have no figure are left out."""
    night = report.night
    place = {"dag_id": night.dag_id, "workload": night.workload, "cluster": night.cluster}
    tags = {**place, "engine": night.engine}
    of_night: dict[str, float | None] = {
        "red": report.failed,
        "red_queries": sum(row.red for row in report.rows),
        "wrong": sum(row.result == "WRONG" for row in report.rows),
        "grade": GRADES.get(night.grade or ""),
    }
    for name, value in of_night.items():
        _gauge(f"night.{name}", value, [*place.values(), "night", name], tags)
    for row in report.rows:
        of_query: dict[str, float | None] = {
            "ratio": row.ratio,
            "cpu_s_per_mevent": row.cpu_s_per_mevent,
            "red": row.red,
        }
        for name, value in of_query.items():
            parts = [*place.values(), row.query, name]
            _gauge(f"query.{name}", value, parts, {**tags, "query": row.query})


def _gauge(name: str, value: float | None, parts: list[str], tags: Mapping[str, str]) -> None:
    if value is None:
        return
    value = float(value)
    stats.gauge(f"{PREFIX}.{name}", value, tags=dict(tags))
    if conf.getboolean("metrics", "legacy_names_on"):
        stats.gauge(".".join([PREFIX, *(_UNSAFE.sub("_", part) for part in parts)]), value)


def judge() -> None:
    """Judge every query as the mode of the night says, and record the verdicts."""
    night = current_night()
    with results_of(night) as store:
        record_lacking(night, store, say)
        judge_night(night, store)


def judge_night(night: Night, store: "Store", at: datetime | None = None) -> None:
    """Judge a night that is recorded; its verdicts are recorded last, when all else is.

    `at` is the moment whose accepted baselines count in a night by bounds: now, if it is None.
    """
    if night.mode == Mode.BOUNDS:
        _record(night, store, _judge_by_bounds(night, store, at))
    else:
        _judge_by_gate(night, store)


def _record(night: Night, store: "Store", verdicts: "Sequence[QueryVerdict]") -> None:
    """Record verdicts, the red ones that are known with the acceptance that covers them."""
    known = covered(store, night.name, verdicts)
    store.record_verdicts(night.name, verdicts, covered=known)
    rows = {row.id: row for row in store.acceptances()} if known else {}
    for query, number in known.items():
        row = rows[number]
        until = f" until {row.expires:%Y-%m-%d}" if row.expires else ""
        say(f"{query}: known, accepted by {row.who}{until} (acceptance {number}): {row.reason}")


def _judge_by_bounds(night: Night, store: "Store", at: datetime | None) -> "list[QueryVerdict]":
    from nexmark.verdict.bounds import judge as judge_queries
    from nexmark.verdict.eligibility import source_bound

    measured = store.paired_night(night.name)
    place = (night.engine.name, night.workload.name, night.cluster.name)
    return judge_queries(
        night.queries,
        store.arms(night.name),
        store.baseline(*place, at=at),
        measured.invalid,
        night.gate,
        workload=night.workload.name,
        repetitions=night.workload.repetitions,
        missing=measured.missing,
        source_bound=source_bound(measured.measured, night.gate),
    )


def _judge_by_gate(night: Night, store: "Store") -> None:
    """Judge the pairs of the night, and the gate itself by the pairs of its self-test."""
    from nexmark.evidence.creep import lineage_of
    from nexmark.store.table_rows import SelfTestRow
    from nexmark.verdict.baseline_chain import Lineage
    from nexmark.verdict.eligibility import grade
    from nexmark.verdict.nightly import judge_night as judge_pairs

    gate = night.gate
    earlier = store.earlier(night.name, gate.remembered)
    measured = store.paired_night(night.name)
    hosts = grade(measured.canary, gate)
    store.record_grade(night.name, hosts.steadiness.name.lower(), hosts.reason)
    for arm, query in night.self_test.items():
        tested = store.paired_night(night.name, arms=(arm, Arm.BASELINE), queries=[query])
        judged = judge_pairs(tested, earlier, gate, Lineage())  # it is no candidate
        (found,) = (x for x in judged if (x.query, x.metric) == (query, gate.metric))
        slowed = arm == Arm.SLOWED
        made = SelfTestRow(
            kind="slowdown" if slowed else "aa",
            query=query,
            size=1 + gate.self_test if slowed else 1.0,
            value=found.value.value,
            **{name: getattr(found, name) for name in ("ratio", "lo", "hi")},
            gate_version=gate.version,
        )
        store.record_self_test(night.name, made)
    lineage = lineage_of(store, store.night(night.name), gate.metric)
    _record(night, store, judge_pairs(measured, earlier, gate, lineage))


def report() -> dict[str, Any]:
    """Write the table and the files for people, and show the table.

    Returns what notifiers and the sign-off tell of the night: `text`, the `lines` that matter, the
    `alarms` by the build they began with, whether it is `red`, and the `directory`.
    """
    from nexmark.report.evidence_files import write_evidence, write_report
    from nexmark.report.table import report_text
    from nexmark.secrets import without_secrets

    night = current_night()
    directory = night.files.report
    with results_of(night) as opened, opened.at_one_moment() as store:
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
    if (found := night.files.overhead()) is None:
        return "harness: no application ran"
    seconds, repetitions = found
    each = f"{seconds / max(repetitions, 1):.1f} s per timed repetition"
    return f"harness: {seconds:.0f} s around the applications, {each}"


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
    if known := [row.query for row in rows if row.decides and row.acceptance_id is not None]:
        say(f"known and accepted: {', '.join(known)}")
    if bound := [row.query for row in rows if row.decides and row.value == Value.SOURCE_BOUND]:
        say(f"no proof of anything, the figures may be the source's: {', '.join(bound)}")
    say(_ending(rows))


def _ending(rows: "Sequence[VerdictRow]") -> str:
    """The last words of a night that is not red: what it has shown, and no more."""
    count = len({row.query for row in rows})
    if not any(row.ratio for row in rows) and {row.value for row in rows} == {Value.CALIBRATING}:
        reasons = " | ".join(dict.fromkeys(row.reason for row in rows))
        return f"nothing was compared: {reasons[:300]}; all {count} results are right"
    return f"the night is green: no regression, no wrong result, all {count} queries there"


def accepting_user(triggered_by: str | None, given: str | None) -> str:
    """Who accepts: Airflow's user who triggered the run, beside the name that a person has given.

    The name that is given proves nothing. Without a scheduler (`airflow dags test`) there is no
    Airflow user: then the user of the process stands for it.
    """
    real = process_user() if triggered_by in (None, "", _DAG_TEST_USER) else triggered_by
    return signed(str(real), given)


def accept() -> None:
    """Make the run named in the params the baseline of its queries, of all or of some."""
    from nexmark.store.accepting import parse_expiry

    context = get_current_context()
    params = context["params"]
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
