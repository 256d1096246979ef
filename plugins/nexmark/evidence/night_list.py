"""Many nights together: how a verdict looks, the list of nights, and the first page.

The first page has a row per engine, a map of queries by nights, and the outcome of every red
verdict. It shows only nights from which the gate learns. A build or a release that a person tests
does not continue the series of nights, so it is not among them.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import groupby
from typing import TypeAlias

from nexmark.model import Value, grouped
from nexmark.store import Store, history
from nexmark.store.accepting import WITHDRAWN, states
from nexmark.store.history import AnyNight, Judged, ListedNight, Tally
from nexmark.store.reading import of_one_moment
from nexmark.store.table_rows import AcceptanceRow

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


def look(value: Value | None, *, known: bool = False) -> ValueLook:
    """Return how a verdict looks; ``known``: whether a person has accepted it."""
    if value is None:
        return _UNJUDGED
    shape, tone = _SHAPES[value]
    meaning = f"{value.meaning[0].upper()}{value.meaning[1:]}."
    if known:
        return ValueLook(f"{value} (accepted)", shape, "calm", value.attention + _KNOWN, meaning)
    return ValueLook(value, shape, tone, value.attention, meaning)


def legend() -> list[ValueLook]:
    """Return how all values look; the value that needs attention most comes first."""
    return [look(value) for value in sorted(Value, key=lambda value: value.attention)]


PAGE = 50
"""The number of nights on a page of the list."""


@dataclass(frozen=True)
class NightLine:
    """A night in a list.

    ``counts`` has the number of verdicts by value, the worst value first. ``known`` is the number
    of accepted red verdicts, ``suite`` the ratio of the whole suite.
    """

    night: AnyNight
    colour: str
    counts: tuple[tuple[ValueLook, int], ...]
    known: int
    suite: float | None


@dataclass(frozen=True)
class NightsPage:
    """One page of the list of nights; ``page`` is its number, from 1 to ``pages``."""

    lines: tuple[NightLine, ...]
    page: int
    pages: int
    total: int


@of_one_moment
def nights_page(store: Store, dags: Collection[str], page: int = 1) -> NightsPage:
    """Return a page of the list of nights of some DAGs."""
    total = history.count_nights(store, dags)
    pages = max(1, -(-total // PAGE))
    page = min(max(1, page), pages)
    rows = history.nights(store, dags, PAGE, (page - 1) * PAGE)
    return NightsPage(tuple(lines_of(store, rows)), page, pages, total)


def lines_of(store: Store, nights: Collection[AnyNight]) -> list[NightLine]:
    """Return the lines of nights, with the verdicts on each night counted."""
    tallies = history.tallies(store, nights)
    return [_line(night, tallies.get(night.id)) for night in nights]


def _line(night: AnyNight, tally: Tally | None) -> NightLine:
    """Return the line of a night; ``tally`` is None if the night is not judged."""
    if tally is None:
        return NightLine(night, NOT_JUDGED, (), 0, None)
    counts = [(look(value), number) for value, number in tally.values.items()]
    counts.sort(key=lambda one: one[0].rank)
    colour = RED if tally.red else GREEN
    if colour == GREEN and not tally.compared and set(tally.values) == {Value.NO_BASELINE}:
        colour = NOT_COMPARED
    return NightLine(night, colour, tuple(counts), tally.known, tally.suite)


NIGHTS = 400
"""The number of newest nights that the first page reads."""
COLUMNS = 60
"""The number of nights in the map; the engines share it."""
LISTED = 100
"""The number of issues that are listed."""
LATEST = 10
"""The number of newest nights of an engine among which the last judged one is looked for."""
OPEN, ACCEPTED, TAKEN_BACK, REAL, NOISE = "open", "accepted", "withdrawn", "real", "noise"


@dataclass(frozen=True)
class Issue:
    """A query that was red in one night, or in several nights in a row, of one DAG and place.

    The ``outcome`` is one of: open (red when the query was last judged), accepted, withdrawn (the
    acceptance was withdrawn), real (red in two nights or more, or gone with another build), noise
    (the same build was not red in the next night). ``why`` explains the outcome in words.
    """

    query: str
    first: Judged
    last: Judged
    nights: int
    outcome: str
    why: str

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
    version: str
    since: Judged | None
    red: tuple[str, ...]
    unjudged: AnyNight | None


MapColumn: TypeAlias = tuple[ListedNight, Mapping[str, ValueLook]]
"""A night in the map, with how the verdict on each query looks."""
Ack: TypeAlias = tuple[AcceptanceRow, str]
"""An acceptance and its state."""


@dataclass(frozen=True)
class Overview:
    """The first page.

    ``columns`` has the columns of the map by engine, with the newest night on the left.
    ``issues`` are the newest issues, ``more`` is the number of the others. ``nights`` is the number
    of nights that were read.
    """

    engines: tuple[EngineLine, ...]
    queries: tuple[str, ...]
    columns: tuple[tuple[str, tuple[MapColumn, ...]], ...]
    issues: tuple[Issue, ...]
    more: int
    nights: int

    @property
    def red(self) -> int:
        """The number of engines whose newest judged night is red."""
        return sum(one.line.colour == RED for one in self.engines)


@of_one_moment
def overview(store: Store, dags: Collection[str]) -> Overview:
    """Return the first page, from the nights of some DAGs."""
    all_nights = history.nights(store, dags, NIGHTS)
    nights = [night for night in all_nights if night.teaches]
    accepted = states(store.acceptances(), datetime.now(UTC))
    issues = issues_of(history.judged(store, nights, reds=True), accepted)
    lines, unjudged = _newest_lines(store, nights)
    builds = store.builds({line.night.build_id for line in lines})
    versions = {build.id: build.version for build in builds}
    engines = [
        _engine(line, versions.get(line.night.build_id, ""), issues, unjudged.get(line.night.id))
        for line in lines
    ]
    shown = COLUMNS // max(1, len(engines))
    columns = tuple(_columns(store, engine, nights, shown) for engine in engines)
    return Overview(
        engines=tuple(engines),
        queries=_queries([column for _, of_engine in columns for column in of_engine]),
        columns=columns,
        issues=tuple(issues[:LISTED]),
        more=max(0, len(issues) - LISTED),
        nights=len(all_nights),
    )


def _newest_lines(
    store: Store, nights: Iterable[ListedNight]
) -> tuple[list[NightLine], dict[str, AnyNight]]:
    """Return the newest judged night of each engine, and newer nights without a verdict.

    A night that runs or was interrupted does not replace the last verdict. The newer nights are by
    the id of the judged one. ``nights`` are the nights of all engines, the newest first.
    """
    lines, unjudged = [], {}
    by_engine = grouped(nights, lambda night: (night.engine, night.dag_id))
    for _, of_engine in sorted(by_engine.items()):
        newest, *earlier = lines_of(store, of_engine[:LATEST])
        judged = (line for line in (newest, *earlier) if line.colour != NOT_JUDGED)
        line = next(judged, newest)
        lines.append(line)
        if line is not newest:
            unjudged[line.night.id] = newest.night
    return lines, unjudged


def _queries(columns: Sequence[MapColumn]) -> tuple[str, ...]:
    """Return the queries of all columns, in the order of the night that has the most queries."""
    lists = [list(night.queries) for night, _ in columns]
    lists += [list(cells) for _, cells in columns]
    most_first = sorted(lists, key=len)[::-1]
    return tuple(dict.fromkeys(query for queries in most_first for query in queries))


def issues_of(judged: Iterable[Judged], accepted: Sequence[Ack] = ()) -> list[Issue]:
    """Return the issues with their outcomes, the newest first.

    ``judged`` are deciding verdicts, the oldest night first; ``accepted`` has every acceptance with
    its state. An issue goes on over nights without a verdict on its query, and over nights of
    another shape or mode: if a query is green on other input, it is not repaired.
    """
    acks = grouped(accepted, lambda ack: (_place(ack[0]), ack[0].query))
    issues = []
    for verdicts in grouped(judged, lambda one: one.series).values():
        place, query = verdicts[0].place, verdicts[0].query
        runs = [(bad, list(run)) for bad, run in groupby(verdicts, key=lambda one: one.bad)]
        for number, (bad, reds) in enumerate(runs):
            if bad:
                after = runs[number + 1][1][0] if number + 1 < len(runs) else None
                outcome, why = _outcome(reds, after, acks.get((place, query), ()))
                issues.append(Issue(query, reds[0], reds[-1], len(reds), outcome, why))
    issues.sort(key=lambda issue: (len(issue.query), issue.query))
    return sorted(issues, key=lambda issue: issue.last.started, reverse=True)


def _place(acceptance: AcceptanceRow) -> tuple[str, str, str]:
    return acceptance.engine, acceptance.workload, acceptance.cluster


def _outcome(reds: Sequence[Judged], after: Judged | None, acks: Iterable[Ack]) -> tuple[str, str]:
    """Return the outcome of red verdicts in a row, and why it is this outcome.

    ``after`` is the verdict of the next night, None if there is none; ``acks`` are on the query.
    """
    nights, covering = {red.night for red in reds}, {red.acceptance for red in reds}
    of_reds = [ack for ack in acks if ack[0].night_id in nights or ack[0].id in covering]
    if of_reds:
        acceptance, state = of_reds[-1]
        if state != WITHDRAWN:
            return ACCEPTED, f"by {acceptance.who}: {acceptance.reason}"
        withdrawal = acceptance.withdrawal
        by = f"by {withdrawal.who}: {withdrawal.reason}" if withdrawal else ""
        return TAKEN_BACK, f"accepted, and taken back {by}".rstrip()
    if after is None:
        return OPEN, "red when it was last judged"
    if after.build != reds[-1].build:
        return REAL, f"gone with build {after.build[:12]}"
    if len(reds) > 1:
        return REAL, f"red in {len(reds)} nights, then gone with the same build"
    return NOISE, "the same build was not red the night after"


def _engine(
    line: NightLine, version: str, issues: Iterable[Issue], unjudged: AnyNight | None
) -> EngineLine:
    """Return the newest judged night of an engine with the issues that are open in it.

    Args:
        line: The night.
        version: The version of its candidate.
        issues: All issues.
        unjudged: A newer night that has no verdict.
    """
    here = [issue for issue in issues if issue.last.night == line.night.id]
    open_ones = [issue for issue in here if issue.outcome in (OPEN, TAKEN_BACK)]
    since = min(
        (issue.first for issue in open_ones), key=lambda verdict: verdict.started, default=None
    )
    return EngineLine(line, version, since, tuple(issue.query for issue in open_ones), unjudged)


def _columns(
    store: Store, engine: EngineLine, nights: Iterable[ListedNight], most: int
) -> tuple[str, tuple[MapColumn, ...]]:
    """Return an engine and its columns in the map, the newest night first.

    Args:
        store: The results database.
        engine: The engine.
        nights: The nights of all engines, the newest first.
        most: The largest number of columns.
    """
    newest = engine.line.night
    of_engine = [night for night in nights if night.dag_id == newest.dag_id][:most]
    cells: dict[str, dict[str, ValueLook]] = {night.id: {} for night in of_engine}
    for verdict in history.judged(store, of_engine):
        known = verdict.acceptance is not None
        cells[verdict.night][verdict.query] = look(verdict.value, known=known)
    return newest.engine, tuple((night, cells[night.id]) for night in of_engine)
