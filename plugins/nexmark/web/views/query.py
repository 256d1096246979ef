"""The page of a query in a night: what was measured, and what may explain it."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from nexmark.config.models import RESERVED_CONFS
from nexmark.flames import Flames
from nexmark.store import BASELINE, CANDIDATE, FIRST, Store, details, history
from nexmark.store.accepting import states
from nexmark.store.models import Acceptance, Night, Validation, VerdictRow
from nexmark.store.records import CPU
from nexmark.web import charts
from nexmark.web.bars import Bar, bar, scale_of
from nexmark.web.charts import Chart
from nexmark.web.verdicts import Look, look
from nexmark.web.views.arms import Arms, arms_of
from nexmark.web.views.flames import flames_of
from nexmark.web.views.operators import Operators, operators_of
from nexmark.web.views.past import NIGHTS, changes_of, history_of
from nexmark.web.views.plans import PlanPage, plan_ids, plan_page
from nexmark.web.views.sources import Source, source_of
from nexmark.web.views.timeline import batch_points, cpu_points

_HIDDEN = ("secret", "password", "token", "credential", "key")


@dataclass(frozen=True)
class Metric:
    """The verdict on one metric of the query."""

    row: VerdictRow
    look: Look
    bar: Bar | None


@dataclass(frozen=True)
class QueryPage:
    """A query of a night; what is not there (yet) is None or empty."""

    night: Night
    query: str
    source: Source | None
    verdict: Metric | None
    others: tuple[Metric, ...]
    look: Look
    red: bool
    validation: Validation | None
    arms: Arms
    repetitions: tuple[Any, ...]
    pairs: Chart | None
    past: Chart | None
    changes: tuple[Mapping[str, Any], ...]
    cpu: tuple[Chart, ...]
    batches: Chart | None
    state: Chart | None
    plan: PlanPage
    confs: tuple[tuple[str, str, str], ...]
    acks: tuple[tuple[Acceptance, str], ...]
    operators: Operators | None
    flames: Flames | None
    before: str | None
    after: str | None


def query_page(store: Store, night: Night, query: str) -> QueryPage:
    """Return the page of a query."""
    verdicts = [row for row in store.verdicts(night.id) if row.query == query]
    rows = details.arms(store, night.id, [query])
    deciding = next((row for row in verdicts if row.decides), None)
    arms = arms_of(rows, _accepted(store, deciding, query)).get(query, Arms())
    points = history.trail(store, night, query, deciding.metric if deciding else CPU, NIGHTS)
    changes = changes_of(points)
    acks = _acks(store, night, query)
    lists = details.batches(store, night.id, query)
    batches = batch_points(lists)
    plans = [plan for plan in plan_ids(arms) if plan]
    metrics = _metrics(verdicts)
    before, after = history.neighbours(store, night)
    return QueryPage(
        night=night,
        query=query,
        source=source_of(query),
        verdict=next((x for x in metrics if x.row.decides), None),
        others=tuple(x for x in metrics if not x.row.decides),
        look=_look(deciding),
        red=deciding is not None and deciding.red,
        validation=next((x for x in store.validations(night.id) if x.query == query), None),
        arms=arms,
        repetitions=tuple(rows),
        pairs=_pairs(rows, deciding),
        past=history_of(points, changes, [row for row, _ in acks]),
        changes=tuple(changes),
        cpu=tuple(charts.cpu_chart(host, x) for host, x in cpu_points(store, arms).items()),
        batches=charts.batch_chart(batches) if batches else None,
        state=charts.state_chart(batches) if any(x["rows"] for x in batches) else None,
        plan=plan_page(arms, details.plan_texts(store, plans)),
        confs=tuple(confs_of(lists)),
        acks=tuple(acks),
        operators=operators_of(store, night.id, query),
        flames=flames_of(night, query),
        before=before,
        after=after,
    )


def pairs_of(rows: Iterable[Any], basis: str | None) -> list[dict[str, Any]]:
    """Return the pairs of a query on one basis, the first ones and then the fresh ones."""
    metric = f"{CPU}_{basis}" if basis in ("steady", "application") else CPU
    found: dict[tuple[int, int], dict[str, Any]] = {}
    for row in rows:
        if row.status == "ok" and row.arm in (CANDIDATE, BASELINE):
            found.setdefault((row.stage, row.number), {})[row.arm] = row
    pairs = []
    for (stage, number), own in sorted(found.items()):
        ours, theirs = own.get(CANDIDATE), own.get(BASELINE)
        pairs.append(
            {
                "label": f"{number}" if stage == FIRST else f"fresh {number}",
                "stage": "first pairs" if stage == FIRST else "fresh pairs",
                "candidate": getattr(ours, metric, None),
                "baseline": getattr(theirs, metric, None),
                "ratio": _ratio(ours, theirs, metric),
                "wall": _ratio(ours, theirs, "wall_s"),
            }
        )
    return pairs


def confs_of(rows: Sequence[Any]) -> list[tuple[str, str, str]]:
    """Return the Spark confs that differ between the arms: name, candidate's, baseline's.

    Those that the benchmark sets itself differ in every repetition, and are left out.
    """
    first: dict[str, dict[str, str]] = {}
    for row in rows:
        if row.arm not in first and row.confs:
            first[row.arm] = {str(k): str(v) for k, v in dict(row.confs).items()}
    ours, theirs = first.get(CANDIDATE, {}), first.get(BASELINE, {})
    if not theirs:
        return []
    return [
        (name, ours.get(name, ""), theirs.get(name, ""))
        for name in sorted(ours.keys() | theirs.keys())
        if ours.get(name) != theirs.get(name)
        and not name.startswith(RESERVED_CONFS)
        and not any(word in name.lower() for word in _HIDDEN)
    ]


def _pairs(rows: Sequence[Any], verdict: VerdictRow | None) -> Chart | None:
    pairs = pairs_of(rows, verdict.basis if verdict else None)
    if not any(pair["ratio"] for pair in pairs):
        return None
    low, high = (verdict.lo, verdict.hi) if verdict else (None, None)
    return charts.pairs_chart(pairs, low, high)


def _metrics(verdicts: Sequence[VerdictRow]) -> list[Metric]:
    scale = scale_of(x for row in verdicts for x in (row.ratio, row.lo, row.hi))
    return [
        Metric(row, _look(row), bar(scale, row.ratio, row.lo, row.hi, row.mde)) for row in verdicts
    ]


def _look(row: VerdictRow | None) -> Look:
    if row is None:
        return look(None)
    return look(row.value, known=row.acceptance_id is not None)


def _accepted(
    store: Store, verdict: VerdictRow | None, query: str
) -> dict[str, Sequence[Any]] | None:
    """Return the rows of the accepted run that the query is compared with by bounds."""
    if verdict is None or not verdict.baseline_run:
        return None
    return {query: details.arms(store, verdict.baseline_run, [query])}


def _acks(store: Store, night: Night, query: str) -> list[tuple[Acceptance, str]]:
    rows = store.acceptances(night.engine, night.workload, night.cluster)
    return [one for one in states(rows, datetime.now(UTC)) if one[0].query == query][::-1]


def _ratio(ours: Any, theirs: Any, metric: str) -> float | None:
    one, other = getattr(ours, metric, None), getattr(theirs, metric, None)
    if not one or not other or not math.isfinite(one / other):
        return None
    return float(round(one / other, 5))


__all__ = ["Metric", "QueryPage", "confs_of", "pairs_of", "query_page"]
