"""The builds that were tested, and any two of them side by side."""

import math
from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from operator import attrgetter
from statistics import fmean, median
from typing import Any, TypeAlias

from nexmark.evidence.night_list import NightLine, lines_of
from nexmark.model import CPU, grouped
from nexmark.store import Store, history
from nexmark.store.reading import of_one_moment
from nexmark.store.table_rows import BuildRow

NIGHTS = 60  # of a build that are compared: its last ones
SHOWN = 200  # builds that are listed: those that were tested last

_Interval: TypeAlias = tuple[float, float | None, float | None]  # a ratio and its interval


@dataclass(frozen=True)
class Compared:
    """One query on two builds.

    ``ratio`` is new / old: of pairs that were measured in turns where ``paired``, with their
    number of nights, else of medians of different nights, which only tells gross changes.
    """

    query: str
    new: float | None
    old: float | None
    ratio: float | None
    lo: float | None
    hi: float | None
    paired: bool
    nights: int


@dataclass(frozen=True)
class BuildComparison:
    """Two builds; the lines with the largest change come first."""

    new: BuildRow
    old: BuildRow
    lines: tuple[Compared, ...]
    paired: int
    mean: float | None
    new_nights: int
    old_nights: int


@of_one_moment
def build_lines(store: Store, dags: Collection[str]) -> list[tuple[Any, NightLine | None]]:
    """Return the builds, each with its last night; the one that was tested last first."""
    builds = history.builds(store, dags)[:SHOWN]
    nights = history.nights(store, dags, 2 * SHOWN)
    newest = {night.build_id: night for night in reversed(nights)}
    lines = {line.night.build_id: line for line in lines_of(store, list(newest.values()))}
    return [(build, lines.get(build.id)) for build in builds]


@of_one_moment
def compare_builds(
    store: Store, dags: Collection[str], new: BuildRow, old: BuildRow
) -> BuildComparison:
    """Return two builds side by side: as pairs where one was the baseline of the other."""
    ours = history.nights(store, dags, NIGHTS, build=new.id)
    theirs = history.nights(store, dags, NIGHTS, build=old.id)
    place = attrgetter("workload", "cluster", "shape")  # nights there and of that input are alike
    one, other = grouped(ours, place), grouped(theirs, place)
    alike = {night.id for x in one.keys() & other.keys() for night in (*one[x], *other[x])}
    rows, others = (
        [x for x in history.figures(store, [night.id for night in nights], CPU) if x.decides]
        for nights in (ours, theirs)
    )
    own, others_own = ([x for x in found if x.night in alike] for found in (rows, others))
    lines = compare(own, others_own, rows, others, new.id, old.id)
    logs = [math.log(line.ratio) for line in lines if line.ratio]
    mean, paired = math.exp(fmean(logs)) if logs else None, sum(line.paired for line in lines)
    return BuildComparison(new, old, tuple(lines), paired, mean, len(ours), len(theirs))


def compare(
    ours: Sequence[Any],
    theirs: Sequence[Any],
    own_pairs: Iterable[Any],
    other_pairs: Iterable[Any],
    new: str,
    old: str,
) -> list[Compared]:
    """Return a line per query.

    ``ours`` and ``theirs`` are verdicts of nights that are alike; the pairs are looked for in all.
    """
    direct: defaultdict[str, list[_Interval]] = defaultdict(list)
    figures, before = _medians(ours), _medians(theirs)
    for row in own_pairs:
        if row.baseline_build == old and row.ratio:
            direct[row.query].append((row.ratio, row.lo, row.hi))
            before.setdefault(row.query, row.baseline)
    for row in other_pairs:
        if row.baseline_build == new and row.ratio and new != old:
            low, high = (1 / x if x else None for x in (row.hi, row.lo))
            direct[row.query].append((1 / row.ratio, low, high))
            figures.setdefault(row.query, row.baseline)
    queries = list(dict.fromkeys([*direct, *figures, *before]))
    lines = [_compared(x, direct[x], figures.get(x), before.get(x)) for x in queries]
    return sorted(lines, key=lambda line: -abs(math.log(line.ratio)) if line.ratio else 1)


def _compared(
    query: str, direct: Sequence[_Interval], ours: float | None, theirs: float | None
) -> Compared:
    if direct:
        ratio = math.exp(median(math.log(one[0]) for one in direct))
        lo, hi = direct[0][1:] if len(direct) == 1 else (None, None)
        return Compared(query, ours, theirs, ratio, lo, hi, True, len(direct))
    ratio_of_medians = ours / theirs if ours and theirs else None
    return Compared(query, ours, theirs, ratio_of_medians, None, None, False, 0)


def _medians(rows: Iterable[Any]) -> dict[str, float | None]:
    """Return the median figure of each query, of nights on the basis that most of them have."""
    known = [row for row in rows if row.candidate is not None]
    best: dict[str, list[Any]] = {}
    for (query, _), own in grouped(known, attrgetter("query", "basis")).items():
        best[query] = max(best.get(query, []), own, key=len)
    return {query: median(row.candidate for row in own) for query, own in best.items()}
