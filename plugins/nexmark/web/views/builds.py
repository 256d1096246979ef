"""The builds that were tested, and any two of them side by side."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

from nexmark.store import Store, history
from nexmark.store.models import Build
from nexmark.store.records import CPU
from nexmark.web.bars import Bar, bar, scale_of
from nexmark.web.views.nights import NightLine, lines_of

NIGHTS = 60
"""Of a build that are compared: its last ones."""
SHOWN = 200
"""Builds that are listed: those that were tested last."""


@dataclass(frozen=True)
class BuildLine:
    """A build, and its last night."""

    build: Any
    last: NightLine | None


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
    bar: Bar | None


@dataclass(frozen=True)
class ComparePage:
    """Two builds; the lines with the largest change come first."""

    new: Build
    old: Build
    lines: tuple[Compared, ...]
    paired: int
    mean: float | None
    new_nights: int
    old_nights: int


def build_lines(store: Store, dags: Collection[str]) -> list[BuildLine]:
    """Return the builds, the one that was tested last first."""
    builds = history.builds(store, dags)[:SHOWN]
    nights = history.nights(store, dags, 2 * SHOWN)
    newest: dict[str, Any] = {}
    for night in nights:
        newest.setdefault(night.build_id, night)
    lines = {line.night.build_id: line for line in lines_of(store, list(newest.values()))}
    return [BuildLine(build, lines.get(build.id)) for build in builds]


def compare_page(store: Store, dags: Collection[str], new: Build, old: Build) -> ComparePage:
    """Return two builds side by side: as pairs where one was the baseline of the other."""
    ours = history.nights(store, dags, NIGHTS, build=new.id)
    theirs = history.nights(store, dags, NIGHTS, build=old.id)
    alike = _alike(ours, theirs)
    rows = history.compared(store, [night.id for night in ours], CPU)
    others = history.compared(store, [night.id for night in theirs], CPU)
    lines = compare(_of(rows, alike), _of(others, alike), rows, others, new.id, old.id)
    logs = [math.log(line.ratio) for line in lines if line.ratio]
    return ComparePage(
        new,
        old,
        tuple(lines),
        sum(line.paired for line in lines),
        math.exp(sum(logs) / len(logs)) if logs else None,
        len(ours),
        len(theirs),
    )


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
    direct: dict[str, list[tuple[float, float | None, float | None]]] = {}
    figures, before = _medians(ours), _medians(theirs)
    for row in own_pairs:
        if row.baseline_build == old and row.ratio:
            direct.setdefault(row.query, []).append((row.ratio, row.lo, row.hi))
            before.setdefault(row.query, row.baseline)
    for row in other_pairs:
        if row.baseline_build == new and row.ratio and new != old:
            low, high = (1 / x if x else None for x in (row.hi, row.lo))
            direct.setdefault(row.query, []).append((1 / row.ratio, low, high))
            figures.setdefault(row.query, row.baseline)
    queries = list(dict.fromkeys([*direct, *figures, *before]))
    found = [_compared(x, direct.get(x, []), figures.get(x), before.get(x)) for x in queries]
    scale = scale_of(x for line in found for x in (line[3], line[4], line[5]))
    lines = [Compared(*line, bar=bar(scale, line[3], line[4], line[5])) for line in found]
    return sorted(lines, key=lambda line: -abs(math.log(line.ratio)) if line.ratio else 1)


def _compared(
    query: str,
    direct: Sequence[tuple[float, float | None, float | None]],
    ours: float | None,
    theirs: float | None,
) -> tuple[str, float | None, float | None, float | None, float | None, float | None, bool, int]:
    if direct:
        ratio = math.exp(median(math.log(one[0]) for one in direct))
        last = direct[0] if len(direct) == 1 else (ratio, None, None)
        return query, ours, theirs, ratio, last[1], last[2], True, len(direct)
    ratio_of_medians = ours / theirs if ours and theirs else None
    return query, ours, theirs, ratio_of_medians, None, None, False, 0


def _alike(ours: Iterable[Any], theirs: Iterable[Any]) -> set[str]:
    """Return the nights of either build that were measured on the same place and input."""

    def places(nights: Iterable[Any]) -> dict[tuple[str, ...], list[str]]:
        found: dict[tuple[str, ...], list[str]] = {}
        for night in nights:
            found.setdefault((night.workload, night.cluster, night.shape), []).append(night.id)
        return found

    one, other = places(ours), places(theirs)
    shared = one.keys() & other.keys()
    return {night for place in shared for night in (*one[place], *other[place])}


def _of(rows: Iterable[Any], nights: set[str]) -> list[Any]:
    return [row for row in rows if row.night_id in nights]


def _medians(rows: Iterable[Any]) -> dict[str, float | None]:
    """Return the median figure of each query, of nights on the basis that most of them have."""
    found: dict[tuple[str, str | None], list[float]] = {}
    for row in rows:
        if row.candidate is not None:
            found.setdefault((row.query, row.basis), []).append(row.candidate)
    best: dict[str, list[float]] = {}
    for (query, _), values in found.items():
        if len(values) > len(best.get(query, ())):
            best[query] = values
    return {query: median(values) for query, values in best.items()}


__all__ = ["BuildLine", "ComparePage", "Compared", "build_lines", "compare", "compare_page"]
