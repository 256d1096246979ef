"""All that a sign-off rests on, as plain data: what was measured where, and what was said."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from statistics import median
from types import MappingProxyType
from typing import Any

from nexmark.report.report import Report, make_report
from nexmark.store import JUDGED, Store
from nexmark.store.accepting import states
from nexmark.store.errors import without_secrets
from nexmark.store.models import Acceptance, Base, CanaryRow, Night, Repetition, SelfTest
from nexmark.verdict import Value
from nexmark.verdict.rates import Result, Test, rates

SCHEMA_VERSION = 1
HIDDEN = "***"
_SECRET = re.compile(r"secret|password|token|credential|access\.?key", re.IGNORECASE)
_FEW = 3
_NOT_TO_SHOW = frozenset({"id", "night_id"})


UNDECIDED = {"choice": "nobody decided", "who": "", "when": "", "reason": ""}


def collect(
    store: Store, run: str, decision: Mapping[str, Any] = MappingProxyType(UNDECIDED)
) -> dict[str, Any]:
    """Return what is known of a run, and what was decided on it, ready for JSON."""
    report = make_report(store, run)
    night = report.night
    repetitions = store.repetitions(night.id)
    return {
        "schema_version": SCHEMA_VERSION,
        "written": _moment(datetime.now(UTC)),
        "run": night.id,
        "red": report.failed,
        "summary": list(report.lines),
        "alarms": list(report.alarms),
        "table": report.text(),
        "decision": dict(decision),
        "night": _night(night),
        "builds": _builds(store, night),
        "gate": {"version": _gate_version(store, report), "settings": night.gate_spec},
        "hosts": sorted({host for row in repetitions for host in row.hosts or ()}),
        "grade": {"grade": night.grade, "reason": night.grade_reason},
        "canary": _canary(store.canaries(night.id)),
        "confs": _confs([row for row in repetitions if row.stage in JUDGED]),
        "verdicts": [_plain(row) for row in store.verdicts(night.id)],
        "validations": [_plain(row) for row in store.validations(night.id)],
        "self_test": _self_test(store, night),
        "acceptances": _acceptances(store, night),
    }


def _night(night: Night) -> dict[str, Any]:
    return {
        "dag_id": night.dag_id,
        "run_id": night.run_id,
        "started": _moment(night.started),
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


def _builds(store: Store, night: Night) -> list[dict[str, Any]]:
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


def _canary(rows: Sequence[CanaryRow]) -> list[dict[str, Any]]:
    """Return the median reading of each host and metric, before and after the queries."""
    found: dict[tuple[str, str, str], list[float]] = {}
    for row in rows:
        if row.value is not None:
            found.setdefault((row.host, row.metric, row.moment), []).append(row.value)
    return [
        {"host": host, "metric": metric, "moment": moment, "median": median(x), "readings": len(x)}
        for (host, metric, moment), x in sorted(found.items())
    ]


def _confs(repetitions: Iterable[Repetition]) -> dict[str, dict[str, Any]]:
    """Return by arm the Spark confs that are not the defaults; what differs, as a list."""
    found: dict[str, dict[str, list[str]]] = {}
    for row in repetitions:
        for key, value in (_flat(row.confs) if row.confs else {}).items():
            values = found.setdefault(row.arm, {}).setdefault(key, [])
            if value not in values:
                values.append(value)
    return {
        arm: {key: _one_or_few(key, values) for key, values in sorted(confs.items())}
        for arm, confs in sorted(found.items())
    }


def _flat(confs: Any) -> Mapping[str, str]:
    """Return confs as a mapping, be they stored as one or as pairs."""
    return {str(key): str(value) for key, value in dict(confs).items()}


def _one_or_few(key: str, values: Sequence[str]) -> Any:
    if _SECRET.search(key):
        return HIDDEN
    if len(values) == 1:
        return values[0]
    return list(values) if len(values) <= _FEW else f"{len(values)} values, as {values[0]}"


def _self_test(store: Store, night: Night) -> dict[str, Any]:
    """Return what the gate said of known changes this night, and how often it was right so far."""
    version = max((row.gate_version for row in store.verdicts(night.id)), default=0)
    rows = [x for x in store.self_tests(night.engine) if x.gate_version == version][::-1]
    found = rates(Result(x.night_id, x.query, Test(x.kind), _alarmed(x)) for x in rows)
    return {
        "tonight": [_plain(row) for row in rows if row.night_id == night.id],
        "words": found.words,
        **asdict(found),
    }


def _alarmed(row: SelfTest) -> bool | None:
    """Tell whether the gate alarmed; None where it came to no verdict."""
    if row.value in (Value.INVALID, Value.MISSING, Value.CALIBRATING, Value.SUSPECT):
        return None
    return row.value == Value.REGRESSION


def _acceptances(store: Store, night: Night) -> list[dict[str, Any]]:
    """Return who accepted what for this engine, workload and cluster, and what became of it."""
    rows = store.acceptances(night.engine, night.workload, night.cluster)
    covers = {
        x.acceptance_id: x.query for x in store.verdicts(night.id) if x.acceptance_id is not None
    }
    return [
        {
            **_plain(row, keep=("id", "night_id")),
            "state": state,
            "withdrawal": _withdrawal(row),
            "covers": covers.get(row.id),
        }
        for row, state in states(rows, datetime.now(UTC))
    ]


def _withdrawal(row: Acceptance) -> dict[str, Any] | None:
    taken_back = row.withdrawal
    return None if taken_back is None else _plain(taken_back)


def _plain(row: Base, keep: Iterable[str] = ()) -> dict[str, Any]:
    names = [column.name for column in row.__table__.columns]
    left_out = _NOT_TO_SHOW.difference(keep)
    return {name: _value(getattr(row, name)) for name in names if name not in left_out}


def _value(value: Any) -> Any:
    return _moment(value) if isinstance(value, datetime) else value


def _moment(value: datetime) -> str:
    return value.astimezone(UTC).isoformat()


__all__ = ["SCHEMA_VERSION", "collect"]
