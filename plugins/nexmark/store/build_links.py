"""Reads what nights measured of one build against another: the links of a chain of builds."""

from collections.abc import Collection
from typing import TYPE_CHECKING

from sqlalchemy.orm import Session

from nexmark.model import SUITE, Mode
from nexmark.store.table_rows import NightRow, VerdictRow
from nexmark.store.verdict_rows import by_newest_gate, select_verdicts, verdict_of

if TYPE_CHECKING:
    from nexmark.verdict.baseline_chain import Link


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
        metric: The metric of the verdicts.
        queries: The queries to read; None for all, without the suite.
    """
    from nexmark.verdict.baseline_chain import Link, link_of

    wanted = (
        select_verdicts()
        .add_columns(NightRow.started, NightRow.teaches)
        .where(night.is_comparable())
        .where(NightRow.started <= night.started, NightRow.candidate_conf.is_(None))
        .where(VerdictRow.metric == metric, VerdictRow.mode == Mode.PAIRED)
        .where(VerdictRow.shift.is_not(None), VerdictRow.baseline_build.is_not(None))
        .where(by_newest_gate())
        .where(VerdictRow.query != SUITE if queries is None else VerdictRow.query.in_(queries))
        .order_by(NightRow.started, NightRow.id, VerdictRow.id)
    )
    links: dict[str, list[Link]] = {}
    for row, build, started, teaches in session.execute(wanted):
        day = f"{started:%Y-%m-%d}"
        if (link := link_of(verdict_of(row, build), teaches, day)) is not None:
            links.setdefault(row.query, []).append(link)
    return links
