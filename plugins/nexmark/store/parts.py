"""The parts of a repetition in the store: operators, stages and others."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict

from sqlalchemy import select
from sqlalchemy.orm import Session

from nexmark.attribution.explained import Observed, Plan
from nexmark.measure.executed_plan import Part
from nexmark.model import Basis, Status
from nexmark.store.table_rows import PartRow, PlanRow, RepetitionRow

_KEPT = ("number", "stage", "basis", "cpu_s_per_mevent", "wall_s")
_COLUMNS = (
    *("id", "arm", "events", "steady_events", *_KEPT),
    *("formulation", "confs", "plan_id", "parts_problem"),
)


def part_rows(repetition_id: int, parts: Sequence[Part]) -> list[PartRow]:
    """Return the parts of a repetition as rows."""
    return [
        PartRow(repetition_id=repetition_id, **(asdict(part) | {"covers": list(part.covers)}))
        for part in parts
    ]


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
    columns = [getattr(RepetitionRow, name) for name in _COLUMNS]
    where = (
        RepetitionRow.night_id == run,
        RepetitionRow.query == query,
        RepetitionRow.arm.in_(arms),
        RepetitionRow.status == Status.OK,
    )
    order = (RepetitionRow.stage, RepetitionRow.number)
    rows = session.execute(select(*columns).where(*where).order_by(*order)).all()
    parts = read_parts(session, [row.id for row in rows])
    plans = _plans(session, {row.plan_id for row in rows if row.plan_id})
    found: dict[str, list[Observed]] = {arm: [] for arm in arms}
    for row in rows:
        events = row.steady_events if row.basis == Basis.STEADY else row.events
        if events and row.cpu_s_per_mevent and row.wall_s:
            one = Observed(
                **{name: getattr(row, name) for name in _KEPT},
                events=events,
                plan=plans.get(row.plan_id),
                formulation=row.formulation or "",
                confs={str(key): str(value) for key, value in dict(row.confs or {}).items()},
                parts=parts.get(row.id, ()),
                problem=row.parts_problem,
            )
            found[row.arm].append(one)
    return found


def _plans(session: Session, identities: Iterable[str]) -> dict[str, Plan]:
    statement = select(PlanRow).where(PlanRow.id.in_(list(identities)))
    return {
        row.id: Plan(row.text, row.skeleton, row.skeleton_hash)
        for row in session.scalars(statement)
    }
