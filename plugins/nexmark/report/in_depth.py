"""One query of a night in depth, as plain data: what an alarm on it rests on."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from nexmark.report.attribution import attribution_json
from nexmark.report.confs import conf_differences, confs_by_arm, without_any_secret
from nexmark.report.evidence import (
    SCHEMA_VERSION,
    acceptances_of,
    builds_of,
    canary_of,
    host_facts,
    night_of,
)
from nexmark.report.flames import flames_json
from nexmark.report.pairs import ARMS, STAGES, batches_of, cpu_over_time, pairs_of
from nexmark.report.past import history_json
from nexmark.report.plain import moment, plain
from nexmark.report.plans import plans_of
from nexmark.report.reproduce import reproduce
from nexmark.store import Store
from nexmark.store.models import Night, Repetition
from nexmark.verdict.nights import SUITE


def collect_query(
    store: Store,
    night: Night,
    query: str,
    repetitions: Sequence[Repetition],
    since: str = "",
) -> dict[str, Any]:
    """Return all that is known of one query of a night, ready for JSON.

    ``repetitions`` are those of the night, ``since`` says which build an alarm on it began with.
    """
    own = [x for x in repetitions if query in (x.query, SUITE) and x.stage in STAGES]
    verdicts = [row for row in store.verdicts(night.id) if row.query == query]
    deciding = next((row for row in verdicts if row.decides), None)
    past = (
        history_json(store, night, query, deciding.metric)
        if deciding
        else {"history": [], "changes": []}
    )
    content: dict[str, Any] = {
        "schema_version": SCHEMA_VERSION,
        "written": moment(datetime.now(UTC)),
        "run": night.id,
        "query": query,
        "since": since,
        "verdicts": [plain(row) for row in verdicts],
        "night": night_of(night),
        "builds": [x for x in builds_of(store, night) if query in (*x["queries"], SUITE)],
        "reproduce": reproduce(store, night, query),
        "pairs": pairs_of(own) if query != SUITE else [],
        **past,
        "validations": [plain(x) for x in store.validations(night.id) if x.query == query],
        "acceptances": [x for x in acceptances_of(store, night) if x["query"] == query],
        "plans": plans_of(store, own) if query != SUITE else {},
        "confs": confs_by_arm([x for x in own if x.arm in ARMS], most=None),
        "conf_differences": conf_differences(own),
        "hosts": sorted({host for row in own for host in row.hosts or ()}),
        "host_facts": host_facts(night),
        "grade": {"grade": night.grade, "reason": night.grade_reason},
        "canary": canary_of([x for x in store.canaries(night.id) if x.group in (query, "")]),
        "gate": {
            "version": max((row.gate_version for row in verdicts), default=None),
            "settings": night.gate_spec,
        },
        "batches": batches_of(own) if query != SUITE else [],
        "cpu": cpu_over_time(store, own) if query != SUITE else [],
        "attribution": attribution_json(store, night, [query]).get(query),
        "flames": flames_json(night, query),
    }
    found: dict[str, Any] = without_any_secret(content)
    return found


__all__ = ["collect_query"]
