"""One query and metric over the nights of an engine, workload and cluster.

Change points are computed from paired nights only: figures of one arm drift with their host, ratios
of pairs do not. They date a change and never decide anything.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from sqlalchemy import ColumnElement, Select, func, select
from sqlalchemy.orm import Session, aliased

from nexmark.config import KNOWN_QUERIES
from nexmark.errors import suggest
from nexmark.model import CPU, METRICS, SUITE, Mode
from nexmark.store.accepting import states
from nexmark.store.store_error import StoreError
from nexmark.store.table_rows import AcceptanceRow, BuildRow, NightRow, VerdictRow

if TYPE_CHECKING:
    from nexmark.store.reading import Reader
    from nexmark.verdict.change_points import ChangePoint

PLACE = ("engine", "workload", "cluster")
_SAME = (
    *("value", "ratio", "lo", "hi", "mde", "shift", "noise", "candidate", "reason", "decides"),
    "mode",
)
_INTERVAL = 2 * 1.96  # the width of a 95 % interval in deviations


@dataclass(frozen=True)
class RatioPoint:
    """The verdict of one night on one query and metric, with its 95 % interval.

    ``baseline`` is the build (or the accepted run) that ``build`` was compared with, if any;
    ``candidate`` is the figure itself, in the unit of the metric.
    """

    night: str
    started: datetime
    build: str
    baseline: str
    value: str
    ratio: float | None
    lo: float | None = None
    hi: float | None = None
    mde: float | None = None
    shift: float | None = None
    noise: float | None = None
    candidate: float | None = None
    acceptance: int | None = None
    version: str = ""
    mode: str = ""
    reason: str = ""
    decides: bool = True
    pairs: int = 0
    fresh_pairs: int = 0
    shape: str = ""

    @property
    def deviation(self) -> float | None:
        """The standard error of the log ratio; for confirmed suspects, by the fresh pairs."""
        if self.fresh_pairs and self.lo and self.hi:
            return (math.log(self.hi) - math.log(self.lo)) / _INTERVAL
        return self.noise


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
        return any(point.mode == Mode.PAIRED for point in self.points)


def read_history(
    session: Session, query: str, metric: str = CPU, place: Mapping[str, str | None] | None = None
) -> QueryHistory:
    """Return the history of a query and metric, from the nights that teach the gate.

    The newest night fills in the parts of ``place`` (engine, workload, cluster) that are not given.
    Raises StoreError if there is no night, or a name is not known.
    """
    asked = {name: value for name, value in (place or {}).items() if value}
    where = [getattr(NightRow, name) == value for name, value in asked.items()]
    newest = session.execute(_rows(query, metric, where).limit(1)).first()
    if newest is None:
        raise _nothing(session, query, metric, asked)
    found = {name: str(getattr(newest, name)) for name in PLACE}
    where = [getattr(NightRow, name) == value for name, value in found.items()]
    rows = session.execute(_rows(query, metric, where)).all()
    points = [_point(row, query) for row in rows[::-1]]
    accepted = select(AcceptanceRow).filter_by(**found, query=query).order_by(AcceptanceRow.id)
    return QueryHistory(
        **found,
        query=query,
        metric=metric,
        points=tuple(points),
        changes=tuple(lasting_changes([x for x in points if x.mode == Mode.PAIRED and x.ratio])),
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
    return [_point(row) for row in rows[::-1]]


def lasting_changes(points: Sequence[RatioPoint]) -> list[LevelChange]:
    """Return the lasting changes in nights, oldest first, across baselines that moved."""
    from nexmark.verdict.change_points import Ratio, dated_changes

    ratios = [
        Ratio(
            *(point.night, point.build, point.baseline),
            math.log(point.ratio) if point.ratio else math.nan,
            point.deviation,
            point.shape,
        )
        for point in points
    ]
    return [
        LevelChange(points[change.last], points[change.index], change)
        for change in dated_changes(ratios)
    ]


def _rows(
    query: str,
    metric: str,
    where: Sequence[ColumnElement[bool]],
    taught: ColumnElement[bool] | None = None,
) -> Select[Any]:
    """Select the verdicts of the newest gate that judged each night, the newest night first."""
    named: dict[str, Any] = {"night": NightRow.id, "build": NightRow.build_id}
    named["acceptance"] = VerdictRow.acceptance_id
    named |= {x: func.coalesce(getattr(VerdictRow, x), 0) for x in ("pairs", "fresh_pairs")}
    columns = [getattr(NightRow, name) for name in ("started", *PLACE, "baselines", "shape")]
    columns += [getattr(VerdictRow, x) for x in (*_SAME, "baseline_build", "baseline_run")]
    columns += [column.label(name) for name, column in named.items()]
    of_night = aliased(VerdictRow)
    newest = select(func.max(of_night.gate_version)).where(of_night.night_id == NightRow.id)
    return (
        select(*columns, BuildRow.version)
        .join(VerdictRow)
        .join(BuildRow)
        .where(VerdictRow.query == query, VerdictRow.metric == metric, *where)
        .where(VerdictRow.gate_version == newest.correlate(NightRow).scalar_subquery())
        .where(NightRow.teaches if taught is None else taught)
        .order_by(NightRow.started.desc(), NightRow.id.desc())
    )


def _point(row: Any, query: str = "") -> RatioPoint:
    baseline = row.baseline_build or row.baseline_run or ""
    if query == SUITE:
        baseline = " ".join(sorted(set((row.baselines or {}).values())))
    own = (field.name for field in fields(RatioPoint) if field.name != "baseline")
    return RatioPoint(baseline=baseline, **{name: getattr(row, name) for name in own})


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
