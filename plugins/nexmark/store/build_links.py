"""Reads what nights measured of one build against another: the links of a chain of builds."""

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Any

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from nexmark.model import FALLS_BACK, SUITE, Mode
from nexmark.store.table_rows import NightRow, VerdictRow
from nexmark.store.verdict_rows import newest_gates, select_verdicts, verdict_of

if TYPE_CHECKING:
    from nexmark.verdict.baseline_chain import Link

_COLUMNS = (
    VerdictRow.night_id,
    VerdictRow.gate_version,
    VerdictRow.query,
    VerdictRow.metric,
    VerdictRow.baseline_build,
    VerdictRow.shift,
    VerdictRow.noise,
)
"""What most links are made of."""


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
    from nexmark.verdict.baseline_chain import WILD, Link, link_of, says_enough

    columns = select(NightRow.id, NightRow.build_id, NightRow.teaches, NightRow.started)
    comparable = columns.where(
        night.is_comparable(),
        NightRow.started <= night.started,
        NightRow.candidate_conf.is_(None),
    )
    nights = session.execute(comparable.order_by(NightRow.started, NightRow.id)).all()
    judged = None if queries is None or SUITE in queries else queries
    newest = newest_gates(session, [one.id for one in nights], judged)
    filters = (
        VerdictRow.night_id.in_(newest),
        VerdictRow.gate_version.in_({*newest.values()}),
        VerdictRow.metric.in_((metric, FALLS_BACK.get(metric, metric))),
        VerdictRow.mode == Mode.PAIRED,
        VerdictRow.shift.is_not(None),
        VerdictRow.baseline_build.is_not(None),
        VerdictRow.query != SUITE if queries is None else VerdictRow.query.in_(queries),
    )
    facts = {one.id: (one.build_id, one.teaches, f"{one.started:%Y-%m-%d}") for one in nights}
    by_night: dict[str, dict[str, Link | None]] = {one.id: {} for one in nights}
    incomplete: set[tuple[str, str, str]] = set()
    wanted = select(*_COLUMNS).where(*filters).order_by(VerdictRow.id)
    rows: Sequence[Any] = session.connection().execute(wanted).all()
    for run, gate, query, by, baseline, shift, noise in rows:
        of_night = by_night[run]
        if gate != newest[run] or (by != metric and query in of_night):
            continue
        if says_enough(shift, noise):
            build, teaches, day = facts[run]
            of_night[query] = Link(run, build, baseline, shift, noise, day, teaches)
        else:
            of_night[query] = None
            incomplete.add((run, query, by))
    if incomplete:
        alone = VerdictRow.noise.is_(None) | (func.abs(VerdictRow.shift) > WILD * VerdictRow.noise)
        alone |= VerdictRow.noise == 0
        for row in session.execute(select_verdicts().where(*filters, alone)):
            verdict = verdict_of(row, row.build_id)
            key = (verdict.night, verdict.query, verdict.metric)
            if verdict.gate_version == newest[verdict.night] and key in incomplete:
                _, teaches, day = facts[verdict.night]
                by_night[verdict.night][verdict.query] = link_of(verdict, teaches, day)
    links: dict[str, list[Link]] = {}
    for of_night in by_night.values():
        for query, link in of_night.items():
            if link is not None:
                links.setdefault(query, []).append(link)
    return links
