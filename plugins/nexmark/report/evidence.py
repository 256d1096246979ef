"""All that a night or a sign-off rests on, as plain data: what was measured, what was said."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from statistics import median
from types import MappingProxyType
from typing import Any

from nexmark.config import paths
from nexmark.report.attribution import attribution_json
from nexmark.report.confs import confs_by_arm, without_any_secret
from nexmark.report.plain import moment, plain
from nexmark.report.report import Report, make_report
from nexmark.report.reproduce import reproduce
from nexmark.store import JUDGED, Store
from nexmark.store.accepting import states
from nexmark.store.errors import without_secrets
from nexmark.store.models import Acceptance, CanaryRow, Night, SelfTest
from nexmark.verdict import Value
from nexmark.verdict.rates import Result, Test, rates

SCHEMA_VERSION = 2

UNDECIDED = {"choice": "nobody decided", "who": "", "when": "", "reason": ""}


def collect(
    store: Store, run: str, decision: Mapping[str, Any] | None = MappingProxyType(UNDECIDED)
) -> dict[str, Any]:
    """Return what is known of a run, and what was decided on it, ready for JSON.

    ``decision`` is None for a night on which nobody has to decide.
    """
    report = make_report(store, run)
    night = report.night
    repetitions = store.repetitions(night.id)
    content = {
        "schema_version": SCHEMA_VERSION,
        "written": moment(datetime.now(UTC)),
        "run": night.id,
        "red": report.failed,
        "summary": list(report.lines),
        "alarms": list(report.alarms),
        "table": report.text(),
        "rows": [asdict(row) for row in report.rows],
        "decision": None if decision is None else dict(decision),
        "night": night_of(night),
        "builds": builds_of(store, night),
        "gate": {"version": _gate_version(store, report), "settings": night.gate_spec},
        "hosts": sorted({host for row in repetitions for host in row.hosts or ()}),
        "host_facts": host_facts(night),
        "grade": {"grade": night.grade, "reason": night.grade_reason},
        "canary": canary_of(store.canaries(night.id)),
        "confs": confs_by_arm([row for row in repetitions if row.stage in JUDGED]),
        "verdicts": [plain(row) for row in store.verdicts(night.id)],
        "validations": [plain(row) for row in store.validations(night.id)],
        "self_test": _self_test(store, night),
        "acceptances": acceptances_of(store, night),
        "reproduce": {x.query: reproduce(store, night, x.query) for x in report.rows if x.red},
        "attribution": attribution_json(store, night),
    }
    found: dict[str, Any] = without_any_secret(content)
    return found


def host_facts(night: Night) -> dict[str, Any]:
    """Return kernel, CPU, JDK and so on by host, {} where the night has not noted them."""
    try:
        found = json.loads((Path(night.directory) / paths.HOSTS).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def night_of(night: Night) -> dict[str, Any]:
    """Return what was asked for, and where."""
    return {
        "dag_id": night.dag_id,
        "run_id": night.run_id,
        "started": moment(night.started),
        "engine": night.engine,
        "workload": {"name": night.workload, **night.workload_spec},
        "cluster": {"name": night.cluster, **night.cluster_spec},
        "mode": night.mode,
        "queries": list(night.queries),
        "repetitions": night.repetitions,
        "seed": night.seed,
        "jobs": night.jobs,
        "shape": night.shape,
        "directory": night.directory,
    }


def builds_of(store: Store, night: Night) -> list[dict[str, Any]]:
    """Return each build with its role: the candidate, and what the queries are compared with."""
    compared: dict[str, list[str]] = {}
    for query, build in (night.baselines or {}).items():
        compared.setdefault(str(build), []).append(query)
    for row in store.verdicts(night.id):
        if row.baseline_run and row.decides:
            compared.setdefault(store.night(row.baseline_run).build_id, []).append(row.query)
    roles = [("candidate", night.build_id, list(night.queries))]
    roles += [("baseline", build, queries) for build, queries in compared.items()]
    found = []
    for role, identity, queries in roles:
        build = store.build(identity)
        source = without_secrets(build.source)
        found.append(
            {
                "role": role,
                "id": build.id,
                "version": build.version,
                "source": source,
                "queries": queries,
            }
        )
    return found


def _gate_version(store: Store, report: Report) -> int | None:
    return max((row.gate_version for row in store.verdicts(report.night.id)), default=None)


def canary_of(rows: Sequence[CanaryRow]) -> list[dict[str, Any]]:
    """Return the median reading of each host and metric, before and after the queries."""
    found: dict[tuple[str, str, str], list[float]] = {}
    for row in rows:
        if row.value is not None:
            found.setdefault((row.host, row.metric, row.moment), []).append(row.value)
    return [
        {"host": host, "metric": metric, "moment": moment, "median": median(x), "readings": len(x)}
        for (host, metric, moment), x in sorted(found.items())
    ]


def _self_test(store: Store, night: Night) -> dict[str, Any]:
    """Return what the gate said of known changes this night, and how often it was right so far."""
    version = max((row.gate_version for row in store.verdicts(night.id)), default=0)
    rows = [x for x in store.self_tests(night.engine) if x.gate_version == version][::-1]
    found = rates(Result(x.night_id, x.query, Test(x.kind), _alarmed(x)) for x in rows)
    return {
        "tonight": [plain(row) for row in rows if row.night_id == night.id],
        "words": found.words,
        **asdict(found),
    }


def _alarmed(row: SelfTest) -> bool | None:
    """Tell whether the gate alarmed; None where it came to no verdict."""
    if row.value in (Value.INVALID, Value.MISSING, Value.CALIBRATING, Value.SUSPECT):
        return None
    return row.value == Value.REGRESSION


def acceptances_of(store: Store, night: Night) -> list[dict[str, Any]]:
    """Return who accepted what for this engine, workload and cluster, and what became of it."""
    rows = store.acceptances(night.engine, night.workload, night.cluster)
    covers = {
        x.acceptance_id: x.query for x in store.verdicts(night.id) if x.acceptance_id is not None
    }
    return [
        {
            **plain(row, keep=("id", "night_id")),
            "state": state,
            "withdrawal": _withdrawal(row),
            "covers": covers.get(row.id),
        }
        for row, state in states(rows, datetime.now(UTC))
    ]


def _withdrawal(row: Acceptance) -> dict[str, Any] | None:
    taken_back = row.withdrawal
    return None if taken_back is None else plain(taken_back)


__all__ = [
    "SCHEMA_VERSION",
    "acceptances_of",
    "builds_of",
    "canary_of",
    "collect",
    "host_facts",
    "night_of",
]
