"""The red verdicts of a night by the build with which they began, and acceptances with reasons."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from textwrap import shorten

from nexmark.evidence.beginnings import (
    changed_confs,
    changed_setting,
    in_words,
    nothing_changed,
)
from nexmark.evidence.night_rows import NightRows
from nexmark.model import CANDIDATE_JOB, SUITE, Arm, QueryKey, Value, grouped
from nexmark.secrets import without_secrets
from nexmark.store import Store, history
from nexmark.store.accepting import COUNTS, SUPERSEDED, states
from nexmark.store.history import FilterChoices
from nexmark.store.list_filter import EVERYTHING, ListFilter, has_text
from nexmark.store.reading import of_one_moment
from nexmark.store.table_rows import AcceptanceRow, BuildRow, NightRow
from nexmark.verdict.acks import Alarm, Group, group_by_first_bad
from nexmark.verdict.verdict import Verdict

NIGHTS = 100
"""The number of earlier nights in which the beginning of an alarm is searched."""
FEW_NIGHTS = 5
"""In most cases, one of the last few nights before a red one was not red: these are read first."""
NAMED, REASON = 8, 120
"""The largest numbers of queries, and of characters of a reason, of an acceptance in a line."""


def alarm_lines(store: Store, groups: Iterable[Group]) -> list[str]:
    """Return a line per group of alarms: ``since build 4.3.0 .. (night ..): q5 1.120``."""
    return [f"{since_of(store, group)}: {', '.join(map(_alarm, group.alarms))}" for group in groups]


def alarm_groups(store: Store, night: NightRow, verdicts: Sequence[Verdict]) -> list[Group]:
    """Return the red verdicts on a night, grouped by what each began with to be red.

    That is a build, or a later night in which the confs or the workload changed.
    """
    red = {verdict.key for verdict in verdicts if verdict.red}
    if not red:
        return []
    tonight = [verdict for verdict in verdicts if verdict.key in red]
    nights = _back_to_green(store, night, red)
    builds = store.candidates(of_night[0].night for of_night in nights)
    earlier = [(builds[of_night[0].night], of_night) for of_night in nights]
    groups = group_by_first_bad([*earlier, (night.build_id, tonight)])
    return [part for group in groups for part in _by_setting(store, group)]


def _back_to_green(
    store: Store, night: NightRow, red: Collection[QueryKey]
) -> list[Sequence[Verdict]]:
    """Return the verdicts of earlier nights, at least back to where no query was red any more.

    The oldest night comes first. ``red`` has the queries and metrics that are red in ``night``.
    """
    queries, metrics = {key.query for key in red}, {key.metric for key in red}
    nights: list[Sequence[Verdict]] = []
    for limit in (FEW_NIGHTS, NIGHTS):
        earlier = store.earlier(night.id, limit, queries, metrics)
        nights = [of_night for of_night in earlier if of_night]
        verdicts = (verdict for of_night in nights for verdict in of_night)
        green = {verdict.query for verdict in verdicts if verdict.decides and not verdict.bad}
        if queries <= green:
            break
    return nights


def _by_setting(store: Store, group: Group) -> list[Group]:
    """Split off the alarms that began in a later night in which confs or the workload changed."""
    of_build, *later = grouped(group.alarms, lambda alarm: alarm.since).values()
    parts = [of_build]
    for alarms in later:
        night, query = store.night(alarms[0].since), alarms[0].verdict.query
        before = _night_before(store, night)
        if before is not None and _changed_setting(store, night, before, query):
            parts.append(alarms)
        else:
            of_build.extend(alarms)
    return [replace(group, alarms=tuple(alarms)) for alarms in parts]


def since_of(store: Store, group: Group) -> str:
    """Return with what a group of alarms began: a build, confs, a workload, or none of them.

    The first red night is compared with the night before it: ``since build 4.3.0 .. (night ..)``,
    ``since conf spark.a 2 -> 60 (night ..)``. Without a night before it, the build is named, and so
    it is where a person chose the two builds. Where only the candidate had a conf or a changed job,
    the alarm began with that.
    """
    alarm = group.alarms[0]
    build, night = store.build(group.build), store.night(alarm.since)
    name = f"build {build.name}"
    before = _night_before(store, night)
    query = alarm.verdict.query
    changes = [name] if before is None or before.build_id != night.build_id else []
    if tried := _tried(store, night, [each.verdict.query for each in group.alarms]):
        same_build = (night.baselines or {}).get(query) == night.build_id
        changes = [*tried, *([] if same_build else changes)]
    new: Sequence[Mapping[str, str]] = ()
    old: Sequence[Mapping[str, str]] = ()
    if before is not None:
        new, old = _candidate_confs(store, night, before, query)
        changes += changed_setting(night, before, new, old)
    if changes:
        return f"since {' and '.join(dict.fromkeys(changes))} (night {night.id})"
    return f"since night {night.id}, with {nothing_changed(build.name, new, old)}"


def _tried(store: Store, night: NightRow, queries: Sequence[str]) -> list[str]:
    """Return in words what the candidate alone had in a night: changed jobs, confs.

    Args:
        store: The results database.
        night: The night.
        queries: The queries that are red; the confs of the first one are read.
    """
    alone = night.candidate_conf
    if not alone:
        return []
    jobs = [query for query in queries if f"{CANDIDATE_JOB}.{query}" in alone]
    what = "the change of the job" if len(jobs) == 1 else "the changes of the jobs"
    new, old = (_confs(store, night, queries[0], arm) for arm in (Arm.CANDIDATE, Arm.BASELINE))
    confs = [one for one in changed_confs(new, old) if one.name in alone]
    return [*([f"{what} {', '.join(jobs)}"] if jobs else []), *in_words("conf", confs)]


def _night_before(store: Store, night: NightRow) -> NightRow | None:
    """Return the night with which a night is compared to see what was new in it.

    None, too, where a person chose what is compared: the night before was another question.
    """
    if not night.teaches:
        return None
    ((_, before),) = history.with_nights_before(store, [night.id])
    return before


def _changed_setting(store: Store, night: NightRow, before: NightRow, query: str) -> list[str]:
    """Return in words what changed for the candidate of a query since an earlier night."""
    return changed_setting(night, before, *_candidate_confs(store, night, before, query))


def _candidate_confs(
    store: Store, night: NightRow, before: NightRow, query: str
) -> tuple[Sequence[Mapping[str, str]], Sequence[Mapping[str, str]]]:
    """Return the confs with which the candidate ran a query in a night, and in an earlier one.

    Of the suite, they are the confs of the first query of each night.
    """
    asked = {(one.id, one.queries[0] if query == SUITE else query) for one in (night, before)}
    confs = history.candidate_confs(store, asked)
    return confs.get(night.id, ()), confs.get(before.id, ())


def _confs(store: Store, night: NightRow, query: str, arm: Arm) -> list[Mapping[str, str]]:
    """Return the confs of the repetitions of a query in an arm; of the suite, its first query's."""
    query = night.queries[0] if query == SUITE else query
    rows = store.repetitions(night.id, [query], leave_out=("batch_list",))
    return [row.confs for row in rows if row.confs and row.arm == arm]


def _alarm(alarm: Alarm) -> str:
    verdict = alarm.verdict
    size = verdict.value.value if verdict.ratio is None else f"{verdict.ratio:.3f}"
    times = f" ({alarm.nights} nights)" if alarm.nights > 1 else ""
    return f"{verdict.query} {size}{times}"


@dataclass(frozen=True)
class Acknowledged:
    """An acceptance and its state.

    ``covers`` is the query of the night whose verdict the acceptance covers, None if there is none.
    A list of acceptances has the accepted ``build``, the build ``against`` which it was compared,
    and the ``value`` of the verdict; ``red``: this verdict would have failed its night.
    """

    row: AcceptanceRow
    state: str
    covers: str | None = None
    build: BuildRow | None = None
    against: BuildRow | None = None
    value: Value | None = None
    red: bool = False

    @property
    def dag(self) -> str:
        """The DAG of the accepted night."""
        return self.row.night_id.partition("/")[0]

    @property
    def open(self) -> bool:
        """Whether a person can withdraw the acceptance."""
        return self.state in (COUNTS, SUPERSEDED)


def acknowledged(rows: Sequence[AcceptanceRow], at: datetime) -> list[Acknowledged]:
    """Return acceptances with their states at a moment, in the given order."""
    return [Acknowledged(row, state) for row, state in states(rows, at)]


@dataclass(frozen=True)
class AcceptedTogether:
    """What a person accepted at one moment with one reason, and what has one state since then.

    There is an acceptance for each query, at least one.
    """

    acks: tuple[Acknowledged, ...]

    @property
    def first(self) -> Acknowledged:
        """The acceptance of the first query; the others differ only in query, size and covers."""
        return self.acks[0]

    @property
    def queries(self) -> tuple[str, ...]:
        """The queries, in the order in which they were accepted."""
        return tuple(ack.row.query for ack in self.acks)

    @property
    def values(self) -> tuple[Value, ...]:
        """The values of the accepted verdicts, the value that needs attention most first."""
        values = {ack.value for ack in self.acks if ack.value is not None}
        return tuple(sorted(values, key=lambda value: value.attention))

    @property
    def against(self) -> tuple[BuildRow, ...]:
        """The builds with which the accepted build was compared."""
        builds = {ack.against.id: ack.against for ack in self.acks if ack.against is not None}
        return tuple(builds.values())

    @property
    def covers(self) -> tuple[str, ...]:
        """The queries of the night whose verdicts it covers."""
        return tuple(ack.covers for ack in self.acks if ack.covers)

    @property
    def sizes(self) -> tuple[float, ...]:
        """The smallest and the largest ratio; one if they are the same, none if none is known."""
        known = [ack.row.size for ack in self.acks if ack.row.size is not None]
        return tuple(sorted({min(known), max(known)})) if known else ()


def together(acks: Iterable[Acknowledged]) -> list[AcceptedTogether]:
    """Return acceptances with one row for what was accepted together, in the order of the first."""
    groups = grouped(acks, _what_is_shared).values()
    return [AcceptedTogether(tuple(sorted(group, key=lambda ack: ack.row.id))) for group in groups]


def _what_is_shared(ack: Acknowledged) -> tuple[object, ...]:
    """Return what acceptances have in common that are one row for people."""
    row, withdrawal = ack.row, ack.row.withdrawal
    taken_back = withdrawal and (withdrawal.withdrawn, withdrawal.who, withdrawal.reason)
    return row.night_id, row.accepted, ack.state, taken_back


def acks_of(store: Store, dags: Collection[str]) -> list[Acknowledged]:
    """Return the acceptances of the nights of some DAGs, the newest first."""
    newest_first = acknowledged(store.acceptances(), datetime.now(UTC))[::-1]
    return [ack for ack in newest_first if ack.row.night_id.partition("/")[0] in dags]


@dataclass(frozen=True)
class AcksPage:
    """The acceptances that the filter ``wanted`` lets through, the newest first.

    ``total`` is the number of all acceptances that the user may see.
    """

    acks: tuple[Acknowledged, ...]
    total: int
    wanted: ListFilter
    choices: FilterChoices

    @property
    def groups(self) -> list[AcceptedTogether]:
        """The acceptances with one row for what was accepted together."""
        return together(self.acks)


@of_one_moment
def acks_page(store: Store, dags: Collection[str], wanted: ListFilter = EVERYTHING) -> AcksPage:
    """Return the list of the acceptances of the nights of some DAGs."""
    acks = _with_verdicts(store, acks_of(store, dags))
    choices = FilterChoices(
        sorted({ack.row.engine for ack in acks}),
        sorted({ack.row.workload for ack in acks}),
        sorted({ack.row.who for ack in acks}),
    )
    shown = tuple(ack for ack in acks if _is_wanted(ack, wanted))
    return AcksPage(shown, len(acks), wanted, choices)


def _with_verdicts(store: Store, acks: Collection[Acknowledged]) -> list[Acknowledged]:
    """Return acceptances with the verdicts that they accepted, and the builds of these."""
    verdicts = history.accepted_verdicts(store)
    named = {ack.row.build_id for ack in acks} | {one.against for one in verdicts.values()}
    builds = {build.id: build for build in store.builds(filter(None, named))}
    with_verdicts = []
    for ack in acks:
        if (verdict := verdicts.get(ack.row.id)) is not None:
            against = builds.get(verdict.against or "")
            ack = replace(ack, against=against, value=verdict.value, red=verdict.bad)
        with_verdicts.append(replace(ack, build=builds.get(ack.row.build_id or "")))
    return with_verdicts


def _is_wanted(ack: Acknowledged, wanted: ListFilter) -> bool:
    """Tell whether a filter lets an acceptance through."""
    row = ack.row
    asked = (wanted.engine, wanted.workload, wanted.by)
    named = zip(asked, (row.engine, row.workload, row.who), strict=True)
    if any(name and name != value for name, value in named) or (wanted.red and not ack.red):
        return False
    texts = [row.query, row.reason, row.link, row.who, row.cluster, row.night_id, ack.state]
    for build in (ack.build, ack.against):
        texts += [build.id, build.version, build.source, build.revision] if build else []
    return has_text(wanted.search, texts)


def accepted_lines(stored: NightRows, acks: Iterable[Acknowledged] | None = None) -> list[str]:
    """Return a line on what was accepted at one time: ``q4 by ada until 2026-11-30: it is wanted``.

    These are the acceptances that cover a verdict of the night, and those that counted when it
    began and run out: what they accepted is red again then. ``acks`` are what ``acks_for`` returns;
    None to call it.
    """
    acks = acks_for(stored) if acks is None else acks
    ends: set[int] = set()
    if any(row.expires for row in stored.acceptances):
        at = stored.night.started
        before = [row for row in stored.acceptances if row.accepted <= at]
        ends = {row.id for row, state in states(before, at) if state == COUNTS and row.expires}
    named = [ack for ack in acks if ack.covers or ack.row.id in ends]
    return [_accepted_line(group) for group in together(named)]


def _accepted_line(group: AcceptedTogether) -> str:
    """Return in words what was accepted, who did it, until when, and why."""
    row, queries = group.first.row, list(group.queries)
    more = len(queries) - NAMED
    named = ", ".join([*queries[:NAMED], *([f"and {more} more"] if more > 0 else [])])
    until = f" until {row.expires:%Y-%m-%d}" if row.expires else ""
    taken_back = ", withdrawn since" if row.withdrawal else ""
    reason = shorten(without_secrets(row.reason), REASON, placeholder=" ...")
    return f"{named} by {row.who}{until}{taken_back}: {reason}"


def acks_for(stored: NightRows) -> list[Acknowledged]:
    """Return the acceptances for the engine, workload and cluster of a night, oldest first."""
    covers = {verdict.acceptance: verdict.query for verdict in stored.verdicts}
    acceptances = states(stored.acceptances, datetime.now(UTC))
    return [Acknowledged(row, state, covers.get(row.id)) for row, state in acceptances]
