"""Verdicts as rows of the store, and rows as verdicts again."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import asdict, fields
from typing import Any

from sqlalchemy import select
from sqlalchemy.orm import Session

from nexmark.config import BUILD_DAG_ID
from nexmark.store.models import Night, VerdictRow
from nexmark.store.paired import Figures
from nexmark.store.records import BOUNDS, CPU
from nexmark.verdict import Value, Verdict
from nexmark.verdict.nights import QueryVerdict

_OTHERWISE_NAMED = {"night": "night_id", "baseline": "baseline_build"}
_NAMES = {
    field.name: _OTHERWISE_NAMED.get(field.name, field.name) for field in fields(QueryVerdict)
}


def columns_of(verdict: Verdict | QueryVerdict, figures: Figures | None) -> dict[str, Any]:
    """Return the columns of a verdict, but for those of the night; ``figures`` are of its pairs."""
    if isinstance(verdict, Verdict):
        return {**asdict(verdict), "value": verdict.value.value, "mode": BOUNDS}
    columns = {_NAMES[name]: value for name, value in asdict(verdict).items()}
    del columns["night_id"]
    columns["value"] = verdict.value.value
    columns["baseline_build"] = verdict.baseline or None
    columns["repetitions"] = verdict.pairs
    if figures is not None:
        fresh = verdict.fresh_pairs > 0
        medians = figures.medians(verdict.query, verdict.metric, fresh)
        columns["candidate"], columns["baseline"] = medians
        if verdict.metric == CPU and medians != (None, None):
            columns["basis"] = figures.bases[verdict.query]
    return columns


def earlier(
    session: Session, night: Night, limit: int, queries: Collection[str] | None = None
) -> list[list[QueryVerdict]]:
    """Return the verdicts of the last nights that are comparable and were judged, oldest first.

    Builds on demand and settings are not among them: what a person tried is nothing to learn from.
    """
    judged = select(VerdictRow.id).where(
        VerdictRow.night_id == Night.id, VerdictRow.mode == night.mode
    )
    last = (
        select(Night.id)
        .where(
            Night.engine == night.engine,
            Night.workload == night.workload,
            Night.cluster == night.cluster,
            Night.shape == night.shape,
            Night.mode == night.mode,
            Night.dag_id != BUILD_DAG_ID,
            Night.candidate_conf.is_(None),
            Night.started < night.started,
            judged.exists(),
        )
        .order_by(Night.started.desc(), Night.id.desc())
        .limit(limit)
    )
    runs = list(session.scalars(last))[::-1]
    verdicts = verdicts_of(session, runs, night.mode, queries)
    return [verdicts[run] for run in runs]


def verdicts_of(
    session: Session, runs: Sequence[str], mode: str, queries: Collection[str] | None = None
) -> dict[str, list[QueryVerdict]]:
    """Return the verdicts of runs, on all or some queries, by the newest gate that judged each."""
    columns = [getattr(VerdictRow, name) for name in _NAMES.values()]
    wanted = select(*columns).where(VerdictRow.night_id.in_(runs), VerdictRow.mode == mode)
    if queries is not None:
        wanted = wanted.where(VerdictRow.query.in_(queries))
    rows = session.execute(wanted.order_by(VerdictRow.id)).all()
    newest: dict[str, int] = {}
    for row in rows:
        newest[row.night_id] = max(newest.get(row.night_id, 0), row.gate_version)
    found: dict[str, list[QueryVerdict]] = {run: [] for run in runs}
    for row in rows:
        if row.gate_version == newest[row.night_id]:
            found[row.night_id].append(_verdict(row))
    return found


def _verdict(row: Any) -> QueryVerdict:
    values = {name: getattr(row, column) for name, column in _NAMES.items()}
    return QueryVerdict(
        **{
            **values,
            "value": Value(values["value"]),
            "baseline": values["baseline"] or "",
            "pairs": values["pairs"] or 0,
            "fresh_pairs": values["fresh_pairs"] or 0,
        }
    )


__all__ = ["columns_of", "earlier", "verdicts_of"]
