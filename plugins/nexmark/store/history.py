"""Many nights at a time, for people to look at: only the columns that are shown, never all rows.

Nights are those of ``dags``, the DAGs whose runs the reader may see. A verdict is that of the
newest version of the gate that judged the night.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import case, func, select
from sqlalchemy.orm import Session

from nexmark.store.models import Build, CanaryRow, Night, VerdictRow
from nexmark.store.reading import Reader
from nexmark.verdict import FAILING, Value
from nexmark.verdict.nights import SUITE

Row = Any
"""A row of named columns."""

_NIGHT = tuple(
    getattr(Night, name)
    for name in (
        *("id", "dag_id", "run_id", "engine", "workload", "cluster", "build_id", "mode", "shape"),
        *("started", "grade", "repetitions", "queries"),
    )
)


@dataclass(frozen=True)
class Tally:
    """The deciding verdicts of a night by value; ``red`` and ``known`` (accepted) of them."""

    values: dict[str, int]
    red: int
    known: int
    suite: float | None


@dataclass(frozen=True)
class Point:
    """The verdict of one night on one query and metric."""

    night: str
    started: datetime
    build: str
    value: str
    ratio: float | None
    lo: float | None
    hi: float | None
    mde: float | None
    shift: float | None
    noise: float | None
    baseline: str
    acceptance: int | None
    candidate: float | None


def dag_ids(store: Reader) -> list[str]:
    """Return the DAGs that have nights."""
    with store.reading() as session:
        return list(session.scalars(select(Night.dag_id).distinct().order_by(Night.dag_id)))


def nights(
    store: Reader,
    dags: Collection[str],
    limit: int,
    offset: int = 0,
    build: str | None = None,
) -> Sequence[Row]:
    """Return the newest nights first, of a candidate build or of all."""
    query = select(*_NIGHT).where(Night.dag_id.in_(dags))
    if build is not None:
        query = query.where(Night.build_id == build)
    order = (Night.started.desc(), Night.id.desc())
    with store.reading() as session:
        return session.execute(query.order_by(*order).limit(limit).offset(offset)).all()


def directories(store: Reader, rows: Iterable[Row]) -> Sequence[Row]:
    """Return id and run directory of nights."""
    query = select(Night.id, Night.directory).where(Night.id.in_([row.id for row in rows]))
    with store.reading() as session:
        return session.execute(query).all()


def count_nights(store: Reader, dags: Collection[str]) -> int:
    """Return how many nights there are."""
    query = select(func.count()).select_from(Night).where(Night.dag_id.in_(dags))
    with store.reading() as session:
        return session.scalar(query) or 0


def neighbours(store: Reader, night: Night) -> tuple[str | None, str | None]:
    """Return the nights of the same DAG just before and after one."""
    before = select(Night.id).where(Night.dag_id == night.dag_id, Night.started < night.started)
    after = select(Night.id).where(Night.dag_id == night.dag_id, Night.started > night.started)
    with store.reading() as session:
        return (
            session.scalar(before.order_by(Night.started.desc()).limit(1)),
            session.scalar(after.order_by(Night.started).limit(1)),
        )


def tallies(store: Reader, runs: Collection[str]) -> dict[str, Tally]:
    """Return what was said of nights, by night; those that were not judged are left out."""
    found: dict[str, Tally] = {}
    with store.reading() as session:
        newest = _newest(session, runs)
        for row in session.execute(_counts(runs)):
            if row.gate_version != newest[row.night_id]:
                continue
            tally = found.setdefault(row.night_id, Tally({}, 0, 0, None))
            values = tally.values
            values[row.value] = values.get(row.value, 0) + row.number
            found[row.night_id] = Tally(
                values, tally.red + int(row.red or 0), tally.known + int(row.known or 0), None
            )
        for night, version, ratio in session.execute(_suites(runs)):
            if version == newest[night] and night in found:
                old = found[night]
                found[night] = Tally(old.values, old.red, old.known, ratio)
    return found


def trail(store: Reader, night: Night, query: str, metric: str, limit: int) -> list[Point]:
    """Return the verdicts on a query in the comparable nights up to one, oldest first.

    Comparable: the same DAG, engine, workload, cluster, shape and mode, and no setting was tried.
    """
    names = ("value", "ratio", "lo", "hi", "mde", "shift", "noise", "acceptance_id", "candidate")
    columns = [getattr(VerdictRow, name) for name in names]
    baseline = func.coalesce(VerdictRow.baseline_build, VerdictRow.baseline_run, "")
    found = (
        select(Night.id, Night.started, Night.build_id, VerdictRow.gate_version, *columns)
        .add_columns(baseline.label("baseline"))
        .join(VerdictRow, VerdictRow.night_id == Night.id)
        .where(
            VerdictRow.query == query,
            VerdictRow.metric == metric,
            VerdictRow.mode == night.mode,
            Night.dag_id == night.dag_id,
            Night.engine == night.engine,
            Night.workload == night.workload,
            Night.cluster == night.cluster,
            Night.shape == night.shape,
            Night.started <= night.started,
            Night.candidate_conf.is_(None) | (Night.id == night.id),
        )
        .order_by(Night.started.desc(), VerdictRow.gate_version.desc())
        .limit(limit)
    )
    points: dict[str, Point] = {}
    with store.reading() as session:
        for row in session.execute(found):
            values = (row.value, row.ratio, row.lo, row.hi, row.mde, row.shift, row.noise)
            last = (row.baseline, row.acceptance_id, row.candidate)
            points.setdefault(row.id, Point(row.id, row.started, row.build_id, *values, *last))
    return list(points.values())[::-1]


def visible(store: Reader, runs: Collection[str], metric: str) -> Sequence[Row]:
    """Return query, mde and noise of the verdicts on nights, newest night first."""
    query = (
        select(VerdictRow.query, VerdictRow.mde, VerdictRow.noise, VerdictRow.value)
        .join(Night, Night.id == VerdictRow.night_id)
        .where(
            VerdictRow.night_id.in_(runs), VerdictRow.metric == metric, VerdictRow.query != SUITE
        )
        .order_by(Night.started.desc())
    )
    with store.reading() as session:
        return session.execute(query).all()


def hosts(store: Reader, run: str) -> Sequence[Row]:
    """Return least, mean and greatest reading of the canary by host, metric and moment."""
    value = CanaryRow.value
    query = (
        select(
            CanaryRow.host,
            CanaryRow.metric,
            CanaryRow.moment,
            func.min(value).label("least"),
            func.avg(value).label("mean"),
            func.max(value).label("most"),
        )
        .where(CanaryRow.night_id == run)
        .group_by(CanaryRow.host, CanaryRow.metric, CanaryRow.moment)
        .order_by(CanaryRow.host, CanaryRow.metric, CanaryRow.moment)
    )
    with store.reading() as session:
        return session.execute(query).all()


def builds(store: Reader, dags: Collection[str]) -> Sequence[Row]:
    """Return the builds that were candidates, the one that was tested last first."""
    last = func.max(Night.started)
    query = (
        select(
            Build.id,
            Build.version,
            Build.source,
            Build.first_seen,
            func.count().label("nights"),
            func.min(Night.started).label("first"),
            last.label("last"),
        )
        .join(Night, Night.build_id == Build.id)
        .where(Night.dag_id.in_(dags))
        .group_by(Build.id, Build.version, Build.source, Build.first_seen)
        .order_by(last.desc(), Build.id)
    )
    with store.reading() as session:
        return session.execute(query).all()


def compared(store: Reader, runs: Collection[str], metric: str) -> Sequence[Row]:
    """Return the deciding figures of nights by query, newest night first."""
    names = (
        "query",
        "value",
        "ratio",
        "lo",
        "hi",
        "candidate",
        "baseline",
        "basis",
        "baseline_build",
    )
    columns = [getattr(VerdictRow, name) for name in names]
    query = (
        select(VerdictRow.night_id, *columns)
        .join(Night, Night.id == VerdictRow.night_id)
        .where(VerdictRow.night_id.in_(runs), VerdictRow.metric == metric)
        .where(VerdictRow.query != SUITE, VerdictRow.decides)
        .order_by(Night.started.desc(), VerdictRow.gate_version.desc())
    )
    with store.reading() as session:
        return session.execute(query).all()


def _newest(session: Session, runs: Iterable[str]) -> dict[str, int]:
    query = (
        select(VerdictRow.night_id, func.max(VerdictRow.gate_version))
        .where(VerdictRow.night_id.in_(runs))
        .group_by(VerdictRow.night_id)
    )
    return dict(session.execute(query).all())


def _counts(runs: Iterable[str]) -> Any:
    """Count the deciding verdicts by night, version and value; red ones as ``VerdictRow.red``."""
    slower = VerdictRow.ratio.is_(None) | (VerdictRow.ratio > 1)
    bad = VerdictRow.value.in_(FAILING) | ((VerdictRow.value == Value.SUSPECT) & slower)
    known = VerdictRow.acceptance_id.is_not(None)
    return (
        select(
            VerdictRow.night_id,
            VerdictRow.gate_version,
            VerdictRow.value,
            func.count().label("number"),
            func.sum(case((bad & ~known, 1), else_=0)).label("red"),
            func.sum(case((known, 1), else_=0)).label("known"),
        )
        .where(VerdictRow.night_id.in_(runs), VerdictRow.decides)
        .group_by(VerdictRow.night_id, VerdictRow.gate_version, VerdictRow.value)
    )


def _suites(runs: Iterable[str]) -> Any:
    return select(VerdictRow.night_id, VerdictRow.gate_version, VerdictRow.ratio).where(
        VerdictRow.night_id.in_(runs), VerdictRow.query == SUITE, VerdictRow.decides
    )


__all__ = [
    "Point",
    "Tally",
    "builds",
    "compared",
    "count_nights",
    "dag_ids",
    "directories",
    "hosts",
    "neighbours",
    "nights",
    "tallies",
    "trail",
    "visible",
]
