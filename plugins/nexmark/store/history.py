"""Many nights at a time, for the pages: reads only the columns that are shown, never all rows.

Nights are the runs of ``dags``, the DAGs whose runs the reader may see; verdicts are of the newest
version of the gate that judged a night.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple

from sqlalchemy import ColumnElement, Executable, Row, func, select, tuple_

from nexmark.model import SUITE, Mode, Value, grouped
from nexmark.store.query_history import PLACE
from nexmark.store.reading import Reader
from nexmark.store.table_rows import BuildRow, NightRow, VerdictRow
from nexmark.store.verdict_rows import select_verdicts, verdict_of
from nexmark.verdict.verdict import Verdict

_NIGHT = tuple(
    getattr(NightRow, name)
    for name in (
        *("id", "dag_id", "run_id", "engine", "workload", "cluster", "build_id", "mode", "shape"),
        *("started", "grade", "repetitions", "queries", "teaches", "directory"),
    )
)


@dataclass(frozen=True)
class Tally:
    """The deciding verdicts of a night by value; ``red`` and ``known`` (accepted) of them.

    ``compared``: whether one of them rests on a ratio.
    """

    values: Mapping[Value, int]
    red: int
    known: int
    suite: float | None
    compared: bool = True


class Judged(NamedTuple):
    """A deciding verdict of a night; ``bad``: it fails the night unless a person accepted it."""

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
        """What the nights have in common that go on from one to the next."""
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
) -> Sequence[Row[Any]]:
    """Return the newest nights first, of a candidate build or of all."""
    query = select(*_NIGHT).where(NightRow.dag_id.in_(dags))
    if build is not None:
        query = query.where(NightRow.build_id == build)
    order = (NightRow.started.desc(), NightRow.id.desc())
    return _all(store, query.order_by(*order).limit(limit).offset(offset))


def count_nights(store: Reader, dags: Collection[str]) -> int:
    """Return how many nights there are."""
    query = select(func.count()).select_from(NightRow).where(NightRow.dag_id.in_(dags))
    with store.reading() as session:
        return session.scalar(query) or 0


def neighbours(store: Reader, night: NightRow) -> tuple[str | None, str | None]:
    """Return the nights of the same DAG just before and after one."""
    same, started = select(NightRow.id).where(NightRow.dag_id == night.dag_id), NightRow.started
    before = same.where(started < night.started).order_by(started.desc()).limit(1)
    after = same.where(started > night.started).order_by(started).limit(1)
    with store.reading() as session:
        return session.scalar(before), session.scalar(after)


def tallies(store: Reader, nights: Iterable[Any]) -> dict[str, Tally]:
    """Return the tally of the verdicts by night; nights that were not judged are left out."""
    return {
        night: Tally(
            Counter(one.value for one in own),
            sum(one.bad and one.acceptance is None for one in own),
            sum(one.acceptance is not None for one in own),
            next((one.ratio for one in own if one.query == SUITE), None),
            any(one.ratio is not None for one in own),
        )
        for night, own in grouped(judged(store, nights), lambda one: one.night).items()
    }


def judged(store: Reader, nights: Iterable[Any], reds: bool = False) -> list[Judged]:
    """Return the deciding verdicts, oldest first; ``reds``: bad ones, and the first after them."""
    place = [getattr(NightRow, name) for name in PLACE]
    before = func.lag(VerdictRow.bad).over(
        partition_by=(NightRow.dag_id, *place, NightRow.shape, NightRow.mode, VerdictRow.query),
        order_by=(NightRow.started, VerdictRow.id),
    )
    of_night = (VerdictRow.night_id, NightRow.dag_id, NightRow.started, *place, NightRow.build_id)
    said = (VerdictRow.query, VerdictRow.value, VerdictRow.ratio, VerdictRow.bad.label("bad"))
    columns = (*of_night, *said, VerdictRow.acceptance_id, NightRow.shape, NightRow.mode)
    found = (
        select(*columns, VerdictRow.id, before.label("before"))
        .join(NightRow)
        .where(VerdictRow.decides, _of_newest_gate([night.id for night in nights]))
        .subquery()
    )
    wanted = select(*found.c[: len(columns)]).order_by(found.c.started, found.c.id)
    if reds:
        wanted = wanted.where(found.c.bad | found.c.before)
    return [Judged._make(row) for row in _all(store, wanted)]


def builds(store: Reader, dags: Collection[str]) -> Sequence[Row[Any]]:
    """Return the builds that were candidates, the one that was tested last first."""
    last = func.max(NightRow.started)
    query = (
        select(
            *BuildRow.__table__.columns,
            func.count().label("nights"),
            func.min(NightRow.started).label("first"),
            last.label("last"),
        )
        .join(NightRow)
        .where(NightRow.dag_id.in_(dags))
        .group_by(*BuildRow.__table__.columns)
        .order_by(last.desc(), BuildRow.id)
    )
    return _all(store, query)


def figures(store: Reader, runs: Collection[str], metric: str) -> list[Verdict]:
    """Return the verdicts on nights by a metric without the suite's, newest night first."""
    query = (
        select_verdicts()
        .where(VerdictRow.night_id.in_(runs), VerdictRow.metric == metric)
        .where(VerdictRow.query != SUITE)
        .order_by(NightRow.started.desc(), VerdictRow.gate_version.desc())
    )
    with store.reading() as session:
        return [verdict_of(row, build) for row, build in session.execute(query)]


def _of_newest_gate(runs: Collection[str]) -> ColumnElement[bool]:
    """Return the condition that a verdict is on one of the runs, by its newest gate."""
    newest = (
        select(VerdictRow.night_id, func.max(VerdictRow.gate_version))
        .where(VerdictRow.night_id.in_(runs))
        .group_by(VerdictRow.night_id)
    )
    return tuple_(VerdictRow.night_id, VerdictRow.gate_version).in_(newest)


def _all(store: Reader, query: Executable) -> Sequence[Row[Any]]:
    with store.reading() as session:
        return session.execute(query).all()
