"""One query and metric over the nights of an engine, workload and cluster.

Change points are computed from paired nights only: figures of one arm drift with their host, ratios
of pairs do not. They date a change and never decide anything.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, TypeVarTuple

from sqlalchemy import ColumnElement, Select, select
from sqlalchemy.orm import Session, defer

from nexmark.config import KNOWN_QUERIES
from nexmark.errors import suggest
from nexmark.model import CPU, METRICS, SUITE, Mode
from nexmark.store.accepting import states
from nexmark.store.store_error import StoreError
from nexmark.store.table_rows import AcceptanceRow, BuildRow, NightRow, VerdictRow
from nexmark.store.verdict_rows import by_newest_gate, verdict_of
from nexmark.verdict.verdict import Verdict

if TYPE_CHECKING:
    from nexmark.store.reading import Reader
    from nexmark.verdict.change_points import ChangePoint

PLACE = ("engine", "workload", "cluster")
_INTERVAL = 2 * 1.96  # the width of a 95 % interval in deviations


@dataclass(frozen=True)
class RatioPoint:
    """The verdict of one night on one query and metric, with what the pages show of the night.

    ``version`` is the Spark version of the candidate. ``baseline`` is what the candidate was
    compared with: a build, or an accepted run; of the suite all builds that the night had as
    baselines; "" for nothing. Only nights of one ``shape`` are compared with each other.
    """

    started: datetime
    version: str
    shape: str
    baseline: str
    verdict: Verdict

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
    """All of one query and metric; oldest first, acceptances with what became of them."""

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
        """Whether there are pairs, in which changes can be looked for."""
        return any(point.verdict.mode == Mode.PAIRED for point in self.points)


def read_history(
    session: Session, query: str, metric: str = CPU, place: Mapping[str, str | None] | None = None
) -> QueryHistory:
    """Return the history of a query and metric, from the nights that teach the gate.

    The newest night fills in the parts of ``place`` (engine, workload, cluster) that are not given.
    Raises StoreError if there is no night, or a name is not known.
    """
    asked = {name: value for name, value in (place or {}).items() if value}
    where = [getattr(NightRow, name) == value for name, value in asked.items()]
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
    rows = session.execute(_rows(query, metric, where)).all()
    points = [_point(*row) for row in rows[::-1]]
    paired = [x for x in points if x.verdict.mode == Mode.PAIRED and x.verdict.ratio]
    own = {"engine": engine, "workload": workload, "cluster": cluster, "query": query}
    accepted = select(AcceptanceRow).filter_by(**own).order_by(AcceptanceRow.id)
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


def trail(
    store: "Reader", night: NightRow, query: str, metric: str, limit: int
) -> list[RatioPoint]:
    """Return the last ``limit`` verdicts on a query in comparable nights up to one."""
    same = [getattr(NightRow, x) == getattr(night, x) for x in ("dag_id", *PLACE, "shape")]
    taught = NightRow.teaches | (NightRow.id == night.id)
    where = [*same, NightRow.started <= night.started, VerdictRow.mode == night.mode]
    with store.reading() as session:
        rows = session.execute(_rows(query, metric, where, taught).limit(limit)).all()
    return [_point(*row) for row in rows[::-1]]


def lasting_changes(points: Sequence[RatioPoint]) -> list[LevelChange]:
    """Return the lasting changes in nights, oldest first, across baselines that moved."""
    from nexmark.verdict.change_points import Ratio, dated_changes

    ratios = [
        Ratio(
            point.verdict.night,
            point.verdict.build,
            point.baseline,
            math.log(point.verdict.ratio) if point.verdict.ratio else math.nan,
            point.deviation,
            point.shape,
        )
        for point in points
    ]
    return [
        LevelChange(points[change.last], points[change.index], change)
        for change in dated_changes(ratios)
    ]


_Columns = TypeVarTuple("_Columns")


def _rows(
    query: str,
    metric: str,
    where: Sequence[ColumnElement[bool]],
    taught: ColumnElement[bool] | None = None,
) -> Select[VerdictRow, NightRow, str]:
    """Select the verdicts of the newest gate that judged each night, the newest night first."""
    columns = select(VerdictRow, NightRow, BuildRow.version)
    large = (NightRow.workload_spec, NightRow.cluster_spec, NightRow.queries, NightRow.gate_spec)
    return _verdicts_on(columns, query, metric, where, taught).options(*map(defer, large))


def _verdicts_on(
    columns: Select[*_Columns],
    query: str,
    metric: str,
    where: Sequence[ColumnElement[bool]],
    taught: ColumnElement[bool] | None = None,
) -> Select[*_Columns]:
    """Select columns of the verdicts on a query, the newest night first.

    Args:
        columns: what is selected.
        query: the query, or the suite.
        metric: the metric.
        where: conditions on the nights and the verdicts.
        taught: which nights count, by default those that teach the gate.
    """
    return (
        columns.select_from(NightRow)
        .join(VerdictRow, VerdictRow.night_id == NightRow.id)
        .join(BuildRow, BuildRow.id == NightRow.build_id)
        .where(VerdictRow.query == query, VerdictRow.metric == metric, *where)
        .where(by_newest_gate())
        .where(NightRow.teaches if taught is None else taught)
        .order_by(NightRow.started.desc(), NightRow.id.desc())
    )


def _point(row: VerdictRow, night: NightRow, version: str) -> RatioPoint:
    verdict = verdict_of(row, night.build_id)
    baseline = verdict.against
    if verdict.query == SUITE:
        baseline = " ".join(sorted(set((night.baselines or {}).values())))
    return RatioPoint(night.started, version, night.shape, baseline, verdict)


def _nothing(session: Session, query: str, metric: str, asked: Mapping[str, str]) -> StoreError:
    """Return the error for a request for which there is no night."""
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
