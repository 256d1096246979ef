"""Reads many nights at a time for the pages: only the columns that a page shows.

Nights are the runs of ``dags``, the DAGs whose runs the person may see. Verdicts are by the newest
version of the gate that judged a night.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple, TypeAlias

from sqlalchemy import ColumnElement, case, func, literal, select, tuple_, union

from nexmark.model import SUITE, Mode, Value, grouped
from nexmark.store.query_history import PLACE
from nexmark.store.reading import Reader
from nexmark.store.table_rows import BuildRow, NightRow, VerdictRow
from nexmark.store.verdict_rows import select_verdicts, verdict_of
from nexmark.verdict.verdict import Verdict


class ListedNight(NamedTuple):
    """The columns of a night that lists of nights show; they mean the same as in ``NightRow``."""

    id: str
    dag_id: str
    run_id: str
    engine: str
    workload: str
    cluster: str
    build_id: str
    mode: Mode
    shape: str
    started: datetime
    grade: str | None
    repetitions: int
    queries: list[str]
    teaches: bool
    directory: str


AnyNight: TypeAlias = NightRow | ListedNight
"""A night with all its columns, or with the columns of a list."""


class MeasuredBuild(NamedTuple):
    """A build that was a candidate or a baseline, with the number of its nights, first and last."""

    id: str
    version: str
    source: str
    first_seen: datetime
    nights: int
    first: datetime
    last: datetime


@dataclass(frozen=True)
class Tally:
    """The deciding verdicts of a night, counted.

    ``values`` counts them by value. ``red`` fail the night, ``known`` would fail it but a person
    accepted them. ``suite`` is the ratio of the whole suite. ``compared``: whether at least one
    verdict has a ratio.
    """

    values: Mapping[Value, int]
    red: int
    known: int
    suite: float | None
    compared: bool = True


class Judged(NamedTuple):
    """A deciding verdict of a night.

    ``bad``: it fails the night unless a person accepted it. ``acceptance`` is the id of the
    acceptance that covers it.
    """

    night: str
    dag: str
    started: datetime
    engine: str
    workload: str
    cluster: str
    build: str
    query: str
    value: Value
    ratio: float | None
    bad: bool
    acceptance: int | None
    shape: str = ""
    mode: Mode = Mode.PAIRED

    @property
    def series(self) -> tuple[str, ...]:
        """What two verdicts have in common if the later one continues the earlier one."""
        return self.dag, *self.place, self.shape, self.mode, self.query

    @property
    def place(self) -> tuple[str, str, str]:
        """Engine, workload and cluster."""
        return self.engine, self.workload, self.cluster


def dag_ids(store: Reader) -> list[str]:
    """Return the DAGs that have nights."""
    with store.reading() as session:
        return list(session.scalars(select(NightRow.dag_id).distinct().order_by(NightRow.dag_id)))


def nights(
    store: Reader, dags: Collection[str], limit: int, offset: int = 0, build: str | None = None
) -> list[ListedNight]:
    """Return nights, the newest first.

    Args:
        store: The results database.
        dags: The DAGs whose runs are returned.
        limit: The largest number of nights.
        offset: How many of the newest nights are left out.
        build: The id of the candidate build; None for nights of all builds.
    """
    columns = (getattr(NightRow, name) for name in ListedNight._fields)
    query = select(*columns).where(NightRow.dag_id.in_(dags))
    if build is not None:
        query = query.where(NightRow.build_id == build)
    order = (NightRow.started.desc(), NightRow.id.desc())
    with store.reading() as session:
        rows = session.execute(query.order_by(*order).limit(limit).offset(offset))
        return [ListedNight._make(row) for row in rows]


def count_nights(store: Reader, dags: Collection[str]) -> int:
    """Return the number of nights."""
    query = select(func.count()).select_from(NightRow).where(NightRow.dag_id.in_(dags))
    with store.reading() as session:
        return session.scalar(query) or 0


def neighbours(store: Reader, night: NightRow) -> tuple[str | None, str | None]:
    """Return the ids of the nights of the same DAG just before and just after a night."""
    same, started = select(NightRow.id).where(NightRow.dag_id == night.dag_id), NightRow.started
    before = same.where(started < night.started).order_by(started.desc()).limit(1)
    after = same.where(started > night.started).order_by(started).limit(1)
    with store.reading() as session:
        return session.scalar(before), session.scalar(after)


def tallies(store: Reader, nights: Iterable[AnyNight]) -> dict[str, Tally]:
    """Return the tally of the verdicts by night; nights that were not judged are left out."""
    return {
        night: Tally(
            Counter(verdict.value for verdict in verdicts),
            sum(verdict.bad and verdict.acceptance is None for verdict in verdicts),
            sum(verdict.acceptance is not None for verdict in verdicts),
            next((verdict.ratio for verdict in verdicts if verdict.query == SUITE), None),
            any(verdict.ratio is not None for verdict in verdicts),
        )
        for night, verdicts in grouped(judged(store, nights), lambda one: one.night).items()
    }


def judged(store: Reader, nights: Iterable[AnyNight], reds: bool = False) -> list[Judged]:
    """Return the deciding verdicts of nights, the oldest night first.

    ``reds``: only bad verdicts, and the verdict that comes next in the series of each.
    """
    place = [getattr(NightRow, name) for name in PLACE]
    before = func.lag(VerdictRow.bad).over(
        partition_by=(NightRow.dag_id, *place, NightRow.shape, NightRow.mode, VerdictRow.query),
        order_by=(NightRow.started, VerdictRow.id),
    )
    of_night = (VerdictRow.night_id, NightRow.dag_id, NightRow.started, *place, NightRow.build_id)
    of_verdict = (VerdictRow.query, VerdictRow.value, VerdictRow.ratio, VerdictRow.bad.label("bad"))
    columns = (*of_night, *of_verdict, VerdictRow.acceptance_id, NightRow.shape, NightRow.mode)
    deciding = (
        select(*columns, VerdictRow.id, before.label("before"))
        .join(NightRow)
        .where(VerdictRow.decides, _of_newest_gate([night.id for night in nights]))
        .subquery()
    )
    wanted = select(*deciding.c[: len(columns)]).order_by(deciding.c.started, deciding.c.id)
    if reds:
        wanted = wanted.where(deciding.c.bad | deciding.c.before)
    with store.reading() as session:
        return [Judged._make(row) for row in session.execute(wanted)]


def builds(store: Reader, dags: Collection[str]) -> list[MeasuredBuild]:
    """Return the builds that were candidates or baselines; the one measured last comes first.

    Of two builds of the same last night, the candidate comes first.
    """
    of_night = NightRow.id.label("night"), NightRow.started
    candidates = select(NightRow.build_id.label("build"), *of_night, literal(1).label("tested"))
    baselines = (
        select(VerdictRow.baseline_build.label("build"), *of_night, literal(0).label("tested"))
        .join(NightRow, NightRow.id == VerdictRow.night_id)
        .where(VerdictRow.decides, VerdictRow.baseline_build.is_not(None))
    )
    seen = union(*(each.where(NightRow.dag_id.in_(dags)) for each in (candidates, baselines)))
    measured = seen.subquery()
    last = func.max(measured.c.started)
    tested_last = func.max(case((measured.c.tested == 1, measured.c.started)))
    query = (
        select(
            *BuildRow.__table__.columns,
            func.count(measured.c.night.distinct()).label("nights"),
            func.min(measured.c.started).label("first"),
            last.label("last"),
        )
        .join(measured, measured.c.build == BuildRow.id)
        .group_by(*BuildRow.__table__.columns)
        .order_by(last.desc(), tested_last.desc().nulls_last(), BuildRow.id)
    )
    with store.reading() as session:
        return [MeasuredBuild._make(row) for row in session.execute(query)]


def figures(store: Reader, runs: Collection[str], metric: str) -> list[Verdict]:
    """Return the verdicts on queries by a metric, without the suite's; the newest night first."""
    query = (
        select_verdicts()
        .where(VerdictRow.night_id.in_(runs), VerdictRow.metric == metric)
        .where(VerdictRow.query != SUITE)
        .order_by(NightRow.started.desc(), VerdictRow.gate_version.desc())
    )
    with store.reading() as session:
        return [verdict_of(row, build) for row, build in session.execute(query)]


def _of_newest_gate(runs: Collection[str]) -> ColumnElement[bool]:
    """Return the condition that a verdict is on one of the runs, by the newest gate of this run."""
    newest = (
        select(VerdictRow.night_id, func.max(VerdictRow.gate_version))
        .where(VerdictRow.night_id.in_(runs))
        .group_by(VerdictRow.night_id)
    )
    return tuple_(VerdictRow.night_id, VerdictRow.gate_version).in_(newest)
