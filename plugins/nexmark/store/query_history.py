"""Reads one query and metric over the nights of an engine, workload and cluster.

Change points are computed from paired nights only: figures of one arm drift with their host, ratios
of pairs do not. A change point gives a change its date; it never decides a verdict.
"""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVarTuple

from sqlalchemy import ColumnElement, Select, Text, cast, select
from sqlalchemy.orm import Session

from nexmark.config import KNOWN_QUERIES
from nexmark.errors import suggest
from nexmark.model import CPU, METRICS, SUITE, Mode
from nexmark.store.accepting import states
from nexmark.store.kept_reads import kept_until_written
from nexmark.store.store_error import StoreError
from nexmark.store.table_rows import AcceptanceRow, BuildRow, NightRow, VerdictRow
from nexmark.store.verdict_rows import COLUMNS, by_newest_gate, verdict_of
from nexmark.verdict.verdict import Verdict

if TYPE_CHECKING:
    from nexmark.store.reading import Reader
    from nexmark.verdict.change_points import ChangePoint, Ratio

PLACE = ("engine", "workload", "cluster")
_INTERVAL = 2 * 1.96  # the width of a 95 % interval in deviations


class ComparedNight(NamedTuple):
    """The columns of a night that a point shows; they mean the same as in ``NightRow``.

    Most nights have the ``baselines`` of the night before: they are the text of the column, which
    ``builds_in`` reads.
    """

    build_id: str
    started: datetime
    shape: str
    baselines: str | None


@cache
def night_columns(names: tuple[str, ...]) -> list[Any]:
    """Return columns of a night by their names, with the baselines as a text."""
    text = cast(NightRow.baselines, Text).label("baselines")
    return [text if name == "baselines" else getattr(NightRow, name) for name in names]


@lru_cache(maxsize=1024)
def builds_in(baselines: str | None) -> tuple[str, ...]:
    """Return the builds that are in the text of the baselines of a night, in order."""
    return tuple(sorted(set((json.loads(baselines or "null") or {}).values())))


@dataclass(frozen=True)
class RatioPoint:
    """The verdict of one night on one query and metric, with what the pages show of the night.

    ``version`` is the Spark version of the candidate. ``baseline`` is the build or the accepted run
    with which the candidate was compared, "" if there was none; for the suite, it names all builds
    that were baselines in the night. Only nights of one ``shape`` are compared with each other.
    ``build_name`` and ``baseline_name`` name the candidate and the baseline for people.
    """

    started: datetime
    version: str
    shape: str
    baseline: str
    verdict: Verdict
    build_name: str
    baseline_name: str

    @property
    def deviation(self) -> float | None:
        """The standard error of the log ratio; by all pairs where later rounds were measured."""
        verdict = self.verdict
        if verdict.fresh_pairs and verdict.lo and verdict.hi:
            return (math.log(verdict.hi) - math.log(verdict.lo)) / _INTERVAL
        return verdict.noise


@dataclass(frozen=True)
class LevelChange:
    """A lasting change from the night ``last`` to ``first``; ``change.ratio`` 1.08: 8 % slower.

    Both nights are of the same series: of the same shape, their baselines linked.
    """

    last: RatioPoint
    first: RatioPoint
    change: "ChangePoint"


@dataclass(frozen=True)
class QueryHistory:
    """One query and metric over the nights, oldest first; each acceptance has its state."""

    engine: str
    workload: str
    cluster: str
    query: str
    metric: str
    points: tuple[RatioPoint, ...]
    changes: tuple[LevelChange, ...]
    acceptances: tuple[tuple[AcceptanceRow, str], ...]

    @property
    def paired(self) -> bool:
        """Whether at least one night was paired; only in these, changes can be found."""
        return any(point.verdict.mode == Mode.PAIRED for point in self.points)


def read_history(
    session: Session,
    query: str,
    metric: str | None = None,
    place: Mapping[str, str | None] | None = None,
) -> QueryHistory:
    """Return the history of a query and metric, from the nights that teach the gate.

    Args:
        session: The session to read with.
        query: The query, or the suite.
        metric: The metric; None for the one that decided the newest night that matches.
        place: The engine, workload and cluster by these names. The newest night that matches gives
            the parts that are missing.

    Raises:
        StoreError: No night matches, or a name is not known.
    """
    asked = {name: value for name, value in (place or {}).items() if value}
    where = [getattr(NightRow, name) == value for name, value in asked.items()]
    metric = metric or _newest_metric(session, query, where)
    place_of_night = select(NightRow.engine, NightRow.workload, NightRow.cluster)
    newest = session.execute(_verdicts_on(place_of_night, query, metric, where).limit(1)).first()
    if newest is None:
        raise _nothing(session, query, metric, asked)
    engine, workload, cluster = newest
    where = [
        NightRow.engine == engine,
        NightRow.workload == workload,
        NightRow.cluster == cluster,
    ]
    points = _points(session, _rows(query, metric, where))
    paired = [
        point for point in points if point.verdict.mode == Mode.PAIRED and point.verdict.ratio
    ]
    accepted = (
        select(AcceptanceRow)
        .where(
            AcceptanceRow.engine == engine,
            AcceptanceRow.workload == workload,
            AcceptanceRow.cluster == cluster,
            AcceptanceRow.query == query,
        )
        .order_by(AcceptanceRow.id)
    )
    return QueryHistory(
        engine=engine,
        workload=workload,
        cluster=cluster,
        query=query,
        metric=metric,
        points=tuple(points),
        changes=tuple(lasting_changes(paired)),
        acceptances=tuple(states(list(session.scalars(accepted)), datetime.now(UTC))),
    )


@kept_until_written
def trail(
    store: "Reader", night: NightRow, query: str, metric: str, limit: int
) -> list[RatioPoint]:
    """Return the last verdicts on a query in nights that are comparable with a night.

    Args:
        store: The results database.
        night: The last night; it counts even if the gate does not learn from it.
        query: The query, or the suite.
        metric: The metric.
        limit: The largest number of verdicts.
    """
    names = ("dag_id", *PLACE, "shape")
    same = [getattr(NightRow, name) == getattr(night, name) for name in names]
    taught = NightRow.teaches | (NightRow.id == night.id)
    where = [*same, NightRow.started <= night.started, VerdictRow.mode == night.mode]
    with store.reading() as session:
        return _points(session, _rows(query, metric, where, taught).limit(limit))


def lasting_changes(points: Sequence[RatioPoint]) -> list[LevelChange]:
    """Return the lasting changes in nights, oldest first, also where the baseline changed."""
    from nexmark.verdict.change_points import Ratio

    ratios = tuple(
        Ratio(
            point.verdict.night,
            point.verdict.build,
            point.baseline,
            math.log(point.verdict.ratio) if point.verdict.ratio else math.nan,
            point.deviation,
            point.shape,
        )
        for point in points
    )
    return [
        LevelChange(points[change.last], points[change.index], change) for change in _dated(ratios)
    ]


@lru_cache(maxsize=128)
def _dated(ratios: "tuple[Ratio, ...]") -> "tuple[ChangePoint, ...]":
    """Return the changes in nights; kept, because past nights do not change between two pages."""
    from nexmark.verdict.change_points import dated_changes

    return tuple(dated_changes(ratios))


_Columns = TypeVarTuple("_Columns")


def _rows(
    query: str,
    metric: str,
    where: Sequence[ColumnElement[bool]],
    taught: ColumnElement[bool] | None = None,
) -> Select[*tuple[Any, ...]]:
    """Select verdicts, each with the columns of ``ComparedNight``.

    Args:
        query: The query.
        metric: The metric.
        where: Conditions for the nights.
        taught: A further condition for the nights; None for none.
    """
    columns = select(*COLUMNS, *night_columns(ComparedNight._fields))
    return _verdicts_on(columns, query, metric, where, taught)


def _newest_metric(session: Session, query: str, where: Sequence[ColumnElement[bool]]) -> str:
    """Return the metric that decided a query in the newest night; CPU if there is no such night."""
    newest = (
        select(VerdictRow.metric)
        .join(NightRow, NightRow.id == VerdictRow.night_id)
        .where(VerdictRow.query == query, VerdictRow.decides, by_newest_gate())
        .where(NightRow.teaches, *where)
        .order_by(NightRow.started.desc(), NightRow.id.desc())
    )
    return session.scalar(newest.limit(1)) or CPU


def _verdicts_on(
    columns: Select[*_Columns],
    query: str,
    metric: str,
    where: Sequence[ColumnElement[bool]],
    taught: ColumnElement[bool] | None = None,
) -> Select[*_Columns]:
    """Select columns of the verdicts by the newest gate of each night, the newest night first.

    Args:
        columns: The columns to select.
        query: The query, or the suite.
        metric: The metric.
        where: Conditions on the nights and the verdicts.
        taught: The condition on the nights that count; by default, that the gate learns from them.
    """
    return (
        columns.select_from(NightRow)
        .join(VerdictRow, VerdictRow.night_id == NightRow.id)
        .where(VerdictRow.query == query, VerdictRow.metric == metric, *where)
        .where(by_newest_gate())
        .where(NightRow.teaches if taught is None else taught)
        .order_by(NightRow.started.desc(), NightRow.id.desc())
    )


def _points(session: Session, wanted: Select[*tuple[Any, ...]]) -> list[RatioPoint]:
    """Return the points of verdicts, the oldest night first; it comes last in ``wanted``."""
    rows = session.execute(wanted).all()[::-1]
    nights = (ComparedNight._make(row[len(COLUMNS) :]) for row in rows)
    verdicts = (verdict_of(row, row.build_id) for row in rows)
    return points_of(session, list(zip(nights, verdicts, strict=True)))


def points_of(
    session: Session, judged: Sequence[tuple[ComparedNight, Verdict]]
) -> list[RatioPoint]:
    """Return the points of verdicts that come with their nights, in the same order."""
    compared = [_compared_with(night, verdict) for night, verdict in judged]
    ids = {build for of_night in compared for build in of_night}
    ids |= {night.build_id for night, _ in judged}
    builds = {row.id: row for row in session.scalars(select(BuildRow).where(BuildRow.id.in_(ids)))}
    names = {row.id: row.name for row in builds.values()}
    return [
        RatioPoint(
            started=night.started,
            version=builds[night.build_id].version,
            shape=night.shape,
            baseline=" ".join(of_night),
            verdict=verdict,
            build_name=names[night.build_id],
            baseline_name=" and ".join(names.get(each, each) for each in of_night),
        )
        for (night, verdict), of_night in zip(judged, compared, strict=True)
    ]


def _compared_with(night: ComparedNight, verdict: Verdict) -> list[str]:
    """Return the builds, or the accepted run, with which the candidate was compared."""
    if verdict.query == SUITE:
        return list(builds_in(night.baselines))
    return [verdict.against] if verdict.against else []


def _nothing(session: Session, query: str, metric: str, asked: Mapping[str, str]) -> StoreError:
    """Return the error for a request for which there is no night; it says which part is wrong.

    Args:
        session: The session to read with.
        query: The query that was asked for.
        metric: The metric that was asked for.
        asked: The parts of the place that were asked for.
    """
    judged = select(VerdictRow.query).join(NightRow)
    judged = judged.where(NightRow.teaches).distinct()
    recorded = set(session.scalars(judged))
    if not recorded:
        tried = session.scalar(select(VerdictRow.id).limit(1)) is not None
        but = ", but for what was tried by hand" if tried else ""
        return StoreError(f"no night is judged yet{but}; `nexmark run` first")
    for name, value in asked.items():
        known = sorted(session.scalars(select(getattr(NightRow, name)).distinct()))
        if value not in known:
            remedy = suggest(value, known)
            return StoreError(f"{name} {value!r}: no night of it is recorded; {remedy}")
    queries = [*KNOWN_QUERIES, SUITE, *sorted(recorded - {*KNOWN_QUERIES, SUITE})]
    if query not in queries:
        return StoreError(f"query {query!r} is not known; {suggest(query, queries)}")
    metrics = {*METRICS, *session.scalars(judged.with_only_columns(VerdictRow.metric))}
    if metric not in metrics:
        return StoreError(f"metric {metric!r} is not known; {suggest(metric, sorted(metrics))}")
    where = [getattr(NightRow, name) == value for name, value in asked.items()]
    others = session.scalars(judged.where(VerdictRow.metric == metric, *where))
    judged_so = ", ".join(sorted(others, key=queries.index)) or "none"
    of = "".join(f", {name} {value}" for name, value in asked.items())
    return StoreError(
        f"{query}{of}: no night has judged it by {metric}; the queries that were: {judged_so}"
    )
