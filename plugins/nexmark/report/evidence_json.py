"""The evidence as JSON: of a night or a sign-off, and of one query in depth."""

from nexmark.attribution.explained import Attribution, ChangeKind, words
from nexmark.evidence.alarms import Acknowledged
from nexmark.evidence.night_evidence import CommonEvidence, NightEvidence
from nexmark.evidence.pairs import OF_BATCH, PairOfRuns
from nexmark.evidence.query_evidence import QueryEvidence
from nexmark.model import ARMS, PROFILED
from nexmark.report.host_paths import without_host_paths
from nexmark.report.plain import IDS, plain, plain_point, plain_row, plain_verdict
from nexmark.report.table import report_text
from nexmark.secrets import without_any_secret
from nexmark.store.table_rows import RepetitionRow

SCHEMA_VERSION = 2
"""The version of the schema of the evidence."""
_LISTS = ("confs", "batch_list")
"""The columns of a repetition that are elsewhere in the evidence."""


def night_json(evidence: NightEvidence) -> dict[str, object]:
    """Return all evidence on a night or a sign-off, with the decision of a person."""
    report, rates = evidence.report, evidence.self_tests.rates
    attributions = {query: _why(one) for query, one in evidence.attributions.items()}
    return _evidence(
        evidence,
        red=report.failed,
        summary=list(report.lines),
        alarms=list(report.alarms),
        source_changes=plain(report.source_changes),
        table=report_text(report),
        rows=[plain_row(row) for row in report.rows],
        decision=plain(evidence.decision, leave_out=("bundle",)),
        compatibility=plain(report.upgrades.rows),
        self_test={"tonight": plain(evidence.tonight), "words": rates.words, **plain(rates)},
        reproduce=dict(evidence.reproduce),
        attribution={query: why for query, why in attributions.items() if why is not None},
    )


def query_json(evidence: QueryEvidence) -> dict[str, object]:
    """Return all evidence on one query of a night."""
    plans, attribution = evidence.plans, evidence.attribution
    judged = (row for row in evidence.runs if row.stage != PROFILED)
    return _evidence(
        evidence,
        query=evidence.query,
        since=evidence.since,
        source_changes=plain(evidence.source_changes),
        reproduce=evidence.reproduce,
        latencies=plain(evidence.latencies),
        ageing=plain(evidence.ageing),
        conf_differences=plain(evidence.conf_differences or ()),
        cpu=plain(evidence.cpu),
        pairs=[_pair(pair) for pair in evidence.pairs],
        history=[plain_point(point) for point in evidence.points],
        changes=[
            {**plain(level.change), "build": level.first.verdict.build}
            for level in evidence.changes
        ],
        creeps=plain(evidence.creeps),
        plans={**plain(plans.arms), "changed": plans.changed, "diff": "\n".join(plans.diff)},
        batches=[batch for row in judged for batch in _batches(row)],
        attribution=None if attribution is None else _why(attribution),
        flames=plain(evidence.flames, leave_out=("query",)),
    )


def _evidence(evidence: CommonEvidence, **special: object) -> dict[str, object]:
    """Return the evidence as JSON without secrets, with the paths of this machine shortened.

    ``special`` are the keys that only a night, or only a query, has.
    """
    night = evidence.night
    content = {
        "schema_version": SCHEMA_VERSION,
        "written": plain(evidence.written),
        "run": night.id,
        **special,
        "night": {
            "dag_id": night.dag_id,
            "run_id": night.run_id,
            "started": plain(night.started),
            "engine": night.engine,
            "mode": night.mode.value,
            "queries": list(night.queries),
            "repetitions": night.repetitions,
            "seed": night.seed,
            "jobs": night.jobs,
            "shape": night.shape,
            "directory": night.directory,
            "workload": {"name": night.workload, **night.workload_spec},
            "cluster": {"name": night.cluster, **night.cluster_spec},
        },
        "builds": plain(evidence.builds),
        "verdicts": [plain_verdict(verdict) for verdict in evidence.verdicts],
        "validations": plain(evidence.validations),
        "host_facts": plain(evidence.host_facts),
        "canary": plain(evidence.canary),
        "confs": plain(evidence.confs),
        "acceptances": [_acceptance(ack) for ack in evidence.acks],
        "gate": {"version": evidence.gate_version, "settings": night.gate_spec},
        "hosts": list(evidence.host_names),
        "grade": {"grade": night.grade, "reason": night.grade_reason},
    }
    return without_host_paths(without_any_secret(content))


def _pair(pair: PairOfRuns) -> dict[str, object]:
    return {
        "stage": pair.stage,
        "number": pair.number,
        "ratio": pair.ratio,
        "candidate_figure": pair.candidate_figure,
        "baseline_figure": pair.baseline_figure,
        "candidate": plain(pair.candidate, leave_out=_LISTS),
        "baseline": plain(pair.baseline, leave_out=_LISTS),
    }


def _batches(row: RepetitionRow) -> list[dict[str, object]]:
    batches = row.batch_list or () if row.arm in ARMS else ()
    return [
        {
            "arm": row.arm,
            "stage": row.stage,
            "number": row.number,
            **{name: batch.get(name) for name in ("id", "phase", *OF_BATCH)},
        }
        for batch in batches
    ]


def _acceptance(ack: Acknowledged) -> dict[str, object]:
    row, withdrawal = plain(ack.row, keep=IDS), plain(ack.row.withdrawal)
    return {**row, "state": ack.state, "withdrawal": withdrawal, "covers": ack.covers}


def _why(attribution: Attribution) -> dict[str, object] | None:
    """Return why a query changed; None if there is nothing to explain."""
    nothing = attribution.kind is ChangeKind.NOTHING
    if nothing and not attribution.confs and not attribution.parts:
        return None
    return {
        "words": words(attribution),
        **plain(attribution),
        "contribution": attribution.contribution,
    }
