"""Verdicts as rows of the store, and rows as verdicts again."""

from collections.abc import Collection, Sequence
from dataclasses import asdict, fields
from typing import Any

from sqlalchemy import select
from sqlalchemy.orm import Session

from nexmark.model import COMPARABLE, Value, of_newest_gate
from nexmark.store.table_rows import NightRow, VerdictRow
from nexmark.verdict.measured_night import MeasuredNight, QueryVerdict

_OTHERWISE_NAMED = {"night": "night_id", "baseline": "baseline_build"}
_NAMES = {
    field.name: _OTHERWISE_NAMED.get(field.name, field.name)
    for field in fields(QueryVerdict)
    if field.name != "figures"
}


def columns_of(verdict: QueryVerdict, night: MeasuredNight | None) -> dict[str, Any]:
    """Return a verdict's columns without the night's; ``night`` has the pairs of its figures."""
    columns = {column: getattr(verdict, name) for name, column in _NAMES.items()}
    del columns["night_id"]
    columns["value"] = verdict.value.value
    if verdict.figures:
        of_pairs = dict.fromkeys(("baseline_build", "pairs", "fresh_pairs"))
        return {**columns, **of_pairs, **asdict(verdict.figures)}
    columns["baseline_build"] = verdict.baseline or None
    columns["repetitions"] = verdict.pairs
    own = [x for x in night.measured if (x.query, x.metric) == verdict.key] if night else []
    for one in own:
        medians = one.medians(verdict.fresh_pairs > 0)
        columns["candidate"], columns["baseline"] = medians
        if medians != (None, None):
            columns["basis"] = one.basis or None
    return columns


def earlier(
    session: Session, night: NightRow, limit: int, queries: Collection[str] | None = None
) -> list[list[QueryVerdict]]:
    """Return the verdicts of the last comparable nights that teach, oldest first, if judged."""
    judged = select(VerdictRow.id).where(
        VerdictRow.night_id == NightRow.id, VerdictRow.mode == night.mode
    )
    last = (
        select(NightRow.id)
        .where(*(getattr(NightRow, name) == getattr(night, name) for name in COMPARABLE))
        .where(NightRow.teaches, NightRow.started < night.started)
        .where(judged.exists())
        .order_by(NightRow.started.desc(), NightRow.id.desc())
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
    found: dict[str, list[QueryVerdict]] = {run: [] for run in runs}
    for row in of_newest_gate(session.execute(wanted.order_by(VerdictRow.id))):
        found[row.night_id].append(_verdict(row))
    return found


def _verdict(row: Any) -> QueryVerdict:
    values = {name: getattr(row, column) for name, column in _NAMES.items()}
    values["value"] = Value(values["value"])
    values["baseline"] = values["baseline"] or ""
    for name in ("pairs", "fresh_pairs"):
        values[name] = values[name] or 0
    return QueryVerdict(**values)
