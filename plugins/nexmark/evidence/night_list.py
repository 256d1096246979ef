"""Nights side by side: how a verdict looks, the list of nights, and the first page.

The first page has a row per engine, a map of queries by nights, and what became of every red. Only
nights that teach the gate count there: a build or a release that a person tests is no night after
the one before.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import groupby
from typing import Any, TypeAlias

from nexmark.model import Value, grouped
from nexmark.store import Store, history
from nexmark.store.accepting import WITHDRAWN, states
from nexmark.store.history import Judged, Tally
from nexmark.store.reading import of_one_moment
from nexmark.store.table_rows import AcceptanceRow

GREEN, RED, NOT_JUDGED = "GREEN", "RED", "NOT JUDGED"
#: The colour of a night that is not red, and says nothing of a change: there was no baseline.
NOT_COMPARED = "NOT COMPARED"


@dataclass(frozen=True)
class ValueLook:
    """A verdict for the eye; no colour says what the word and the shape do not say."""

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
_KNOWN = 20  # accepted reds come after open ones


def look(value: Value | None, *, known: bool = False) -> ValueLook:
    """Return how a verdict looks; ``known``: somebody has accepted it."""
    if value is None:
        return _UNJUDGED
    shape, tone = _SHAPES[value]
    meaning = f"{value.meaning[0].upper()}{value.meaning[1:]}."
    if known:
        return ValueLook(f"{value} (accepted)", shape, "calm", value.attention + _KNOWN, meaning)
    return ValueLook(value, shape, tone, value.attention, meaning)


def legend() -> list[ValueLook]:
    """Return how all values look, the one that needs attention first at the top."""
    return [look(value) for value in sorted(Value, key=lambda value: value.attention)]


PAGE = 50


@dataclass(frozen=True)
class NightLine:
    """A night in a list, with its verdicts counted by value, the worst first."""

    night: Any
    colour: str
    counts: tuple[tuple[ValueLook, int], ...]
    known: int
    suite: float | None


@dataclass(frozen=True)
class NightsPage:
    """A part of the list; ``page`` of ``pages``, from 1."""

    lines: tuple[NightLine, ...]
    page: int
    pages: int
    total: int


@of_one_moment
def nights_page(store: Store, dags: Collection[str], page: int = 1) -> NightsPage:
    """Return a part of the list."""
    total = history.count_nights(store, dags)
    pages = max(1, -(-total // PAGE))
    page = min(max(1, page), pages)
    rows = history.nights(store, dags, PAGE, (page - 1) * PAGE)
    return NightsPage(tuple(lines_of(store, rows)), page, pages, total)


def lines_of(store: Store, rows: Collection[Any]) -> list[NightLine]:
    """Return nights with what was said of them."""
    tallies = history.tallies(store, rows)
    return [_line(row, tallies.get(row.id)) for row in rows]


def _line(row: Any, tally: Tally | None) -> NightLine:
    if tally is None:
        return NightLine(row, NOT_JUDGED, (), 0, None)
    counts = [(look(value), number) for value, number in tally.values.items()]
    counts.sort(key=lambda one: one[0].rank)
    colour = RED if tally.red else GREEN
    if colour == GREEN and not tally.compared and set(tally.values) == {Value.NO_BASELINE}:
        colour = NOT_COMPARED
    return NightLine(row, colour, tuple(counts), tally.known, tally.suite)


NIGHTS = 400  # the newest nights that are read
COLUMNS = 60  # nights in the map, shared among the engines
LISTED = 100  # reds in the log
OPEN, ACCEPTED, TAKEN_BACK, REAL, NOISE = "open", "accepted", "withdrawn", "real", "noise"


@dataclass(frozen=True)
class Issue:
    """A query that was red in one night, or in several nights in a row, of one DAG and place.

    ``outcome``: open (red when it was last judged), accepted, withdrawn (the acceptance was), real
    (red in two nights or more, or gone with another build), noise (the same build was not red the
    night after). ``why`` says so in words.
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
    """The newest night of an engine; ``since``: the night in which its oldest open red began."""

    line: NightLine
    version: str
    since: Judged | None
    red: tuple[str, ...]


MapColumn: TypeAlias = tuple[Any, Mapping[str, ValueLook]]
"""A night in the map, with how each query looks."""


@dataclass(frozen=True)
class Overview:
    """The morning's answer; ``columns`` are by engine, the newest night of each on the right."""

    engines: tuple[EngineLine, ...]
    queries: tuple[str, ...]
    columns: tuple[tuple[str, tuple[MapColumn, ...]], ...]
    issues: tuple[Issue, ...]
    more: int
    nights: int

    @property
    def red(self) -> int:
        """The number of engines whose newest night is red."""
        return sum(one.line.colour == RED for one in self.engines)


@of_one_moment
def overview(store: Store, dags: Collection[str]) -> Overview:
    """Return the overview of the nights of these DAGs."""
    every = history.nights(store, dags, NIGHTS)
    nights = [night for night in every if night.teaches]
    accepted = states(store.acceptances(), datetime.now(UTC))
    issues = issues_of(history.judged(store, nights, reds=True), accepted)
    newest = {night.dag_id: night for night in reversed(nights)}
    versions = {x.id: x.version for x in store.builds({x.build_id for x in newest.values()})}
    in_order = sorted(newest.values(), key=lambda night: (night.engine, night.dag_id))
    lines = lines_of(store, in_order)
    engines = [_engine(x, versions.get(x.night.build_id, ""), issues) for x in lines]
    shown = COLUMNS // max(1, len(engines))
    columns = tuple(_columns(store, engine, nights, shown) for engine in engines)
    # All queries, in the order of the night that has the most.
    own = [column for _, newest_last in columns for column in newest_last]
    asked = [list(night.queries) for night, _ in own] + [list(cells) for _, cells in own]
    queries = dict.fromkeys(query for each in sorted(asked, key=len)[::-1] for query in each)
    listed, more = tuple(issues[:LISTED]), max(0, len(issues) - LISTED)
    return Overview(tuple(engines), tuple(queries), columns, listed, more, len(every))


def issues_of(
    judged: Iterable[Judged], accepted: Sequence[tuple[AcceptanceRow, str]] = ()
) -> list[Issue]:
    """Return the reds with what became of each, the newest first.

    ``judged`` are deciding verdicts, the oldest night first; ``accepted`` has every acceptance with
    its state. Nights that say nothing of a query are passed over, and so are nights of another
    shape or mode: what is green on other input is not mended.
    """
    acks: Mapping[tuple[tuple[str, ...], str], list[tuple[AcceptanceRow, str]]] = grouped(
        accepted, lambda x: ((x[0].engine, x[0].workload, x[0].cluster), x[0].query)
    )
    found = []
    for verdicts in grouped(judged, lambda one: one.series).values():
        place, query = verdicts[0].place, verdicts[0].query
        runs = [(bad, list(own)) for bad, own in groupby(verdicts, key=lambda one: one.bad)]
        for number, (bad, own) in enumerate(runs):
            if bad:
                after = runs[number + 1][1][0] if number + 1 < len(runs) else None
                outcome = _outcome(own, after, acks.get((place, query), ()))
                found.append(Issue(query, own[0], own[-1], len(own), *outcome))
    found.sort(key=lambda issue: (len(issue.query), issue.query))
    return sorted(found, key=lambda issue: issue.last.started, reverse=True)


def _outcome(
    own: Sequence[Judged], after: Judged | None, acks: Sequence[tuple[AcceptanceRow, str]]
) -> tuple[str, str]:
    nights, covering = {one.night for one in own}, {one.acceptance for one in own}
    made = [x for x in acks if x[0].night_id in nights or x[0].id in covering]
    if made:
        ack, state = made[-1]
        if state != WITHDRAWN:
            return ACCEPTED, f"by {ack.who}: {ack.reason}"
        taken = ack.withdrawal
        by = f"by {taken.who}: {taken.reason}" if taken else ""
        return TAKEN_BACK, f"accepted, and taken back {by}".rstrip()
    if after is None:
        return OPEN, "red when it was last judged"
    if after.build != own[-1].build:
        return REAL, f"gone with build {after.build[:12]}"
    if len(own) > 1:
        return REAL, f"red in {len(own)} nights, then gone with the same build"
    return NOISE, "the same build was not red the night after"


def _engine(line: NightLine, version: str, issues: Iterable[Issue]) -> EngineLine:
    here = [issue for issue in issues if issue.last.night == line.night.id]
    open_ones = [issue for issue in here if issue.outcome in (OPEN, TAKEN_BACK)]
    since = min((issue.first for issue in open_ones), key=lambda x: x.started, default=None)
    return EngineLine(line, version, since, tuple(issue.query for issue in open_ones))


def _columns(
    store: Store, engine: EngineLine, nights: Iterable[Any], most: int
) -> tuple[str, tuple[MapColumn, ...]]:
    newest = engine.line.night
    own = [night for night in nights if night.dag_id == newest.dag_id][:most][::-1]
    cells: dict[str, dict[str, ValueLook]] = {night.id: {} for night in own}
    for one in history.judged(store, own):
        cells[one.night][one.query] = look(one.value, known=one.acceptance is not None)
    return newest.engine, tuple((night, cells[night.id]) for night in own)
