"""A night as the gate takes it, and its repetitions as the attribution does, made of raw rows.

And the gate's verdicts as rows, and rows as verdicts again.

CPU time is taken on one basis for a query: the steady state where every repetition of both arms
has it, else the whole application. A wrong result in either arm makes the query invalid, and so
does a candidate that does not go on from the checkpoints of the baseline, or back. A first pair
that did not run leaves its place empty, with the reason.
"""

import math
from collections.abc import Collection, Iterable, Sequence
from dataclasses import asdict, fields
from typing import TYPE_CHECKING, Any, TypeVar

from sqlalchemy import Select, select
from sqlalchemy.orm import Session, defer

from nexmark.attribution.explained import Observed, Plan
from nexmark.measure.executed_plan import Part
from nexmark.model import (
    ARMS,
    COMPARABLE,
    JUDGED,
    METRICS,
    Arm,
    Basis,
    Metric,
    Mode,
    Stage,
    Status,
    Value,
    grouped,
    of_newest_gate,
    one_basis,
)
from nexmark.store.table_rows import (
    CanaryRow,
    CompatibilityRow,
    NightRow,
    PartRow,
    RepetitionRow,
    ValidationRow,
    VerdictRow,
)
from nexmark.verdict import measured_night as gate

if TYPE_CHECKING:
    from nexmark.store.reading import Reader

_OfArms = TypeVar("_OfArms", RepetitionRow, ValidationRow)
_LARGE = (RepetitionRow.batch_list, RepetitionRow.confs, RepetitionRow.latency)


def read_night(
    session: Session,
    night: NightRow,
    arms: tuple[str, str] = ARMS,
    queries: Sequence[str] | None = None,
) -> gate.MeasuredNight:
    """Return a night, or some queries of it; the first arm is the candidate."""
    wanted = list(night.queries) if queries is None else list(queries)

    def of_night(row: type[_OfArms]) -> Select[_OfArms]:
        found = select(row).where(row.night_id == night.id, row.arm.in_(arms))
        return found if queries is None else found.where(row.query.in_(queries))

    row = RepetitionRow
    repetitions = of_night(row).where(row.stage.in_(JUDGED)).options(*map(defer, _LARGE))
    order = (row.query, row.stage, row.number, row.arm.desc())
    rows = session.scalars(repetitions.order_by(*order)).all()
    of_query = (ValidationRow.query, ValidationRow.arm.desc())
    validations = session.scalars(of_night(ValidationRow).order_by(*of_query)).all()
    by_query = grouped(rows, lambda row: row.query)
    places = {query: place for place, query in enumerate(wanted)}
    measured = [
        found
        for query, own in sorted(by_query.items(), key=lambda x: places.get(x[0], len(places)))
        for metric in METRICS.values()
        if (found := _measured(metric, query, own, arms)) is not None
    ]
    readings = select(CanaryRow).where(CanaryRow.night_id == night.id)
    canary = gate.canaries_of(
        (x.metric, x.host, x.group, x.moment, math.nan if x.value is None else x.value)
        for x in session.scalars(readings.order_by(CanaryRow.taken, CanaryRow.id))
    )
    with_canary = {reading.group for reading in canary}
    return gate.MeasuredNight(
        night.id,
        tuple(measured),
        canary,
        expected=tuple(wanted),
        asked=night.repetitions,
        invalid={
            **(_broken_by_upgrade(session, night.id, wanted) if arms == ARMS else {}),
            **_invalid(rows, validations, arms),
        },
        missing={
            row.query: f"{row.name}: {row.reason}"
            for row in reversed(rows)
            if (row.status, row.stage) == (Status.FAILED, Stage.FIRST)
        },
        baseline={query: str(build) for query, build in (night.baselines or {}).items()},
        groups={query: query for query in wanted if query in with_canary},
        teaches=night.teaches,
        candidate=night.build_id if arms == ARMS else "",
    )


def _measured(
    metric: Metric, query: str, rows: Sequence[RepetitionRow], arms: tuple[str, str]
) -> gate.Measured | None:
    """Return a metric of a query; None where it was not measured, or is 0 and must not be."""
    used = [row for row in rows if row.ok]
    basis = ""
    if metric.bases and used:
        steady = metric.column(Basis.STEADY)
        basis = one_basis(row.figure(steady) for row in used)
    column = metric.column(basis)
    values = [row.figure(column) for row in used]
    if metric.positive and not all((value or 0) > 0 for value in values):
        return None
    if all(value is None for value in values):
        return None
    first, fresh = (
        gate.pairs_of(((x.number, x.arm, x.figure(column)) for x in used if x.stage == stage), arms)
        for stage in JUDGED
    )
    return gate.Measured(query, metric.name, first, fresh, basis)


def _invalid(
    rows: Sequence[RepetitionRow], validations: Sequence[ValidationRow], arms: tuple[str, str]
) -> dict[str, str]:
    """Return why a query is not proven right; the baseline was verified when it was accepted."""
    reasons: dict[str, str] = {}
    for row in validations:
        if not row.success:
            why = " | ".join(map(str, row.failures)) or "its result is wrong"
            whose = "" if row.arm == arms[0] else f"{row.arm}: "
            reasons.setdefault(row.query, whose + why)
    verified = {row.query for row in validations if row.arm == Arm.CANDIDATE}
    for one in rows:
        if one.status == Status.INVALID:
            reasons.setdefault(one.query, f"{one.name}: {one.reason}")
        elif one.ok and one.arm == Arm.CANDIDATE and one.query not in verified:
            reasons.setdefault(one.query, "its result was not verified")
    return reasons


def _broken_by_upgrade(session: Session, run: str, queries: Iterable[str]) -> dict[str, str]:
    row = CompatibilityRow
    query = select(row).where(row.night_id == run, row.red, row.query.in_(list(queries)))
    return {row.query: f"{row.outcome}: {row.reason}" for row in session.scalars(query)}


_KEPT = ("number", "stage", "basis", "cpu_s_per_mevent", "wall_s")


def _part(row: PartRow) -> Part:
    fields = {name: getattr(row, name) for name in Part.__dataclass_fields__}
    return Part(**{**fields, "covers": tuple(row.covers)})


def observed(store: "Reader", run: str, query: str) -> dict[str, list[Observed]]:
    """Return by arm the repetitions of a query that count, with what a change may be due to."""
    every = store.repetitions(run, [query], leave_out=("batch_list",))
    rows = [row for row in every if row.counts and row.arm in ARMS]
    known = store.plans(row.plan_id for row in rows if row.plan_id)
    plans = {key: Plan(x.text, x.skeleton, x.skeleton_hash) for key, x in known.items()}
    where = PartRow.repetition_id.in_([row.id for row in rows])
    with store.reading() as session:
        in_order = session.scalars(select(PartRow).where(where).order_by(PartRow.place))
        parts = grouped(in_order, lambda part: part.repetition_id)
    found: dict[str, list[Observed]] = {arm: [] for arm in ARMS}
    for row in rows:
        events = row.steady_events if row.basis == Basis.STEADY else row.events
        if events and row.cpu_s_per_mevent and row.wall_s:
            one = Observed(
                **{name: getattr(row, name) for name in _KEPT},
                events=events,
                plan=plans[row.plan_id] if row.plan_id else None,
                formulation=row.formulation or "",
                confs={str(key): str(value) for key, value in (row.confs or {}).items()},
                parts=tuple(map(_part, parts.get(row.id, ()))),
                problem=row.parts_problem,
            )
            found[row.arm].append(one)
    return found


_OTHERWISE_NAMED = {"night": "night_id", "baseline": "baseline_build"}
_NAMES = {
    field.name: _OTHERWISE_NAMED.get(field.name, field.name)
    for field in fields(gate.QueryVerdict)
    if field.name not in ("figures", "build")
}


def columns_of(verdict: gate.QueryVerdict, night: gate.MeasuredNight | None) -> dict[str, Any]:
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
) -> list[list[gate.QueryVerdict]]:
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
    session: Session, runs: Sequence[str], mode: Mode, queries: Collection[str] | None = None
) -> dict[str, list[gate.QueryVerdict]]:
    """Return the verdicts of runs, on all or some queries, by the newest gate that judged each."""
    wanted = select(*verdict_columns()).join(NightRow)
    wanted = wanted.where(VerdictRow.night_id.in_(runs), VerdictRow.mode == mode)
    if queries is not None:
        wanted = wanted.where(VerdictRow.query.in_(queries))
    found: dict[str, list[gate.QueryVerdict]] = {run: [] for run in runs}
    for row in of_newest_gate(session.execute(wanted.order_by(VerdictRow.id))):
        found[row.night_id].append(verdict_of(row))
    return found


def verdict_columns() -> list[Any]:
    """Return the columns of verdicts and of their nights that ``verdict_of`` needs."""
    return [*(getattr(VerdictRow, name) for name in _NAMES.values()), NightRow.build_id]


def verdict_of(row: Any) -> gate.QueryVerdict:
    """Return a row of the ``verdict_columns`` as the gate gave it."""
    values = {name: getattr(row, column) for name, column in _NAMES.items()}
    values["value"] = Value(values["value"])
    values["baseline"] = values["baseline"] or ""
    for name in ("pairs", "fresh_pairs"):
        values[name] = values[name] or 0
    return gate.QueryVerdict(**values, build=row.build_id)
