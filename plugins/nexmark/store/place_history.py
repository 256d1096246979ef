"""Reads the nights of one place, for the pages that show queries over all nights.

A place is an engine, a workload and a cluster. Nights are the runs of ``dags``, the DAGs whose runs
the person may see. Verdicts are by the newest version of the gate that judged a night.
"""

from collections.abc import Collection, Sequence
from datetime import datetime
from typing import NamedTuple

from sqlalchemy import ColumnElement, case, func, select

from nexmark.model import Mode, grouped
from nexmark.store.kept_reads import kept_until_written
from nexmark.store.query_history import (
    ComparedNight,
    RatioPoint,
    builds_in,
    night_columns,
    points_of,
)
from nexmark.store.reading import Reader
from nexmark.store.table_rows import BuildRow, NightRow, VerdictRow
from nexmark.store.verdict_rows import COLUMNS, of_newest_gate, verdict_of


class Place(NamedTuple):
    """An engine, a workload and a cluster; a part that is empty stands for any."""

    engine: str = ""
    workload: str = ""
    cluster: str = ""

    def has(self, other: "Place") -> bool:
        """Tell whether another place is this one, or one of those that this one stands for."""
        return all(not mine or mine == its for mine, its in zip(self, other, strict=True))


class MeasuredPlace(NamedTuple):
    """A place with the number of its nights from which the gate learns, and its last night."""

    place: Place
    nights: int
    last: datetime


class PlaceNight(NamedTuple):
    """The columns of a night that the pages of queries show; they mean the same as in NightRow.

    ``baselines`` is the text of its column.
    """

    id: str
    dag_id: str
    started: datetime
    build_id: str
    shape: str
    mode: Mode
    baselines: str | None
    teaches: bool


def places(store: Reader, dags: Collection[str], query: str = "") -> list[MeasuredPlace]:
    """Return the places with judged nights.

    Places with nights from which the gate learns come first; of these, the place that was measured
    last.

    Args:
        store: The results database.
        dags: The DAGs whose nights count.
        query: Only places where this query was judged; "" for any query.
    """
    judged = select(VerdictRow.id).where(VerdictRow.night_id == NightRow.id)
    if query:
        judged = judged.where(VerdictRow.query == query)
    place = (NightRow.engine, NightRow.workload, NightRow.cluster)
    taught = func.sum(case((NightRow.teaches, 1), else_=0))
    wanted = (
        select(*place, taught, func.max(NightRow.started))
        .where(NightRow.dag_id.in_(dags), judged.exists())
        .group_by(*place)
    )
    with store.reading() as session:
        rows = session.execute(wanted).all()
    measured = [MeasuredPlace(Place(*row[:3]), int(row[3]), row[4]) for row in rows]
    newest_first = sorted(measured, key=lambda one: one.last, reverse=True)
    return sorted(newest_first, key=lambda one: one.nights == 0)


@kept_until_written
def place_nights(
    store: Reader, dags: Collection[str], place: Place, limit: int, *, taught: bool = True
) -> list[PlaceNight]:
    """Return the newest nights of a place, the oldest of them first.

    Args:
        store: The results database.
        dags: The DAGs whose nights are returned.
        place: The place.
        limit: The largest number of nights.
        taught: Whether the gate learns from the nights; if not, they are nights that a person
            started to compare builds or to try a setting.
    """
    wanted = select(*night_columns(PlaceNight._fields)).where(
        NightRow.dag_id.in_(dags), *_of(place)
    )
    wanted = wanted.where(NightRow.teaches if taught else ~NightRow.teaches)
    order = (NightRow.started.desc(), NightRow.id.desc())
    with store.reading() as session:
        rows = session.execute(wanted.order_by(*order).limit(limit)).all()
    return [PlaceNight._make(row) for row in rows[::-1]]


@kept_until_written
def place_points(
    store: Reader,
    nights: Sequence[PlaceNight],
    query: str | None = None,
    metrics: Collection[str] | None = None,
) -> list[RatioPoint]:
    """Return the verdicts on nights, in the order of the nights.

    Args:
        store: The results database.
        nights: The nights.
        query: The query whose verdicts are returned, whether they decide or not; None for the
            verdicts that decide, on all queries.
        metrics: The metrics by which they are; None for all.
    """
    if not nights:
        return []
    wanted = select(*COLUMNS).where(of_newest_gate([night.id for night in nights]))
    wanted = wanted.where(VerdictRow.decides if query is None else VerdictRow.query == query)
    if metrics is not None:
        wanted = wanted.where(VerdictRow.metric.in_(metrics))
    with store.reading() as session:
        rows = grouped(session.execute(wanted.order_by(VerdictRow.id)), lambda row: row.night_id)
        of_nights = [
            ComparedNight(one.build_id, one.started, one.shape, one.baselines) for one in nights
        ]
        judged = [
            (compared, verdict_of(row, night.build_id))
            for night, compared in zip(nights, of_nights, strict=True)
            for row in rows.get(night.id, ())
        ]
        return points_of(session, judged)


def place_baselines(store: Reader, dags: Collection[str], place: Place) -> list[BuildRow]:
    """Return the builds that were baselines in the nights of a place, the newest build first."""
    baselines = select(*night_columns(("baselines",))).distinct()
    with store.reading() as session:
        texts = session.scalars(baselines.where(NightRow.dag_id.in_(dags), *_of(place)))
        used = {build for text in texts for build in builds_in(text)}
        wanted = select(BuildRow).where(BuildRow.id.in_(used))
        return list(session.scalars(wanted.order_by(BuildRow.first_seen.desc(), BuildRow.id)))


def _of(place: Place) -> list[ColumnElement[bool]]:
    """Return the conditions on the nights of a place."""
    return [
        NightRow.engine == place.engine,
        NightRow.workload == place.workload,
        NightRow.cluster == place.cluster,
    ]
