"""What a repetition is made of, in the store: operators, stages, and what else was measured."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict
from typing import Any

from sqlalchemy import select
from sqlalchemy.orm import Session

from nexmark.attribution.observed import Observed, Plan
from nexmark.measure.operator_times import Part
from nexmark.store import models
from nexmark.store.models import PartRow, Repetition
from nexmark.store.paired import STEADY
from nexmark.store.records import OK

_COLUMNS = (
    *("id", "arm", "number", "stage", "basis", "events", "steady_events", "cpu_s_per_mevent"),
    *("wall_s", "formulation", "confs", "plan_id", "parts_problem"),
)


def part_rows(repetition_id: int, parts: Sequence[Part]) -> list[PartRow]:
    """Return the parts of a repetition as rows."""
    rows = []
    for part in parts:
        fields = asdict(part)
        fields["covers"] = list(part.covers)
        rows.append(PartRow(repetition_id=repetition_id, **fields))
    return rows


def read_parts(session: Session, repetitions: Iterable[int]) -> dict[int, tuple[Part, ...]]:
    """Return the parts of repetitions, by the id of the repetition, each in the order of places."""
    where = PartRow.repetition_id.in_(list(repetitions))
    columns = [getattr(PartRow, name) for name in ("repetition_id", *Part.__dataclass_fields__)]
    statement = select(*columns).where(where).order_by(PartRow.repetition_id, PartRow.place)
    found: dict[int, list[Part]] = {}
    for identity, *values in session.execute(statement):
        fields = dict(zip(Part.__dataclass_fields__, values, strict=True))
        fields["covers"] = tuple(fields["covers"])
        found.setdefault(identity, []).append(Part(**fields))
    return {identity: tuple(parts) for identity, parts in found.items()}


def read_observed(
    session: Session, run: str, query: str, arms: Sequence[str]
) -> dict[str, list[Observed]]:
    """Return the repetitions of a query that count, by arm."""
    columns = [getattr(Repetition, name) for name in _COLUMNS]
    where = (
        Repetition.night_id == run,
        Repetition.query == query,
        Repetition.arm.in_(arms),
        Repetition.status == OK,
    )
    order = (Repetition.stage, Repetition.number)
    rows = session.execute(select(*columns).where(*where).order_by(*order)).all()
    parts = read_parts(session, [row.id for row in rows])
    plans = _plans(session, {row.plan_id for row in rows if row.plan_id})
    found: dict[str, list[Observed]] = {arm: [] for arm in arms}
    for row in rows:
        events = row.steady_events if row.basis == STEADY else row.events
        if events and row.cpu_s_per_mevent and row.wall_s:
            found[row.arm].append(_observed(row, events, plans, parts.get(row.id, ())))
    return found


def _observed(row: Any, events: int, plans: dict[str, Plan], parts: tuple[Part, ...]) -> Observed:
    return Observed(
        number=row.number,
        stage=row.stage,
        basis=row.basis,
        events=events,
        cpu_s_per_mevent=row.cpu_s_per_mevent,
        wall_s=row.wall_s,
        plan=plans.get(row.plan_id),
        formulation=row.formulation or "",
        confs={str(key): str(value) for key, value in dict(row.confs or {}).items()},
        parts=parts,
        problem=row.parts_problem,
    )


def _plans(session: Session, identities: Iterable[str]) -> dict[str, Plan]:
    statement = select(models.Plan).where(models.Plan.id.in_(list(identities)))
    return {
        row.id: Plan(row.text, row.skeleton, row.skeleton_hash)
        for row in session.scalars(statement)
    }


__all__ = ["part_rows", "read_observed", "read_parts"]
