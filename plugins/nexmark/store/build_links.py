"""Reads what nights measured of one build against another: the links of a chain of builds."""

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from nexmark.model import FALLS_BACK, SUITE, Mode
from nexmark.store.table_rows import NightRow, VerdictRow
from nexmark.store.verdict_rows import select_verdicts, verdict_of

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


class _Judgement(NamedTuple):
    """Which verdicts of a night count: its newest ``gate`` gave them; ``last`` is the newest id."""

    gate: int
    last: int


class _Facts(NamedTuple):
    """What a link says of its night."""

    build: str
    teaches: bool
    day: str


_OfNight: TypeAlias = "dict[str, Link | None]"
"""The links of a night by query; None where its verdict is no link."""


class KeptLinks:
    """The links of past nights, kept: they stay the same until a gate judges the night again.

    Then its verdicts have other ids. Only the ids of the newest verdicts may come again, so the
    night that has them is not kept.
    """

    def __init__(self) -> None:
        """Keep nothing yet."""
        self._nights: dict[tuple[str, str], tuple[_Judgement, _OfNight]] = {}

    def known(self, metric: str, judged: Mapping[str, _Judgement]) -> dict[str, _OfNight]:
        """Return the links of the nights that are kept as they were judged last."""
        kept = ((night, self._nights.get((night, metric))) for night in judged)
        return {night: one[1] for night, one in kept if one and one[0] == judged[night]}

    def keep(
        self, metric: str, judged: Mapping[str, _Judgement], links: Mapping[str, _OfNight]
    ) -> None:
        """Keep the links of nights, and forget the newest one."""
        newest = max((one.last for one in judged.values()), default=0)
        for night, one in judged.items():
            if one.last == newest:
                self._nights.pop((night, metric), None)
            else:
                self._nights[night, metric] = one, links[night]


def read_links(
    session: Session,
    night: NightRow,
    metric: str,
    queries: Collection[str] | None = None,
    kept: KeptLinks | None = None,
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
        kept: What earlier calls on this database have read; None to read everything.
    """
    columns = select(NightRow.id, NightRow.build_id, NightRow.teaches, NightRow.started)
    comparable = columns.where(
        night.is_comparable(),
        NightRow.started <= night.started,
        NightRow.candidate_conf.is_(None),
    )
    nights = session.execute(comparable.order_by(NightRow.started, NightRow.id)).all()
    facts = {one.id: _Facts(one.build_id, one.teaches, str(one.started.date())) for one in nights}
    if queries is None:
        judged = _judgements(session, facts, None)
        known = kept.known(metric, judged) if kept else {}
        left = {run: one for run, one in judged.items() if run not in known}
        by_night = known | _read(session, facts, metric, None, left)
        if kept:
            kept.keep(metric, judged, by_night)
    else:
        judged = _judgements(session, facts, None if SUITE in queries else queries)
        by_night = _read(session, facts, metric, queries, judged)
    links: dict[str, list[Link]] = {}
    for run in facts:
        for query, link in by_night.get(run, {}).items():
            if link is not None:
                links.setdefault(query, []).append(link)
    return links


def _judgements(
    session: Session, runs: Collection[str], queries: Collection[str] | None
) -> dict[str, _Judgement]:
    """Return by which verdicts nights are judged; nights without any are left out.

    Args:
        session: The session to read with.
        runs: The ids of the nights.
        queries: The only queries whose verdicts are looked at: a gate judges all queries of a
            night, but a suite only if enough of them were compared. None for all verdicts.
    """
    gate, last = func.max(VerdictRow.gate_version), func.max(VerdictRow.id)
    if queries is None:  # to search in each night takes half the time of all rows in groups
        of_night = VerdictRow.night_id == NightRow.id
        newest = select(
            NightRow.id,
            select(gate).where(of_night).correlate(NightRow).scalar_subquery(),
            select(last).where(of_night).correlate(NightRow).scalar_subquery(),
        ).where(NightRow.id.in_(runs))
    else:
        newest = select(VerdictRow.night_id, gate, last).group_by(VerdictRow.night_id)
        newest = newest.where(VerdictRow.night_id.in_(runs), VerdictRow.query.in_(queries))
    judged = session.execute(newest)
    return {run: _Judgement(gate, last) for run, gate, last in judged if gate is not None}


def _read(
    session: Session,
    facts: Mapping[str, _Facts],
    metric: str,
    queries: Collection[str] | None,
    judged: Mapping[str, _Judgement],
) -> dict[str, _OfNight]:
    """Return the links of the nights in ``judged`` by night; see ``read_links``.

    Args:
        session: The session to read with.
        facts: What links say of their nights.
        metric: The metric of the verdicts.
        queries: The queries; None for all, without the suite.
        judged: Which verdicts of each night count.
    """
    from nexmark.verdict.baseline_chain import WILD, Link, link_of, says_enough

    by_night: dict[str, _OfNight] = {run: {} for run in judged}
    if not judged:
        return by_night
    filters = (
        VerdictRow.night_id.in_(judged),
        VerdictRow.gate_version.in_({one.gate for one in judged.values()}),
        VerdictRow.metric.in_((metric, FALLS_BACK.get(metric, metric))),
        VerdictRow.mode == Mode.PAIRED,
        VerdictRow.shift.is_not(None),
        VerdictRow.baseline_build.is_not(None),
        VerdictRow.query != SUITE if queries is None else VerdictRow.query.in_(queries),
    )
    incomplete: set[tuple[str, str, str]] = set()
    wanted = select(*_COLUMNS).where(*filters).order_by(VerdictRow.id)
    rows: Sequence[Any] = session.connection().execute(wanted).all()
    for run, gate, query, by, baseline, shift, noise in rows:
        of_night = by_night[run]
        if gate != judged[run].gate or (by != metric and query in of_night):
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
            if verdict.gate_version == judged[verdict.night].gate and key in incomplete:
                of = facts[verdict.night]
                by_night[verdict.night][verdict.query] = link_of(verdict, of.teaches, of.day)
    return by_night
