"""Reads what nights measured of one build against another: the links of a chain of builds."""

from collections.abc import Collection
from typing import TYPE_CHECKING, NamedTuple, cast

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from nexmark.model import FALLS_BACK, SUITE, Mode
from nexmark.store.table_rows import NightRow, VerdictRow
from nexmark.store.verdict_rows import newest_gates

if TYPE_CHECKING:
    from nexmark.verdict.baseline_chain import Link
    from nexmark.verdict.verdict import Verdict

_COLUMNS = (
    VerdictRow.night_id.label("night"),
    VerdictRow.gate_version,
    VerdictRow.query,
    VerdictRow.metric,
    VerdictRow.baseline_build,
    VerdictRow.shift,
    VerdictRow.spread,
    VerdictRow.noise,
    func.coalesce(VerdictRow.pairs, 0).label("pairs"),
    func.coalesce(VerdictRow.fresh_pairs, 0).label("fresh_pairs"),
    VerdictRow.ratio,
    VerdictRow.lo,
    VerdictRow.hi,
)
"""The fields of a verdict that a link takes."""


def read_links(
    session: Session, night: NightRow, metric: str, queries: Collection[str] | None = None
) -> "dict[str, list[Link]]":
    """Return the links by query, up to a night and with this night, oldest first.

    A link is the verdict of a comparable night by the newest gate that judged it: nights of another
    workload, cluster or engine are another chain. Nights that a person started count, too; nights
    that tried a setting do not.

    Args:
        session: The session to read with.
        night: The last night of the chain.
        metric: The metric of the verdicts; a night without it gives the one that it falls back to.
        queries: The queries to read; None for all, without the suite.
    """
    from nexmark.verdict.baseline_chain import Link, link_of

    columns = select(NightRow.id, NightRow.build_id, NightRow.teaches, NightRow.started)
    comparable = columns.where(
        night.is_comparable(),
        NightRow.started <= night.started,
        NightRow.candidate_conf.is_(None),
    )
    nights = session.execute(comparable.order_by(NightRow.started, NightRow.id)).all()
    newest = newest_gates(session, [one.id for one in nights])
    wanted = (
        select(*_COLUMNS)
        .where(VerdictRow.night_id.in_(newest), VerdictRow.gate_version.in_({*newest.values()}))
        .where(VerdictRow.metric.in_((metric, FALLS_BACK.get(metric, metric))))
        .where(VerdictRow.mode == Mode.PAIRED)
        .where(VerdictRow.shift.is_not(None), VerdictRow.baseline_build.is_not(None))
        .where(VerdictRow.query != SUITE if queries is None else VerdictRow.query.in_(queries))
        .order_by(VerdictRow.id)
    )
    facts = {one.id: (one.build_id, one.teaches, f"{one.started:%Y-%m-%d}") for one in nights}
    by_night: dict[str, dict[str, Link]] = {one.id: {} for one in nights}
    for row in session.connection().execute(wanted).all():
        build, teaches, day = facts[row[0]]
        verdict = _Compared._make((*row, build))
        of_night = by_night[verdict.night]
        if verdict.gate_version != newest[verdict.night]:
            continue
        if verdict.metric != metric and verdict.query in of_night:
            continue
        if link := link_of(cast("Verdict", verdict), teaches, day):
            of_night[verdict.query] = link
    links: dict[str, list[Link]] = {}
    for of_night in by_night.values():
        for query, link in of_night.items():
            links.setdefault(query, []).append(link)
    return links


class _Compared(NamedTuple):
    """``_COLUMNS`` and the build of the night; they mean the same as in Verdict."""

    night: str
    gate_version: int
    query: str
    metric: str
    baseline_build: str
    shift: float
    spread: float
    noise: float
    pairs: int
    fresh_pairs: int
    ratio: float
    lo: float
    hi: float
    build: str
