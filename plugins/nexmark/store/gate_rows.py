"""Make of raw rows the night that the gate judges, and the repetitions that attribution explains.

The CPU time of a query has one basis: the steady state if every repetition of both arms has one,
else the whole application. A query is invalid if its result is wrong in either arm, or if one build
cannot go on from the checkpoints of the other build. A repetition of the first round that failed is
missing, with the reason.
"""

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
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
    TASK_CPU,
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
from nexmark.verdict.left_open import LOOKED_AT, family_of, still_open
from nexmark.verdict.verdict import Verdict

if TYPE_CHECKING:
    from nexmark.store.reading import Reader

_OfArms = TypeVar("_OfArms", RepetitionRow, ValidationRow)
_LARGE = (RepetitionRow.batch_list, RepetitionRow.confs, RepetitionRow.latency)
"""The columns that the gate does not need and that are large: they are not read."""


def read_night(
    session: Session,
    night: NightRow,
    arms: tuple[str, str] = ARMS,
    queries: Sequence[str] | None = None,
) -> gate.MeasuredNight:
    """Return a night, or some queries of it, as the gate judges it.

    Args:
        session: A session of the results database.
        night: The row of the night.
        arms: The arm that is judged, and the arm that it is compared with.
        queries: The queries; None for all queries of the night.
    """
    wanted = list(night.queries) if queries is None else list(queries)

    def of_night(row: type[_OfArms]) -> Select[_OfArms]:
        statement = select(row).where(row.night_id == night.id, row.arm.in_(arms))
        return statement if queries is None else statement.where(row.query.in_(queries))

    row = RepetitionRow
    repetitions = of_night(row).where(row.stage != PROFILED).options(*map(defer, _LARGE))
    order = (row.query, row.stage, row.number, row.arm.desc())
    rows = session.scalars(repetitions.order_by(*order)).all()
    of_query = (ValidationRow.query, ValidationRow.arm.desc())
    validations = session.scalars(of_night(ValidationRow).order_by(*of_query)).all()
    by_query = grouped(rows, lambda row: row.query)
    before, family = _left_open(session, night, by_query) if arms == ARMS else ({}, 0)
    places = {query: place for place, query in enumerate(wanted)}
    measurements = (
        _measured(metric, query, by_query[query], arms, before.get(query, ()))
        for query in sorted(by_query, key=lambda query: places.get(query, len(places)))
        for metric in METRICS.values()
    )
    measured = [measurement for measurement in measurements if measurement is not None]
    of_canary = select(CanaryRow).where(CanaryRow.night_id == night.id)
    readings = session.scalars(of_canary.order_by(CanaryRow.taken, CanaryRow.id))
    canary = gate.canaries_of(
        (
            reading.metric,
            reading.host,
            reading.group,
            reading.moment,
            math.nan if reading.value is None else reading.value,
        )
        for reading in readings
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
        family=family,
        aged=_aged(rows, before, arms),
        warmup=int(str(night.workload_spec.get("warmup_batches", 0))),
    )


def _aged(
    rows: Sequence[RepetitionRow],
    before: Mapping[str, Sequence[RepetitionRow]],
    arms: tuple[str, str],
) -> dict[str, tuple[gate.Aged, ...]]:
    """Return by query the samples of the pairs of a soak night; {} for any other night.

    Args:
        rows: The repetitions of the night.
        before: The right repetitions of earlier nights that left a query undecided, by query. They
            come first, and count if the night has right repetitions of the query in both arms.
        arms: The arm that is judged, and the arm that it is compared with.
    """
    right = {(row.query, row.arm) for row in rows if row.ok and row.ageing}
    whole = [query for query in before if all((query, arm) in right for arm in arms)]
    counting = [row for query in whole for row in before[query]]
    pairs: dict[tuple[str, str, int, int], dict[str, Sequence[gate.Sample] | None]] = {}
    for row in (*counting, *rows):
        samples = row.ageing if row.ok else None
        pair = (row.query, row.night_id, row.stage, row.number)
        pairs.setdefault(pair, {})[row.arm] = samples
    by_query: dict[str, tuple[gate.Aged, ...]] = {}
    for (query, _, stage, number), by_arm in pairs.items():
        candidate, baseline = map(by_arm.get, arms)
        if candidate or baseline:
            aged = gate.Aged(stage, number, candidate, baseline)
            by_query[query] = (*by_query.get(query, ()), aged)
    return by_query


def _left_open(
    session: Session, night: NightRow, queries: Collection[str]
) -> tuple[dict[str, list[RepetitionRow]], int]:
    """Return by query the right repetitions of earlier nights that left the query undecided.

    These nights measured the same two builds on the same engine, workload and cluster, in the same
    shape and with the same confs of the candidate. The second value is the number of tests that
    share the error of the night, 0 if there is no such night.
    """
    if night.mode != Mode.PAIRED:
        return {}, 0
    earlier_nights = session.scalars(
        select(NightRow)
        .where(night.is_comparable(), NightRow.build_id == night.build_id)
        .where(NightRow.started < night.started, NightRow.rows_pruned.is_(None))
        .order_by(NightRow.started.desc(), NightRow.id.desc())
        .limit(LOOKED_AT)
    ).all()
    same_confs = [row for row in earlier_nights if row.candidate_conf == night.candidate_conf]
    values = _values(session, [row.id for row in same_confs], queries)
    baselines = night.baselines or {}
    open_nights = {
        query: still_open(
            (values.get((row.id, query)), row.id)
            for row in same_confs
            if query in row.queries and (row.baselines or {}).get(query) == baselines.get(query)
        )
        for query in queries
    }
    rows: dict[str, list[RepetitionRow]] = {}
    for row in _right_rows(session, {run for runs in open_nights.values() for run in runs}):
        if row.night_id in open_nights.get(row.query, ()):
            rows.setdefault(row.query, []).append(row)
    queries_of = {row.id: len(row.queries) for row in same_confs}
    return rows, family_of([queries_of[run] for run in runs] for runs in open_nights.values())


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
    """Return the repetitions of some runs that are right, without those with a flight recorder."""
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
    """Return a metric of a query; None if it was not measured, or is 0 and has to be positive.

    Args:
        metric: The metric.
        query: The query.
        rows: Its repetitions in the night.
        arms: The arm that is judged, and the arm that it is compared with.
        before: The right repetitions of earlier nights that left the query undecided.
    """
    tonight = [row for row in rows if row.ok]
    if metric.name == TASK_CPU:  # nights of before it was measured do not take it away
        before = [row for row in before if row.figure(TASK_CPU)]
    compared = [*tonight, *before] if tonight else []
    basis = None
    if metric.bases and compared:
        steady = metric.column(Basis.STEADY)
        basis = common_basis(row.figure(steady) for row in compared)
    column = metric.column(basis)
    values = [row.figure(column) for row in compared]
    if metric.name == TASK_CPU and compared:  # of the steady state where the repetition has one
        bases = {row.basis for row in compared}
        if len(bases) > 1:
            return None
        basis = Basis(of_all) if (of_all := bases.pop()) else None
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
    """Return by query why its result is not proven to be right.

    Only the candidate needs a verification: the baseline was verified when it was accepted.
    """
    reasons: dict[str, str] = {}
    for validation in validations:
        if not validation.success:
            failures = " | ".join(map(str, validation.failures)) or "its result is wrong"
            arm = "" if validation.arm == arms[0] else f"{validation.arm}: "
            reasons.setdefault(validation.query, arm + failures)
    verified = {row.query for row in validations if row.arm == Arm.CANDIDATE}
    for row in rows:
        if row.status == Status.INVALID:
            reasons.setdefault(row.query, f"{row.name}: {row.reason}")
        elif row.ok and row.arm == Arm.CANDIDATE and row.query not in verified:
            reasons.setdefault(row.query, "its result was not verified")
    return reasons


def _broken_by_upgrade(session: Session, run: str, queries: Iterable[str]) -> dict[str, str]:
    """Return by query why it would not survive an upgrade to the candidate while it runs."""
    row = CompatibilityRow
    query = select(row).where(row.night_id == run, row.red, row.query.in_(list(queries)))
    return {row.query: f"{row.outcome}: {row.reason}" for row in session.scalars(query)}


def _part(row: PartRow) -> Part:
    """Return the part of a row for the attribution."""
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
    """Return the plan of a row for the attribution."""
    return Plan(row.text, row.skeleton, row.skeleton_hash)


def observed(store: "Reader", run: str, query: str) -> dict[str, list[Observed]]:
    """Return by arm the repetitions of a query that count, with what may explain a change.

    These are its plan, its formulation, its confs, and the parts of its work.
    """
    every = store.repetitions(run, [query], leave_out=("batch_list",))
    rows = [row for row in every if row.counts and row.arm in ARMS]
    plan_rows = store.plans(row.plan_id for row in rows if row.plan_id)
    plans = {key: plan_of(row) for key, row in plan_rows.items()}
    of_rows = PartRow.repetition_id.in_([row.id for row in rows])
    with store.reading() as session:
        in_order = session.scalars(select(PartRow).where(of_rows).order_by(PartRow.place))
        parts = grouped(in_order, lambda part: part.repetition_id)
    repetitions: dict[str, list[Observed]] = {arm: [] for arm in ARMS}
    for row in rows:
        events = row.steady_events if row.basis == Basis.STEADY else row.events
        if events and row.cpu_s_per_mevent and row.wall_s:
            repetition = Observed(
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
            repetitions[row.arm].append(repetition)
    return repetitions


def earlier(
    session: Session,
    night: NightRow,
    limit: int,
    queries: Collection[str] | None = None,
    metrics: Collection[str] | None = None,
) -> list[list[Verdict]]:
    """Return the verdicts of the last comparable nights that were judged, oldest night first.

    Only nights that teach count.

    Args:
        session: A session of the results database.
        night: The night before which the others were started.
        limit: The largest number of nights.
        queries: The queries whose verdicts are returned; None for all.
        metrics: The metrics by which they are; None for all.
    """
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
    verdicts = verdicts_of(session, runs, night.mode, queries, metrics)
    return [verdicts[run] for run in runs]


def verdicts_of(
    session: Session,
    runs: Sequence[str],
    mode: Mode,
    queries: Collection[str] | None = None,
    metrics: Collection[str] | None = None,
) -> dict[str, list[Verdict]]:
    """Return by run the verdicts of the newest gate that judged it.

    Args:
        session: A session of the results database.
        runs: The ids of the nights.
        mode: How the nights were judged.
        queries: The queries whose verdicts are returned; None for all.
        metrics: The metrics by which they are; None for all.
    """
    wanted = select_verdicts().where(VerdictRow.night_id.in_(runs), VerdictRow.mode == mode)
    if queries is not None:
        wanted = wanted.where(VerdictRow.query.in_(queries))
    if metrics is not None:
        wanted = wanted.where(VerdictRow.metric.in_(metrics))
    wanted = wanted.where(by_newest_gate()).order_by(VerdictRow.id)
    verdicts: dict[str, list[Verdict]] = {run: [] for run in runs}
    for row in session.execute(wanted):
        verdicts[row.night_id].append(verdict_of(row, row.build_id))
    return verdicts
