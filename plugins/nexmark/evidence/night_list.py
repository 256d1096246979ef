"""The list of nights, newest first."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

from nexmark.evidence.looks import Look, look
from nexmark.store import Store, history
from nexmark.store.history import Tally

GREEN, RED, OPEN = "GREEN", "RED", "NOT JUDGED"
PAGE = 50


@dataclass(frozen=True)
class NightLine:
    """A night in a list, with its verdicts counted by value, the worst first."""

    night: Any
    colour: str
    counts: tuple[tuple[Look, int], ...]
    known: int
    suite: float | None


@dataclass(frozen=True)
class NightsPage:
    """A part of the list; ``page`` of ``pages``, from 1."""

    lines: tuple[NightLine, ...]
    page: int
    pages: int
    total: int


def nights_page(store: Store, dags: Collection[str], page: int = 1) -> NightsPage:
    """Return a part of the list."""
    total = history.count_nights(store, dags)
    pages = max(1, -(-total // PAGE))
    page = min(max(1, page), pages)
    rows = history.nights(store, dags, PAGE, (page - 1) * PAGE)
    return NightsPage(tuple(lines_of(store, rows)), page, pages, total)


def lines_of(store: Store, rows: Collection[Any]) -> list[NightLine]:
    """Return nights with what was said of them."""
    tallies = history.tallies(store, [row.id for row in rows])
    return [line_of(row, tallies.get(row.id)) for row in rows]


def line_of(row: Any, tally: Tally | None) -> NightLine:
    """Return a night with its tally; None where it was not judged."""
    if tally is None:
        return NightLine(row, OPEN, (), 0, None)
    counts = [(look(value), number) for value, number in tally.values.items()]
    counts.sort(key=lambda one: one[0].rank)
    return NightLine(row, RED if tally.red else GREEN, tuple(counts), tally.known, tally.suite)
