"""One night and one query in it, as deep as the rows go: arms, batches, plans."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from sqlalchemy import select

from nexmark.store.models import Plan, Repetition
from nexmark.store.reading import Reader

Row = Any
"""A row of named columns."""

_FIGURES = (
    *("id", "query", "arm", "stage", "number", "position", "status", "reason", "formulation"),
    *("wall_s", "cores", "basis", "cpu_s_per_mevent", "batch_ms_p99", "start", "end"),
    *("cpu_s_per_mevent_steady", "cpu_s_per_mevent_application"),
    *("state_rows_max", "state_bytes_max", "plan_id", "plan_skeleton_hash", "build"),
    *("spark_version", "application_id", "event_log_path"),
)


def arms(store: Reader, run: str, queries: Collection[str] | None = None) -> Sequence[Row]:
    """Return the repetitions of a night, of all queries or some, without lists of batches."""
    columns = [getattr(Repetition, name) for name in _FIGURES]
    query = select(*columns).where(Repetition.night_id == run)
    if queries is not None:
        query = query.where(Repetition.query.in_(queries))
    order = (Repetition.query, Repetition.stage, Repetition.number, Repetition.arm.desc())
    with store.reading() as session:
        return session.execute(query.order_by(*order)).all()


def batches(store: Reader, run: str, query: str) -> Sequence[Row]:
    """Return arm, number, batches and confs of the first repetitions that ran."""
    columns = (Repetition.arm, Repetition.number, Repetition.batch_list, Repetition.confs)
    wanted = (
        select(*columns)
        .where(Repetition.night_id == run, Repetition.query == query, Repetition.stage == 1)
        .where(Repetition.batch_list.is_not(None))
        .order_by(Repetition.arm, Repetition.number)
    )
    with store.reading() as session:
        return session.execute(wanted).all()


def plan_texts(store: Reader, plans: Collection[str]) -> Mapping[str, str]:
    """Return the texts of plans by their id."""
    with store.reading() as session:
        found = session.execute(select(Plan.id, Plan.text).where(Plan.id.in_(plans))).all()
    return dict(found)


__all__ = ["arms", "batches", "plan_texts"]
