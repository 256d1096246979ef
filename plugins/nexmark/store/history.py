"""Reads many nights at a time for the pages: only the columns that a page shows.

Nights are the runs of ``dags``, the DAGs whose runs the person may see. Verdicts are by the newest
version of the gate that judged a night.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cache
from operator import attrgetter
from typing import NamedTuple, TypeAlias

from sqlalchemy import ColumnElement, Select, exists, false, func, or_, select
from sqlalchemy.orm import Session, aliased

from nexmark.model import CPU_METRICS, FIRST_ROUND, SUITE, Arm, Mode, Value, grouped
from nexmark.secrets import shown_build
from nexmark.store.kept_reads import kept_until_written
from nexmark.store.list_filter import EVERYTHING, ListFilter, builds_named, night_conditions
from nexmark.store.query_history import PLACE
from nexmark.store.reading import Reader
from nexmark.store.table_rows import AcceptanceRow, BuildRow, NightRow, RepetitionRow, VerdictRow
from nexmark.store.verdict_rows import (
    by_newest_gate,
    newest_gate_of,
    of_newest_gate,
    select_verdicts,
    verdict_of,
)
from nexmark.verdict.verdict import Verdict

_SERIES = ("dag_id", *PLACE, "shape", "mode")
"""What the nights of a series of verdicts have in common; the verdicts are on one query."""


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
    started_by: str | None


AnyNight: TypeAlias = NightRow | ListedNight
"""A night with all its columns, or with the columns of a list."""


class VisibleChange(NamedTuple):
    """The smallest change of a query that a night could show, and its noise, as in Verdict."""

    query: str
    mde: float | None
    noise: float | None


class MeasuredBuild(NamedTuple):
    """A build that was a candidate or a baseline, with the number of its nights, first and last."""

    id: str
    version: str
    source: str
    first_seen: datetime
    revision: str | None
    nights: int
    first: datetime
    last: datetime

    @property
    def name(self) -> str:
        """The build for people, as ``BuildRow`` has it."""
        return shown_build(self.version, self.source, self.id)


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
    acceptance that covers it, or covered it until it was ``withdrawn``.
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
    withdrawn: bool = False

    @property
    def accepted(self) -> bool:
        """Whether an acceptance covers the verdict, and was not withdrawn."""
        return self.acceptance is not None and not self.withdrawn

    @property
    def series(self) -> tuple[str, ...]:
        """What two verdicts have in common if the later one continues the earlier one."""
        return self.dag, *self.place, self.shape, self.mode, self.query

    @property
    def place(self) -> tuple[str, str, str]:
        """Engine, workload and cluster."""
        return self.engine, self.workload, self.cluster


class FilterChoices(NamedTuple):
    """What a person can choose in the filter of a list."""

    engines: list[str]
    workloads: list[str]
    people: list[str]


class AcceptedVerdict(NamedTuple):
    """The verdict that an acceptance accepted; ``against`` is the id of the build compared with.

    ``bad``: the verdict would have failed its night.
    """

    value: Value
    bad: bool
    against: str | None


def dag_ids(store: Reader) -> list[str]:
    """Return the DAGs that have nights."""
    with store.reading() as session:
        return list(session.scalars(select(NightRow.dag_id).distinct().order_by(NightRow.dag_id)))


def nights(
    store: Reader,
    dags: Collection[str],
    limit: int,
    offset: int = 0,
    build: str | None = None,
    wanted: ListFilter = EVERYTHING,
) -> list[ListedNight]:
    """Return nights, the newest first.

    Args:
        store: The results database.
        dags: The DAGs whose runs are returned.
        limit: The largest number of nights.
        offset: How many of the newest nights are left out.
        build: The id of the candidate build; None for nights of all builds.
        wanted: Which of these nights are returned.
    """
    columns = (getattr(NightRow, name) for name in ListedNight._fields)
    query = select(*columns).where(NightRow.dag_id.in_(dags))
    if build is not None:
        query = query.where(NightRow.build_id == build)
    order = (NightRow.started.desc(), NightRow.id.desc())
    with store.reading() as session:
        query = query.where(*night_conditions(session, wanted))
        rows = session.execute(query.order_by(*order).limit(limit).offset(offset))
        return [ListedNight._make(row) for row in rows]


def count_nights(store: Reader, dags: Collection[str], wanted: ListFilter = EVERYTHING) -> int:
    """Return the number of nights that a filter lets through."""
    query = select(func.count()).select_from(NightRow).where(NightRow.dag_id.in_(dags))
    with store.reading() as session:
        return session.scalar(query.where(*night_conditions(session, wanted))) or 0


def filter_choices(store: Reader, dags: Collection[str]) -> FilterChoices:
    """Return what nights can be filtered by: engines, workloads, and who started them."""
    columns = select(NightRow.engine, NightRow.workload, NightRow.started_by)
    with store.reading() as session:
        rows = session.execute(columns.where(NightRow.dag_id.in_(dags)).distinct()).all()
    engines, workloads = {row.engine for row in rows}, {row.workload for row in rows}
    people = {row.started_by for row in rows if row.started_by}
    return FilterChoices(sorted(engines), sorted(workloads), sorted(people))


def compared_builds(store: Reader, runs: Collection[str]) -> dict[str, list[str]]:
    """Return by night the ids of the builds with which its queries are compared.

    They are the baselines that were measured in the night, else the builds of the accepted runs.
    """
    accepted = aliased(NightRow)
    measured = select(NightRow.id, NightRow.baselines).where(NightRow.id.in_(runs))
    by_bounds = (
        select(VerdictRow.night_id, accepted.build_id)
        .join(accepted, accepted.id == VerdictRow.baseline_run)
        .where(VerdictRow.night_id.in_(runs), VerdictRow.decides)
    )
    with store.reading() as session:
        compared = {
            night: list((baselines or {}).values())
            for night, baselines in session.execute(measured)
        }
        for night, build in session.execute(by_bounds.distinct()):
            compared[night].append(build)
    return {night: list(dict.fromkeys(builds)) for night, builds in compared.items()}


def accepted_verdicts(store: Reader) -> dict[int, AcceptedVerdict]:
    """Return by the id of each acceptance the verdict that it accepted, if there was one."""
    baseline = aliased(NightRow)
    against = func.coalesce(VerdictRow.baseline_build, baseline.build_id)
    query = (
        select(AcceptanceRow.id, VerdictRow.value, VerdictRow.bad, against)
        .join(
            VerdictRow,
            (VerdictRow.night_id == AcceptanceRow.night_id)
            & (VerdictRow.query == AcceptanceRow.query),
        )
        .join(baseline, baseline.id == VerdictRow.baseline_run, isouter=True)
        .where(VerdictRow.decides, by_newest_gate())
    )
    with store.reading() as session:
        return {row[0]: AcceptedVerdict(*row[1:]) for row in session.execute(query)}


def neighbours(store: Reader, night: NightRow) -> tuple[str | None, str | None]:
    """Return the ids of the nights of the same DAG just before and just after a night."""
    same, started = select(NightRow.id).where(NightRow.dag_id == night.dag_id), NightRow.started
    before = same.where(started < night.started).order_by(started.desc()).limit(1)
    after = same.where(started > night.started).order_by(started).limit(1)
    with store.reading() as session:
        return session.scalar(before), session.scalar(after)


def with_nights_before(
    store: Reader, runs: Collection[str]
) -> list[tuple[NightRow, NightRow | None]]:
    """Return nights, each with the night before it; None if there is none.

    That is the last comparable night that teaches and was judged, else the last night of the DAG.
    """
    wanted = _select_nights_before().where(NightRow.id.in_(runs))
    with store.reading() as session:
        pairs = session.execute(wanted).all()
        named = {run for pair in pairs for run in pair if run is not None}
        rows = session.scalars(select(NightRow).where(NightRow.id.in_(named)))
        nights = {row.id: row for row in rows}
    return [(nights[run], nights.get(before or "")) for run, before in pairs]


@cache
def _select_nights_before() -> Select[str, str | None]:
    """Return a query for nights, each with the night before it; made once, for it takes a while."""
    other = aliased(NightRow)
    same = [getattr(other, name) == getattr(NightRow, name) for name in (*PLACE, "shape", "mode")]
    verdicts = select(VerdictRow.id).where(
        VerdictRow.night_id == other.id, VerdictRow.mode == other.mode
    )
    newest = select(other.id).where(other.started < NightRow.started).correlate(NightRow)
    newest = newest.order_by(other.started.desc(), other.id.desc()).limit(1)
    comparable = newest.where(*same, other.teaches, verdicts.exists()).scalar_subquery()
    of_dag = newest.where(other.dag_id == NightRow.dag_id).scalar_subquery()
    return select(NightRow.id, func.coalesce(comparable, of_dag))


@kept_until_written
def candidate_confs(
    store: Reader, asked: Collection[tuple[str, str]]
) -> dict[str, list[Mapping[str, str]]]:
    """Return by night the confs of the candidate's first two repetitions of a query of the night.

    ``asked`` has each night with the query.
    """
    by_query = grouped(asked, lambda one: one[1])
    either = [
        (RepetitionRow.query == query) & RepetitionRow.night_id.in_([run for run, _ in of_query])
        for query, of_query in by_query.items()
    ]
    columns = select(RepetitionRow.night_id, RepetitionRow.confs)
    of_first = (RepetitionRow.arm == Arm.CANDIDATE, RepetitionRow.stage == FIRST_ROUND)
    with store.reading() as session:
        asked_for = columns.where(or_(false(), *either), *of_first, RepetitionRow.number <= 2)
        rows = session.execute(asked_for).all()
    known = grouped((row for row in rows if row.confs), lambda row: str(row.night_id))
    return {run: [row.confs for row in of_run] for run, of_run in known.items()}


def tallies(store: Reader, nights: Collection[AnyNight]) -> dict[str, Tally]:
    """Return the tally of the verdicts by night; nights that were not judged are left out."""
    return {
        night: Tally(
            Counter(verdict.value for verdict in verdicts),
            sum(verdict.bad and not verdict.accepted for verdict in verdicts),
            sum(verdict.accepted for verdict in verdicts),
            next((verdict.ratio for verdict in verdicts if verdict.query == SUITE), None),
            any(verdict.ratio is not None for verdict in verdicts),
        )
        for night, verdicts in grouped(judged(store, nights), lambda one: one.night).items()
    }


def judged_nights(store: Reader, nights: Iterable[AnyNight]) -> set[str]:
    """Return the ids of the nights that have a deciding verdict, without reading the verdicts."""
    has_verdict = exists().where(VerdictRow.night_id == NightRow.id, VerdictRow.decides)
    query = select(NightRow.id).where(NightRow.id.in_([night.id for night in nights]), has_verdict)
    with store.reading() as session:
        return set(session.scalars(query))


@kept_until_written
def judged(store: Reader, nights: Collection[AnyNight]) -> list[Judged]:
    """Return the deciding verdicts of nights, the oldest night first."""
    by_id = {night.id: night for night in nights}
    with store.reading() as session:
        return _judged(session, by_id, VerdictRow.decides & of_newest_gate(list(by_id)))


@kept_until_written
def reds(store: Reader, nights: Collection[AnyNight]) -> list[Judged]:
    """Return the deciding verdicts of nights that are bad, and the next one after each.

    The next one is in the same series. The oldest night comes first.
    """
    by_id = {night.id: night for night in nights}
    after, its_night = aliased(VerdictRow), aliased(NightRow)
    same = [getattr(its_night, name) == getattr(NightRow, name) for name in _SERIES]
    following = (
        select(after.id)
        .join(its_night, its_night.id == after.night_id)
        .where(*same, its_night.started > NightRow.started, its_night.id.in_(list(by_id)))
        .where(after.query == VerdictRow.query, after.decides, newest_gate_of(after))
        .order_by(its_night.started, after.id)
        .limit(1)
        .correlate(VerdictRow, NightRow)
        .scalar_subquery()
    )
    bad = (
        select(VerdictRow.id, following)
        .join(NightRow)
        .where(NightRow.id.in_(list(by_id)), VerdictRow.bad, VerdictRow.decides, by_newest_gate())
    )
    with store.reading() as session:
        wanted = {number for numbers in session.execute(bad) for number in numbers}
        return _judged(session, by_id, VerdictRow.id.in_(wanted - {None}))


def _judged(
    session: Session, nights: Mapping[str, AnyNight], wanted: ColumnElement[bool]
) -> list[Judged]:
    """Return the verdicts of a condition, the oldest night first; ``nights`` has them by id."""
    place = attrgetter(*PLACE)
    before = {
        night.id: (night.id, night.dag_id, night.started, *place(night), night.build_id)
        for night in nights.values()
    }
    after = {night.id: (night.shape, night.mode) for night in nights.values()}
    columns = (VerdictRow.query, VerdictRow.value, VerdictRow.ratio, VerdictRow.bad)
    acceptance = (VerdictRow.acceptance_id, VerdictRow.acceptance_withdrawn)
    rows = select(VerdictRow.night_id, *columns, *acceptance).where(wanted)
    verdicts = [
        Judged._make((*before[night], *of_verdict, *after[night], withdrawn))
        for night, *of_verdict, withdrawn in session.execute(rows.order_by(VerdictRow.id))
    ]
    return sorted(verdicts, key=attrgetter("started"))


def builds(
    store: Reader, dags: Collection[str], wanted: ListFilter = EVERYTHING
) -> list[MeasuredBuild]:
    """Return the builds that were candidates or baselines; the one measured last comes first.

    Of two builds of the same last night, the candidate comes first. A night counts from its begin,
    whether it was judged or not.

    Args:
        store: The results database.
        dags: The DAGs whose nights count.
        wanted: Which of these nights count, and a part of the names of the builds.
    """
    query = (
        select(NightRow.started, NightRow.build_id, NightRow.baselines)
        .where(NightRow.dag_id.in_(dags))
        .order_by(NightRow.started.desc(), NightRow.id.desc())
    )
    with store.reading() as session:
        query = query.where(*night_conditions(session, replace(wanted, search="")))
        named = set(builds_named(session, wanted.search))
        measured: dict[str, list[datetime]] = {}
        for started, candidate, baselines in session.execute(query):
            for build in dict.fromkeys([candidate, *(baselines or {}).values()]):
                measured.setdefault(str(build), []).append(started)
        rows = session.scalars(select(BuildRow).where(BuildRow.id.in_(list(measured))))
        known = {row.id: row for row in rows}
    return [
        MeasuredBuild(
            id=build,
            version=known[build].version,
            source=known[build].source,
            first_seen=known[build].first_seen,
            revision=known[build].revision,
            nights=len(moments),
            first=moments[-1],
            last=moments[0],
        )
        for build, moments in measured.items()
        if build in known and build in named
    ]


@kept_until_written
def figures(store: Reader, runs: Collection[str], metrics: Collection[str]) -> list[Verdict]:
    """Return the verdicts on queries by some metrics, without the suite; the newest night first."""
    query = (
        select_verdicts()
        .where(VerdictRow.night_id.in_(runs), VerdictRow.metric.in_(metrics))
        .where(VerdictRow.query != SUITE)
        .order_by(NightRow.started.desc(), VerdictRow.gate_version.desc())
    )
    with store.reading() as session:
        return [verdict_of(row, row.build_id) for row in session.execute(query)]


@kept_until_written
def visible_changes(store: Reader, runs: Collection[str]) -> list[VisibleChange]:
    """Return what nights could show of their queries' CPU time, as the newest gate has it."""
    query = select(VerdictRow.query, VerdictRow.mde, VerdictRow.noise)
    query = query.where(of_newest_gate(runs), VerdictRow.decides, VerdictRow.query != SUITE)
    query = query.where(VerdictRow.metric.in_(CPU_METRICS)).order_by(VerdictRow.id)
    with store.reading() as session:
        return list(map(VisibleChange._make, session.execute(query)))
