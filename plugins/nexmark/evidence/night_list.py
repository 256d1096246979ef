"""Many nights together: how a verdict looks, the list of nights, and the first page.

The first page has a row per engine, a map of queries by nights, and the outcome of every red
verdict. It shows only nights from which the gate learns. A build or a release that a person tests
does not continue the series of nights, so it is not among them.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, timedelta
from functools import cache
from itertools import groupby
from types import MappingProxyType
from typing import NamedTuple, TypeAlias

from nexmark.evidence.beginnings import beginnings
from nexmark.model import Value, grouped
from nexmark.store import Store, history
from nexmark.store.accepting import EXPIRED, WITHDRAWN, states
from nexmark.store.history import AnyNight, FilterChoices, Judged, ListedNight, Tally
from nexmark.store.list_filter import EVERYTHING, ListFilter
from nexmark.store.query_history import RatioPoint
from nexmark.store.reading import of_one_moment
from nexmark.store.table_rows import AcceptanceRow, BuildRow
from nexmark.verdict.verdict import Verdict

GREEN, RED, NOT_JUDGED = "GREEN", "RED", "NOT JUDGED"
NOT_COMPARED = "NOT COMPARED"
"""The colour of a night that is not red, but without a baseline, so that no change can be seen."""


@dataclass(frozen=True)
class ValueLook:
    """How a verdict looks on a page.

    The word and the shape say the same as the colour (``tone``). Lists that are sorted by attention
    have the smallest ``rank`` first.
    """

    word: str
    shape: str
    tone: str
    rank: int
    meaning: str


_SHAPES: Mapping[Value, tuple[str, str]] = {
    Value.INVALID: ("cross", "bad"),
    Value.MISSING: ("hole", "bad"),
    Value.REGRESSION: ("up", "bad"),
    Value.SUSPECT: ("question", "bad"),
    Value.WATCH: ("eye", "warn"),
    Value.SOURCE_BOUND: ("bars", "warn"),
    Value.UNDECIDED: ("wave", "warn"),
    Value.FASTER: ("down", "good"),
    Value.OK: ("check", "good"),
    Value.NO_BASELINE: ("dots", "uncompared"),
}
"""The shape and the tone of each value."""
_UNJUDGED = ValueLook(
    NOT_JUDGED, "hole", "calm", Value.WATCH.attention, "No verdict is recorded (yet)."
)
_KNOWN = 20
"""This is added to the rank of an accepted verdict, which so comes after the open ones."""


@cache
def look(value: Value | None, *, known: bool = False, decides: bool = True) -> ValueLook:
    """Return how a verdict looks.

    Args:
        value: The value of the verdict; None if there is no verdict.
        known: Whether a person has accepted it.
        decides: Whether it can fail the night; a verdict that only informs is never red.
    """
    if value is None:
        return _UNJUDGED
    shape, tone = _SHAPES[value]
    meaning = f"{value.meaning[0].upper()}{value.meaning[1:]}."
    if known:
        return ValueLook(f"{value} (accepted)", shape, "calm", value.attention + _KNOWN, meaning)
    if tone == "bad" and not decides:
        return ValueLook(value, shape, "calm", value.attention, f"{meaning} It only informs.")
    return ValueLook(value, shape, tone, value.attention, meaning)


def look_of(verdict: Verdict) -> ValueLook:
    """Return how a verdict looks, whether it decides or informs."""
    known = verdict.acceptance is not None
    return look(verdict.value, known=known, decides=verdict.decides)


@dataclass(frozen=True)
class Trail:
    """The verdicts of some nights, the oldest first; at least one."""

    points: tuple[RatioPoint, ...]

    @property
    def last(self) -> RatioPoint:
        """The newest verdict."""
        return self.points[-1]

    @property
    def look(self) -> ValueLook:
        """How the newest verdict looks."""
        return look_of(self.last.verdict)


def legend() -> list[ValueLook]:
    """Return how all values look; the value that needs attention most comes first."""
    return [look(value) for value in sorted(Value, key=lambda value: value.attention)]


PAGE = 50
"""The number of nights on a page of the list."""


@dataclass(frozen=True)
class NightLine:
    """A night in a list.

    ``build`` is its candidate. ``counts`` has the number of verdicts by value, the worst value
    first. ``known`` is the number of accepted red verdicts, ``suite`` the ratio of the whole suite.
    ``against`` are the builds that were compared with the candidate, where the list names them.
    """

    night: AnyNight
    build: BuildRow
    colour: str
    counts: tuple[tuple[ValueLook, int], ...]
    known: int
    suite: float | None
    against: tuple[BuildRow, ...] = ()


@dataclass(frozen=True)
class NightsPage:
    """One page of the list of nights; ``page`` is its number, from 1 to ``pages``.

    ``total`` is the number of nights that the filter ``wanted`` lets through.
    """

    lines: tuple[NightLine, ...]
    page: int
    pages: int
    total: int
    wanted: ListFilter
    choices: FilterChoices


@of_one_moment
def nights_page(
    store: Store, dags: Collection[str], page: int = 1, wanted: ListFilter = EVERYTHING
) -> NightsPage:
    """Return a page of the list of nights of some DAGs.

    Args:
        store: The results database.
        dags: The DAGs whose nights are listed.
        page: The number of the page, from 1; a number out of range gives the nearest page.
        wanted: Which of the nights are listed.
    """
    total = history.count_nights(store, dags, wanted)
    pages = max(1, -(-total // PAGE))
    page = min(max(1, page), pages)
    rows = history.nights(store, dags, PAGE, (page - 1) * PAGE, wanted=wanted)
    lines = with_builds(store, lines_of(store, rows))
    return NightsPage(tuple(lines), page, pages, total, wanted, history.filter_choices(store, dags))


def with_builds(store: Store, lines: Collection[NightLine]) -> list[NightLine]:
    """Return the lines of nights with the builds with which each candidate was compared."""
    compared = history.compared_builds(store, [line.night.id for line in lines])
    rows = store.builds(set().union(*compared.values()))
    builds = {build.id: build for build in rows}
    return [
        replace(
            line,
            against=tuple(builds[one] for one in compared[line.night.id] if one in builds),
        )
        for line in lines
    ]


def lines_of(store: Store, nights: Collection[AnyNight]) -> list[NightLine]:
    """Return the lines of nights, with the verdicts on each night counted."""
    tallies = history.tallies(store, nights)
    builds = {build.id: build for build in store.builds({night.build_id for night in nights})}
    return [_line(night, builds[night.build_id], tallies.get(night.id)) for night in nights]


def _line(night: AnyNight, build: BuildRow, tally: Tally | None) -> NightLine:
    """Return the line of a night with its candidate; without a ``tally``, it is not judged."""
    if tally is None:
        return NightLine(night, build, NOT_JUDGED, (), 0, None)
    counts = [(look(value), number) for value, number in tally.values.items()]
    counts.sort(key=lambda one: one[0].rank)
    colour = RED if tally.red else GREEN
    if colour == GREEN and not tally.compared and set(tally.values) == {Value.NO_BASELINE}:
        colour = NOT_COMPARED
    return NightLine(night, build, colour, tuple(counts), tally.known, tally.suite)


NIGHTS = 400
"""The number of newest nights that the first page reads."""
COLUMNS = 50
"""The number of columns in the map; the engines share it. It fits a window of 1280 pixels."""
_NUMBERS = 3
"""The columns that an engine's number of the newest night takes the room of."""
LISTED = 100
"""The number of issues that are listed."""
OPEN, ACCEPTED, REAL, NOISE, UNCLEAR = "open", "accepted", "real", "noise", "unclear"


@dataclass(frozen=True)
class Issue:
    """A query that was red in one night, or in several nights in a row, of one DAG and place.

    The ``outcome`` is one of: open (red when the query was last judged, and not accepted, or not
    any more), accepted, real (red in two nights or more, or gone with another build), noise (the
    same build was not red in the next night), unclear (one INVALID night: the build's result or the
    night's host). ``why`` explains the outcome in words. ``since`` says with what it began, as
    ``beginnings`` does; "" if nobody asked.
    """

    query: str
    first: Judged
    last: Judged
    nights: int
    outcome: str
    why: str
    since: str = ""

    @property
    def look(self) -> ValueLook:
        """How the last of its verdicts looks."""
        return look(self.last.value, known=self.outcome == ACCEPTED)


@dataclass(frozen=True)
class EngineLine:
    """The newest judged night of an engine; its newest night where none is judged.

    ``red`` are the queries with an open red verdict; ``since`` is the verdict with which the oldest
    of them began. ``unjudged`` is the newest night if it has no verdict yet, though earlier nights
    have one: it runs, or it was interrupted.
    """

    line: NightLine
    since: Judged | None
    red: tuple[str, ...]
    unjudged: AnyNight | None


class MapCell(NamedTuple):
    """How the verdict on a query looks, and its ratio candidate / baseline."""

    look: ValueLook
    ratio: float | None


MapColumn: TypeAlias = tuple[ListedNight, Mapping[str, MapCell]]
"""A night in the map, with the verdict on each query."""


class MapWeek(NamedTuple):
    """The nights of a week in the map, the newest first; a week begins on its Monday, in UTC."""

    monday: date
    columns: tuple[MapColumn, ...]


@dataclass(frozen=True)
class EngineMap:
    """The nights of an engine in the map, by week; the newest week comes first."""

    engine: str
    weeks: tuple[MapWeek, ...]

    @property
    def columns(self) -> tuple[MapColumn, ...]:
        """All nights, the newest first."""
        return tuple(column for week in self.weeks for column in week.columns)

    @property
    def newest(self) -> MapColumn:
        """The newest night that has verdicts; if none has any, the newest night."""
        return next((column for column in self.columns if column[1]), self.columns[0])


Ack: TypeAlias = tuple[AcceptanceRow, str]
"""An acceptance and its state."""


@dataclass(frozen=True)
class Overview:
    """The first page.

    ``maps`` has the nights of each engine. ``issues`` are the newest issues, ``more`` is the number
    of the others. ``nights`` is the number of nights that were read, without the ``others``, from
    which the gate does not learn.
    """

    engines: tuple[EngineLine, ...]
    queries: tuple[str, ...]
    maps: tuple[EngineMap, ...]
    issues: tuple[Issue, ...]
    more: int
    nights: int
    others: int

    @property
    def colours(self) -> Mapping[str, int]:
        """The number of engines by the colour of their lines, RED first."""
        counts = Counter(one.line.colour for one in self.engines)
        order = (RED, GREEN, NOT_COMPARED, NOT_JUDGED)
        return {colour: counts[colour] for colour in order if colour in counts}


@of_one_moment
def overview(store: Store, dags: Collection[str]) -> Overview:
    """Return the first page, from the nights of some DAGs."""
    all_nights = history.nights(store, dags, NIGHTS)
    nights = [night for night in all_nights if night.teaches]
    accepted = states(store.acceptances(), datetime.now(UTC))
    reds = history.reds(store, nights)
    issues = issues_of(reds, accepted, store.build_names(red.build for red in reds))
    lines, unjudged = _newest_lines(store, nights)
    engines = [_engine(line, issues, unjudged.get(line.night.id)) for line in lines]
    shown = max(1, COLUMNS // max(1, len(engines)) - _NUMBERS)
    maps = tuple(_map(store, engine, nights, shown) for engine in engines)
    return Overview(
        engines=tuple(engines),
        queries=_queries([column for one in maps for column in one.columns]),
        maps=maps,
        issues=tuple(with_beginnings(store, issues[:LISTED])),
        more=max(0, len(issues) - LISTED),
        nights=len(nights),
        others=len(all_nights) - len(nights),
    )


def _newest_lines(
    store: Store, nights: Sequence[ListedNight]
) -> tuple[list[NightLine], dict[str, AnyNight]]:
    """Return the newest judged night of each engine, and newer nights without a verdict.

    A night that runs or was interrupted does not replace the last verdict. The newer nights are by
    the id of the judged one. ``nights`` are the nights of all engines, the newest first.
    """
    judged = history.judged_nights(store, nights)
    shown: list[AnyNight] = []
    unjudged: dict[str, AnyNight] = {}
    by_engine = grouped(nights, lambda night: (night.engine, night.dag_id))
    for _, of_engine in sorted(by_engine.items()):
        newest = of_engine[0]
        last = next((night for night in of_engine if night.id in judged), newest)
        shown.append(last)
        if last is not newest:
            unjudged[last.id] = newest
    return lines_of(store, shown), unjudged


def _queries(columns: Sequence[MapColumn]) -> tuple[str, ...]:
    """Return the queries of all columns, in the order of the night that has the most queries."""
    lists = [list(night.queries) for night, _ in columns]
    lists += [list(cells) for _, cells in columns]
    most_first = sorted(lists, key=len)[::-1]
    return tuple(dict.fromkeys(query for queries in most_first for query in queries))


def issues_of(
    judged: Iterable[Judged],
    accepted: Sequence[Ack] = (),
    names: Mapping[str, str] = MappingProxyType({}),
) -> list[Issue]:
    """Return the issues with their outcomes, the newest first.

    ``judged`` are deciding verdicts, the oldest night first; ``accepted`` has every acceptance with
    its state; ``names`` has the names of builds by their ids. An issue goes on over nights without
    a verdict on its query, and over nights of another shape or mode: if a query is green on other
    input, it is not repaired.
    """
    acks = grouped(accepted, lambda ack: (_place(ack[0]), ack[0].query))
    issues = []
    for verdicts in grouped(judged, lambda one: one.series).values():
        place, query = verdicts[0].place, verdicts[0].query
        runs = [(bad, list(run)) for bad, run in groupby(verdicts, key=lambda one: one.bad)]
        for number, (bad, reds) in enumerate(runs):
            if bad:
                after = runs[number + 1][1][0] if number + 1 < len(runs) else None
                outcome, why = _outcome(reds, after, acks.get((place, query), ()), names)
                issues.append(Issue(query, reds[0], reds[-1], len(reds), outcome, why))
    issues.sort(key=lambda issue: (len(issue.query), issue.query))
    return sorted(issues, key=lambda issue: issue.last.started, reverse=True)


def with_beginnings(store: Store, issues: Sequence[Issue]) -> list[Issue]:
    """Return issues with what they began with."""
    words = beginnings(store, [issue.first for issue in issues])
    return [replace(issue, since=words[issue.first.night]) for issue in issues]


def _place(acceptance: AcceptanceRow) -> tuple[str, str, str]:
    return acceptance.engine, acceptance.workload, acceptance.cluster


def _outcome(
    reds: Sequence[Judged], after: Judged | None, acks: Iterable[Ack], names: Mapping[str, str]
) -> tuple[str, str]:
    """Return the outcome of red verdicts in a row, and why it is this outcome.

    An acceptance that was withdrawn, or that expired before the last of the verdicts, does not
    cover it: the outcome is as without the acceptance, and the words tell of it.

    Args:
        reds: The verdicts, the oldest first.
        after: The verdict of the next night; None if there is none.
        acks: The acceptances of the query.
        names: The names of builds by their ids.
    """
    nights, covering = {red.night for red in reds}, {red.acceptance for red in reds}
    of_reds = [ack for ack in acks if ack[0].night_id in nights or ack[0].id in covering]
    outcome, why = _without_acceptance(reds, after, names)
    if not of_reds:
        return outcome, why
    acceptance, state = of_reds[-1]
    if state == WITHDRAWN:
        withdrawal = acceptance.withdrawal
        by = f"by {withdrawal.who}: {withdrawal.reason}" if withdrawal else ""
        return outcome, f"{why}; accepted, and taken back {by}".rstrip()
    if state == EXPIRED and not reds[-1].accepted and acceptance.expired(reds[-1].started):
        ran_out = f"ran out on {acceptance.expires:%Y-%m-%d}"
        return outcome, f"{why}; the acceptance by {acceptance.who} {ran_out}"
    until = f" until {acceptance.expires:%Y-%m-%d}" if acceptance.expires else ""
    return ACCEPTED, f"by {acceptance.who}{until}: {acceptance.reason}"


def _without_acceptance(
    reds: Sequence[Judged], after: Judged | None, names: Mapping[str, str]
) -> tuple[str, str]:
    """Return the outcome of red verdicts in a row that nobody accepted, and why it is this one."""
    if after is None:
        return OPEN, "red when it was last judged"
    if after.build != reds[-1].build and len(reds) == 1 and reds[0].value == Value.INVALID:
        return UNCLEAR, f"valid with build {names.get(after.build, after.build)}; see the night"
    if after.build != reds[-1].build:
        return REAL, f"gone with build {names.get(after.build, after.build)}"
    if len(reds) > 1:
        return REAL, f"red in {len(reds)} nights, then gone with the same build"
    return NOISE, "the same build was not red the night after"


def _engine(line: NightLine, issues: Iterable[Issue], unjudged: AnyNight | None) -> EngineLine:
    """Return the newest judged night of an engine with the issues that are open in it.

    ``unjudged`` is a newer night that has no verdict.
    """
    here = [issue for issue in issues if issue.last.night == line.night.id]
    open_ones = [issue for issue in here if issue.outcome == OPEN]
    since = min(
        (issue.first for issue in open_ones), key=lambda verdict: verdict.started, default=None
    )
    return EngineLine(line, since, tuple(issue.query for issue in open_ones), unjudged)


def _map(store: Store, engine: EngineLine, nights: Iterable[ListedNight], most: int) -> EngineMap:
    """Return an engine's part of the map.

    Args:
        store: The results database.
        engine: The engine.
        nights: The nights of all engines, the newest first.
        most: The largest number of columns.
    """
    newest = engine.line.night
    of_engine = [night for night in nights if night.dag_id == newest.dag_id][:most]
    cells: dict[str, dict[str, MapCell]] = {night.id: {} for night in of_engine}
    for verdict in history.judged(store, of_engine):
        seen = look(verdict.value, known=verdict.accepted)
        cells[verdict.night][verdict.query] = MapCell(seen, verdict.ratio)
    weeks = groupby(of_engine, key=lambda night: _monday(night.started))
    return EngineMap(
        newest.engine,
        tuple(
            MapWeek(monday, tuple((night, cells[night.id]) for night in of_week))
            for monday, of_week in weeks
        ),
    )


def _monday(moment: datetime) -> date:
    """Return the Monday of the week of a moment, in UTC."""
    day = moment.astimezone(UTC).date()
    return day - timedelta(days=day.weekday())
