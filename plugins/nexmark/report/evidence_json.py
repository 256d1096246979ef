"""The evidence as JSON: of a night or a sign-off, and of one query in depth."""

from typing import Any

from nexmark.attribution.explained import Attribution, ChangeKind, words
from nexmark.evidence.alarms import Acknowledged
from nexmark.evidence.night_evidence import NightEvidence
from nexmark.evidence.pairs import OF_BATCH, PairOfRuns
from nexmark.evidence.query_evidence import QueryEvidence
from nexmark.model import ARMS, PROFILED
from nexmark.report.plain import IDS, plain, plain_point, plain_row, plain_verdict
from nexmark.report.table import report_text
from nexmark.secrets import without_any_secret
from nexmark.store.table_rows import RepetitionRow

SCHEMA_VERSION = 2
_LISTS = ("confs", "batch_list")
_OF_PAIR = ("stage", "number", "ratio", "candidate_figure", "baseline_figure")
_OF_NIGHT = (
    *("dag_id", "run_id", "started", "engine", "mode", "queries", "repetitions", "seed"),
    *("jobs", "shape", "directory"),
)
_OF_BATCH = ("id", "phase", *OF_BATCH)


def night_json(found: NightEvidence) -> dict[str, Any]:
    """Return all that is known of a night, and what was decided on it."""
    rates = found.self_tests.rates
    return _evidence(
        found,
        red=found.report.failed,
        summary=list(found.report.lines),
        alarms=list(found.report.alarms),
        table=report_text(found.report),
        rows=[plain_row(row) for row in found.report.rows],
        decision=plain(found.decision, leave_out=("bundle",)),
        compatibility=plain(found.report.upgrades.rows),
        self_test={"tonight": plain(found.tonight), "words": rates.words, **plain(rates)},
        reproduce=dict(found.reproduce),
        attribution={x: why for x, one in found.attributions.items() if (why := _why(one))},
    )


def query_json(found: QueryEvidence) -> dict[str, Any]:
    """Return all evidence on one query of a night."""
    plans = found.plans
    return _evidence(
        found,
        query=found.query,
        since=found.since,
        reproduce=found.reproduce,
        latencies=plain(found.latencies),
        conf_differences=plain(found.conf_differences or ()),
        cpu=plain(found.cpu),
        pairs=[_pair(pair) for pair in found.pairs],
        history=[plain_point(point) for point in found.points],
        changes=[plain(x.change) | {"build": x.first.verdict.build} for x in found.changes],
        creeps=plain(found.creeps),
        plans={**plain(plans.arms), "changed": plans.changed, "diff": "\n".join(plans.diff)},
        batches=[x for row in found.runs if row.stage != PROFILED for x in _batches(row)],
        attribution=None if found.attribution is None else _why(found.attribution),
        flames=plain(found.flames, leave_out=("query",)),
    )


def _evidence(found: NightEvidence | QueryEvidence, **own: Any) -> dict[str, Any]:
    """Return what a night and a query have in common, and what is their own."""
    night = found.night
    content = {
        "schema_version": SCHEMA_VERSION,
        "written": plain(found.written),
        "run": night.id,
        **own,
        "night": {
            **{name: plain(getattr(night, name)) for name in _OF_NIGHT},
            "workload": {"name": night.workload, **night.workload_spec},
            "cluster": {"name": night.cluster, **night.cluster_spec},
        },
        "builds": plain(found.builds),
        "verdicts": [plain_verdict(verdict) for verdict in found.verdicts],
        "validations": plain(found.validations),
        "host_facts": plain(found.host_facts),
        "canary": plain(found.canary),
        "confs": plain(found.confs),
        "acceptances": [_ack(ack) for ack in found.acks],
        "gate": {"version": found.gate_version, "settings": night.gate_spec},
        "hosts": list(found.host_names),
        "grade": {"grade": night.grade, "reason": night.grade_reason},
    }
    return dict(without_any_secret(content))


def _pair(pair: PairOfRuns) -> dict[str, Any]:
    runs = zip(ARMS, pair.runs, strict=True)
    own = {name: getattr(pair, name) for name in _OF_PAIR}
    return {**own, **{arm: row and plain(row, leave_out=_LISTS) for arm, row in runs}}


def _batches(row: RepetitionRow) -> list[dict[str, Any]]:
    own = {"arm": row.arm, "stage": row.stage, "number": row.number}
    batches = row.batch_list or () if row.arm in ARMS else ()
    return [{**own, **{name: batch.get(name) for name in _OF_BATCH}} for batch in batches]


def _ack(ack: Acknowledged) -> dict[str, Any]:
    row, withdrawal = plain(ack.row, keep=IDS), plain(ack.row.withdrawal)
    return {**row, "state": ack.state, "withdrawal": withdrawal, "covers": ack.covers}


def _why(one: Attribution) -> dict[str, Any] | None:
    """Return why a query changed; None where there is nothing to explain."""
    if one.kind is ChangeKind.NOTHING and not one.confs and not one.parts:
        return None
    return {"words": words(one), **plain(one), "contribution": one.contribution}
