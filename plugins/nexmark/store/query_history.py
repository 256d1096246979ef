"""One query and metric over the nights of an engine, workload and cluster.

Change points are those of paired nights: figures of one arm drift with their host, ratios of pairs
do not. They date a change and never decide anything.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import groupby
from typing import Any

from sqlalchemy import ColumnElement, Select, select
from sqlalchemy.orm import Session

from nexmark.config import BUILD_DAG_ID, KNOWN_QUERIES
from nexmark.config.errors import suggest
from nexmark.store.accepting import states
from nexmark.store.errors import StoreError
from nexmark.store.models import Acceptance, Build, Night, VerdictRow
from nexmark.store.paired import INFORMING
from nexmark.store.records import CPU, PAIRED
from nexmark.verdict.nights import SUITE

METRICS = (CPU, *INFORMING)
_PLACE = ("engine", "workload", "cluster")
_NIGHT = ("started", *_PLACE, "build_id", "baselines", "shape")
_SAME = (
    *("value", "reason", "mode", "decides", "ratio", "lo", "hi", "candidate", "acceptance_id"),
)
_VERDICT = ("night_id", "gate_version", "noise", "pairs", "fresh_pairs", "baseline_build", *_SAME)


_INTERVAL = 2 * 1.96
"""The width of a 95 % interval in deviations."""


@dataclass(frozen=True)
class Point:
    """What one night said. ``baseline`` is the build that ``build`` was held against, if any.

    ``ratio`` (candidate / baseline) and its 95 % interval are those of the verdict; ``candidate``
    is the figure itself, in the unit of the metric. ``acceptance_id``: what covers the verdict.
    """

    night: str
    started: datetime
    build: str
    version: str
    baseline: str
    mode: str
    value: str
    reason: str
    decides: bool
    ratio: float | None
    lo: float | None
    hi: float | None
    candidate: float | None
    pairs: int
    fresh_pairs: int
    acceptance_id: int | None


@dataclass(frozen=True)
class Change:
    """A lasting change: ``last`` is the night before it, ``first`` the first one of the new level.

    ``ratio``: 1.08 is 8 % slower (more). ``confidence``: see ``verdict.change_points``.
    """

    last: Point
    first: Point
    ratio: float
    confidence: float


@dataclass(frozen=True)
class History:
    """All of one query and metric; oldest first, acceptances with what became of them."""

    engine: str
    workload: str
    cluster: str
    query: str
    metric: str
    points: tuple[Point, ...]
    changes: tuple[Change, ...]
    acceptances: tuple[tuple[Acceptance, str], ...]

    @property
    def paired(self) -> bool:
        """Whether there are pairs, in which changes can be looked for."""
        return any(point.mode == PAIRED for point in self.points)


def read_history(
    session: Session, query: str, metric: str = CPU, place: Mapping[str, str | None] | None = None
) -> History:
    """Return the history of a query and metric; what a person tried is not among its nights.

    What ``place`` (engine, workload, cluster) leaves open is that of the newest night there is.
    StoreError when there is none, or for a name that is not known.
    """
    asked = {name: value for name, value in (place or {}).items() if value}
    where = [getattr(Night, name) == value for name, value in asked.items()]
    newest = session.execute(_rows(query, metric, where).limit(1)).first()
    if newest is None:
        raise _nothing(session, query, metric, asked)
    found = {name: str(getattr(newest, name)) for name in _PLACE}
    where = [getattr(Night, name) == value for name, value in found.items()]
    rows = [
        max(group, key=lambda row: row.gate_version)
        for _, group in groupby(
            session.execute(_rows(query, metric, where)), key=lambda row: row.night_id
        )
    ][::-1]
    points = [_point(row, query) for row in rows]
    accepted = select(Acceptance).filter_by(**found, query=query).order_by(Acceptance.id)
    return History(
        **found,
        query=query,
        metric=metric,
        points=tuple(points),
        changes=tuple(_changes(rows, points)),
        acceptances=tuple(states(list(session.scalars(accepted)), datetime.now(UTC))),
    )


def _rows(query: str, metric: str, where: Sequence[ColumnElement[bool]]) -> Select[Any]:
    """Select the verdicts, the newest night first."""
    columns = [getattr(Night, name) for name in _NIGHT]
    columns += [getattr(VerdictRow, name) for name in _VERDICT]
    return (
        select(*columns, Build.version)
        .join(VerdictRow, VerdictRow.night_id == Night.id)
        .join(Build, Build.id == Night.build_id)
        .where(VerdictRow.query == query, VerdictRow.metric == metric, *where)
        .where(Night.dag_id != BUILD_DAG_ID, Night.candidate_conf.is_(None))
        .order_by(Night.started.desc(), Night.id.desc())
    )


def _point(row: Any, query: str) -> Point:
    baseline = row.baseline_build or ""
    if query == SUITE:
        baseline = " ".join(sorted(set((row.baselines or {}).values())))
    return Point(
        night=row.night_id,
        started=row.started,
        build=row.build_id,
        version=row.version,
        baseline=baseline,
        pairs=row.pairs or 0,
        fresh_pairs=row.fresh_pairs or 0,
        **{name: getattr(row, name) for name in _SAME},
    )


def _changes(rows: Sequence[Any], points: Sequence[Point]) -> list[Change]:
    """Return the change points of the nights with pairs."""
    from nexmark.verdict.chained import Ratio, dated_changes

    paired = [
        (row, point)
        for row, point in zip(rows, points, strict=True)
        if point.mode == PAIRED and point.ratio
    ]
    ratios = [
        Ratio(
            point.night,
            point.build,
            point.baseline,
            math.log(point.ratio or math.nan),
            _deviation(row),
            row.shape,
        )
        for row, point in paired
    ]
    return [
        Change(
            paired[change.index - 1][1], paired[change.index][1], change.ratio, change.confidence
        )
        for change in dated_changes(ratios)
    ]


def _deviation(row: Any) -> float | None:
    """Return the deviation of the ratio that is told: of fresh pairs that of its interval."""
    if row.fresh_pairs and row.lo and row.hi:
        return (math.log(row.hi) - math.log(row.lo)) / _INTERVAL
    noise: float | None = row.noise
    return noise


def _nothing(session: Session, query: str, metric: str, asked: Mapping[str, str]) -> StoreError:
    """Return what is wrong with a request for which there is no night."""
    judged = select(VerdictRow.query).join(Night, Night.id == VerdictRow.night_id)
    judged = judged.where(Night.dag_id != BUILD_DAG_ID, Night.candidate_conf.is_(None)).distinct()
    recorded = set(session.scalars(judged))
    if not recorded:
        return StoreError("no night is judged yet; `make run` first")
    for name, value in asked.items():
        known = sorted(session.scalars(select(getattr(Night, name)).distinct()))
        if value not in known:
            remedy = suggest(value, known)
            return StoreError(f"{name} {value!r}: no night of it is recorded; {remedy}")
    queries = [*KNOWN_QUERIES, SUITE, *sorted(recorded - {*KNOWN_QUERIES, SUITE})]
    if query not in queries:
        return StoreError(f"query {query!r} is not known; {suggest(query, queries)}")
    metrics = {*METRICS, *session.scalars(judged.with_only_columns(VerdictRow.metric))}
    if metric not in metrics:
        return StoreError(f"metric {metric!r} is not known; {suggest(metric, sorted(metrics))}")
    where = [getattr(Night, name) == value for name, value in asked.items()]
    others = session.scalars(judged.where(VerdictRow.metric == metric, *where))
    judged_so = ", ".join(sorted(others, key=queries.index)) or "none"
    of = "".join(f", {name} {value}" for name, value in asked.items())
    return StoreError(
        f"{query}{of}: no night has judged it by {metric}; the queries that were: {judged_so}"
    )


__all__ = ["METRICS", "Change", "History", "Point", "read_history"]
