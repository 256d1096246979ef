"""All queries of a place side by side: the last nights of each, its last change, and the sum."""

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass

from nexmark.config import KNOWN_QUERIES
from nexmark.errors import NexmarkError
from nexmark.evidence.creep import FIRST, RELEASE, chains_since, is_day
from nexmark.evidence.night_list import Trail
from nexmark.evidence.query_evidence import source_of
from nexmark.model import SUITE, grouped
from nexmark.secrets import without_secrets
from nexmark.store import Store
from nexmark.store.place_history import (
    MeasuredPlace,
    Place,
    place_baselines,
    place_nights,
    place_points,
    places,
)
from nexmark.store.query_history import LevelChange, RatioPoint, lasting_changes
from nexmark.store.reading import of_one_moment
from nexmark.store.table_rows import BuildRow
from nexmark.verdict.baseline_chain import Chain

NIGHTS = 60
"""The number of last nights that are drawn, and in which the last change is searched."""
OFFERED = 40
"""The number of builds that are offered as the beginning of a sum."""


@dataclass(frozen=True, kw_only=True)
class GridLine(Trail):
    """A query of the grid; its ``points`` are the verdicts of the last nights, the oldest first.

    ``change`` is its last lasting change, ``since`` the change since the build that was asked for.
    ``place`` is the place of the query in the usual order.
    """

    query: str
    title: str
    change: LevelChange | None
    since: Chain | None
    place: int

    @property
    def ratio(self) -> float | None:
        """The ratio by which the line is sorted: the sum that was asked for, else the last one."""
        return self.since.ratio if self.since else self.last.verdict.ratio


@dataclass(frozen=True)
class QueryGrid:
    """All queries of a place.

    ``nights`` is the number of nights that were read. ``since`` is the beginning that was asked
    for, "" for none; ``baselines`` are the builds with which a sum may begin. ``named`` has the
    candidates of all nights by their ids.
    """

    place: Place
    places: tuple[MeasuredPlace, ...]
    lines: tuple[GridLine, ...]
    nights: int
    sort: str
    since: str
    baselines: tuple[BuildRow, ...]
    named: Mapping[str, BuildRow]

    @property
    def is_day(self) -> bool:
        """Whether the beginning is a day."""
        return is_day(self.since)

    @property
    def since_words(self) -> str:
        """What the sums are: the heading of their column."""
        named = {"": "Against its baseline", FIRST: "Since the first baseline"}
        named |= {RELEASE: "Since the last release"}
        named |= {build.id: f"Since {without_secrets(build.version)}" for build in self.baselines}
        return named.get(self.since, f"Since {self.since}")


def _size(ratio: float | None) -> float:
    return abs(math.log(ratio)) if ratio else 0.0


GRID_SORTS: Mapping[str, Callable[[GridLine], tuple[float, ...]]] = {
    "attention": lambda line: (line.look.rank, -_size(line.last.verdict.ratio), line.place),
    "query": lambda line: (line.place,),
    "change": lambda line: (-_size(line.change.change.ratio) if line.change else 1, line.place),
    "date": lambda line: (
        -line.change.first.started.timestamp() if line.change else math.inf,
        line.place,
    ),
    "since": lambda line: (line.ratio is None, -(line.ratio or 0), line.place),
}
"""The keys of the orders that the page offers: "change" is by the size of the last change, "date"
by its date, "since" by the change since a build."""


@of_one_moment
def query_grid(
    store: Store, dags: Collection[str], asked: Place, since: str = "", sort: str = ""
) -> QueryGrid | None:
    """Return all queries of a place; None if there is no judged night in it.

    Args:
        store: The results database.
        dags: The DAGs whose nights count.
        asked: The place; of several, the one that was measured last.
        since: Where the sums of changes begin: "" for none, or as ``chains_since`` takes it.
        sort: The order, one of ``GRID_SORTS``; by attention for any other.

    Raises:
        NexmarkError: There is no such beginning.
    """
    measured = places(store, dags)
    place = next((one.place for one in measured if asked.has(one.place)), None)
    if place is None:
        return None
    nights = place_nights(store, dags, place, NIGHTS)
    points = place_points(store, nights)
    if not points:
        nights = place_nights(store, dags, place, NIGHTS, taught=False)
        points = place_points(store, nights)
    baselines = place_baselines(store, dags, place)[:OFFERED]
    _check(since, baselines)
    sums = _sums(store, points, since)
    sort = sort if sort in GRID_SORTS else "attention"
    lines = _lines(points, sums)
    return QueryGrid(
        place=place,
        places=tuple(measured),
        lines=tuple(sorted(lines, key=GRID_SORTS[sort])),
        nights=len(nights),
        sort=sort,
        since=since,
        baselines=tuple(baselines),
        named={row.id: row for row in store.builds({night.build_id for night in nights})},
    )


def _check(since: str, baselines: Sequence[BuildRow]) -> None:
    """Refuse a beginning that does not exist; NexmarkError says what there is."""
    if since in ("", FIRST, RELEASE, *(build.id for build in baselines)) or is_day(since):
        return
    raise NexmarkError(
        f"since: {since!r} is no day (2026-10-01), and no build with which queries were compared"
        " here; choose one from the list of the page"
    )


def _sums(store: Store, points: Sequence[RatioPoint], since: str) -> dict[str, Chain]:
    """Return the change of each query since a beginning; {} if none was asked for."""
    if not since or not points:
        return {}
    newest = points[-1].verdict
    return chains_since(store, store.night(newest.night), newest.metric, since)


def _lines(points: Sequence[RatioPoint], sums: Mapping[str, Chain]) -> list[GridLine]:
    """Return the lines of all queries, in the usual order."""
    by_query = grouped(points, lambda point: point.verdict.query)
    order = [*KNOWN_QUERIES, *by_query, SUITE]
    return [
        GridLine(
            query=query,
            title=_title(query),
            points=tuple(by_query[query]),
            change=next(reversed(lasting_changes(by_query[query])), None),
            since=sums.get(query),
            place=place,
        )
        for place, query in enumerate(dict.fromkeys(order))
        if query in by_query
    ]


def _title(query: str) -> str:
    source = source_of(query)
    return source.title if source else ""
