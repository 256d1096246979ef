"""A night as the gate takes it, and its repetitions as the attribution does, made of raw rows.

CPU time is taken on one basis for a query: the steady state where every repetition of both arms
has it, else the whole application. A wrong result in either arm makes the query invalid, and so
does a candidate that does not go on from the checkpoints of the baseline, or back. A first pair
that did not run leaves its place empty, with the reason.
"""

import math
from collections.abc import Collection, Iterable, Sequence
from typing import TYPE_CHECKING, TypeVar

from sqlalchemy import Select, select
from sqlalchemy.orm import Session, defer

from nexmark.attribution.explained import Observed, Plan
from nexmark.measure.executed_plan import Part
from nexmark.model import (
    ARMS,
    FIRST_ROUND,
    METRICS,
    PROFILED,
    Arm,
    Basis,
    Metric,
    Mode,
    Status,
    Value,
    common_basis,
    grouped,
)
from nexmark.store.table_rows import (
    CanaryRow,
    CompatibilityRow,
    NightRow,
    PartRow,
    PlanRow,
    RepetitionRow,
    ValidationRow,
    VerdictRow,
)
from nexmark.store.verdict_rows import by_newest_gate, select_verdicts, verdict_of
from nexmark.verdict import measured_night as gate
from nexmark.verdict.left_open import ADDED_UP, still_open
from nexmark.verdict.verdict import Verdict

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
        rows = select(row).where(row.night_id == night.id, row.arm.in_(arms))
        return rows if queries is None else rows.where(row.query.in_(queries))

    row = RepetitionRow
    repetitions = of_night(row).where(row.stage != PROFILED).options(*map(defer, _LARGE))
    order = (row.query, row.stage, row.number, row.arm.desc())
    rows = session.scalars(repetitions.order_by(*order)).all()
    of_query = (ValidationRow.query, ValidationRow.arm.desc())
    validations = session.scalars(of_night(ValidationRow).order_by(*of_query)).all()
    by_query = grouped(rows, lambda row: row.query)
    before = _left_open(session, night, by_query) if arms == ARMS else {}
    places = {query: place for place, query in enumerate(wanted)}
    measured = [
        one
        for query in sorted(by_query, key=lambda query: places.get(query, len(places)))
        for metric in METRICS.values()
        if (one := _measured(metric, query, by_query[query], arms, before.get(query, ())))
        is not None
    ]
    readings = select(CanaryRow).where(CanaryRow.night_id == night.id)
    canary = gate.canaries_of(
        (row.metric, row.host, row.group, row.moment, math.nan if row.value is None else row.value)
        for row in session.scalars(readings.order_by(CanaryRow.taken, CanaryRow.id))
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
            if (row.status, row.stage) == (Status.FAILED, FIRST_ROUND)
        },
        baseline={query: str(build) for query, build in (night.baselines or {}).items()},
        groups={query: query for query in wanted if query in with_canary},
        teaches=night.teaches,
        candidate=night.build_id if arms == ARMS else "",
    )


def _left_open(
    session: Session, night: NightRow, queries: Collection[str]
) -> dict[str, list[RepetitionRow]]:
    """Return by query what earlier nights measured of the same two builds, and left undecided.

    These nights are of the same place and shape, with the same confs of the candidate.
    """
    if night.mode != Mode.PAIRED:
        return {}
    earlier_nights = session.scalars(
        select(NightRow)
        .where(night.is_comparable(), NightRow.build_id == night.build_id)
        .where(NightRow.started < night.started, NightRow.rows_pruned.is_(None))
        .order_by(NightRow.started.desc(), NightRow.id.desc())
        .limit(ADDED_UP)
    ).all()
    compared = [other for other in earlier_nights if other.candidate_conf == night.candidate_conf]
    values = _values(session, [other.id for other in compared], queries)
    against = night.baselines or {}
    open_nights = {
        query: still_open(
            (values.get((other.id, query)), other.id)
            for other in compared
            if query in other.queries and (other.baselines or {}).get(query) == against.get(query)
        )
        for query in queries
    }
    rows: dict[str, list[RepetitionRow]] = {}
    for row in _right_rows(session, {run for runs in open_nights.values() for run in runs}):
        if row.night_id in open_nights.get(row.query, ()):
            rows.setdefault(row.query, []).append(row)
    return rows


def _values(
    session: Session, runs: Collection[str], queries: Collection[str]
) -> dict[tuple[str, str], Value]:
    """Return the deciding verdict of each query in each run, by the newest gate."""
    row = VerdictRow
    wanted = select(row.night_id, row.query, row.value).where(
        row.night_id.in_(runs), row.query.in_(queries), row.decides, by_newest_gate()
    )
    return {(run, query): Value(value) for run, query, value in session.execute(wanted)}


def _right_rows(session: Session, runs: Collection[str]) -> Sequence[RepetitionRow]:
    row = RepetitionRow
    wanted = select(row).where(row.night_id.in_(runs), row.arm.in_(ARMS))
    wanted = wanted.where(row.stage != PROFILED, row.status == Status.OK)
    in_order = wanted.order_by(row.night_id, row.query, row.stage, row.number)
    return session.scalars(in_order.options(*map(defer, _LARGE))).all()


def _measured(
    metric: Metric,
    query: str,
    rows: Sequence[RepetitionRow],
    arms: tuple[str, str],
    before: Sequence[RepetitionRow],
) -> gate.Measured | None:
    """Return a metric of a query; None where it was not measured, or is 0 and must not be.

    Args:
        metric: The metric.
        query: Its query.
        rows: The repetitions of the night.
        arms: The candidate, and what it is compared with.
        before: The right repetitions of earlier nights that left the query undecided.
    """
    tonight = [row for row in rows if row.ok]
    used = [*tonight, *before] if tonight else []
    basis = None
    if metric.bases and used:
        steady = metric.column(Basis.STEADY)
        basis = common_basis(row.figure(steady) for row in used)
    column = metric.column(basis)
    values = [row.figure(column) for row in used]
    if metric.positive and not all((value or 0) > 0 for value in values):
        return None
    if all(value is None for value in values):
        return None

    def rounds(of_night: Iterable[RepetitionRow]) -> list[tuple[gate.Pair, ...]]:
        figures = ((row.stage, row.number, row.arm, row.figure(column)) for row in of_night)
        return gate.rounds_of(figures, arms)

    first, *later = rounds(tonight)
    nights = grouped(before, lambda row: row.night_id).values()
    earlier_pairs = (pair for night in nights for pairs in rounds(night) for pair in pairs)
    return gate.Measured(query, metric.name, first, tuple(later), basis, tuple(earlier_pairs))


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


def _part(row: PartRow) -> Part:
    return Part(
        place=row.place,
        kind=row.kind,
        name=row.name,
        cpu_s=row.cpu_s,
        parent=row.parent,
        depth=row.depth,
        stage=row.stage,
        covers=tuple(row.covers),
        metrics=row.metrics,
    )


def plan_of(row: PlanRow) -> Plan:
    """Return the plan of a row as the attribution takes it."""
    return Plan(row.text, row.skeleton, row.skeleton_hash)


def observed(store: "Reader", run: str, query: str) -> dict[str, list[Observed]]:
    """Return by arm the repetitions of a query that count, with what a change may be due to."""
    every = store.repetitions(run, [query], leave_out=("batch_list",))
    rows = [row for row in every if row.counts and row.arm in ARMS]
    known = store.plans(row.plan_id for row in rows if row.plan_id)
    plans = {key: plan_of(row) for key, row in known.items()}
    where = PartRow.repetition_id.in_([row.id for row in rows])
    with store.reading() as session:
        in_order = session.scalars(select(PartRow).where(where).order_by(PartRow.place))
        parts = grouped(in_order, lambda part: part.repetition_id)
    by_arm: dict[str, list[Observed]] = {arm: [] for arm in ARMS}
    for row in rows:
        events = row.steady_events if row.basis == Basis.STEADY else row.events
        if events and row.cpu_s_per_mevent and row.wall_s:
            one = Observed(
                number=row.number,
                stage=row.stage,
                basis=row.basis or Basis.APPLICATION,
                events=events,
                cpu_s_per_mevent=row.cpu_s_per_mevent,
                wall_s=row.wall_s,
                plan=plans[row.plan_id] if row.plan_id else None,
                formulation=row.formulation or "",
                confs={str(key): str(value) for key, value in (row.confs or {}).items()},
                parts=tuple(map(_part, parts.get(row.id, ()))),
                problem=row.parts_problem,
            )
            by_arm[row.arm].append(one)
    return by_arm


def earlier(
    session: Session, night: NightRow, limit: int, queries: Collection[str] | None = None
) -> list[list[Verdict]]:
    """Return the verdicts of the last comparable nights that teach, oldest first, if judged."""
    judged = select(VerdictRow.id).where(
        VerdictRow.night_id == NightRow.id, VerdictRow.mode == night.mode
    )
    last = (
        select(NightRow.id)
        .where(night.is_comparable())
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
) -> dict[str, list[Verdict]]:
    """Return the verdicts of runs, on all or some queries, by the newest gate that judged each."""
    wanted = select_verdicts().where(VerdictRow.night_id.in_(runs), VerdictRow.mode == mode)
    if queries is not None:
        wanted = wanted.where(VerdictRow.query.in_(queries))
    wanted = wanted.where(by_newest_gate()).order_by(VerdictRow.id)
    verdicts: dict[str, list[Verdict]] = {run: [] for run in runs}
    for row, build in session.execute(wanted):
        verdicts[row.night_id].append(verdict_of(row, build))
    return verdicts
