"""Tables of the results database for the terminal, and the history of a query as CSV."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from typing import TextIO

from nexmark.store.models import Acceptance
from nexmark.store.query_history import Change, History, Point

TIME = "%Y-%m-%d %H:%M UTC"
BUILD = 19
"""Characters of a build's name that are shown: enough to tell it by."""
SURE = 0.999
"""Nobody is surer than that of a date."""

_SERIES = ("night", "build", "against", "ratio", "95 % interval", "pairs", "verdict")
_ACCEPTED = ("id", "accepted", "state", "ratio", "run", "by", "reason")
_CSV = (
    *("started", "night", "build", "version", "baseline", "mode", "verdict", "decides", "figure"),
    *("ratio", "lo", "hi", "pairs", "fresh_pairs", "acceptance_id", "change"),
)


def print_table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print rows in columns as wide as they have to be; the last column has no end."""
    widths = [max(map(len, column)) for column in zip(heads, *rows, strict=True)]
    for row in (heads, *rows):
        print("  ".join(f"{x:<{width}}" for x, width in zip(row, widths, strict=True)).rstrip())


def print_history(history: History, limit: int) -> None:
    """Print the last ``limit`` nights, all changes and all acceptances."""
    place = f"{history.engine} on {history.workload}, cluster {history.cluster}"
    first, count = history.points[0], len(history.points)
    shown = f", the last {limit}" if count > limit else ""
    print(f"{history.query}, {history.metric}: {place}")
    print(f"{count} nights since {first.started:{TIME}}{shown}")
    print_table(_SERIES, [_series(point) for point in history.points[-limit:]])
    print()
    print("changes that lasted:" if history.changes else _no_changes(history))
    for change in history.changes:
        print(f"  {_change(change)}")
    print("acceptances:" if history.acceptances else "acceptances: none")
    if history.acceptances:
        print_table(_ACCEPTED, [_acceptance(row, state) for row, state in history.acceptances])


def write_history(history: History, stream: TextIO) -> None:
    """Write a row of CSV for each night; ``change`` is the ratio of a change that it begins."""
    changes = {change.first.night: change.ratio for change in history.changes}
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(_CSV)
    for point in history.points:
        writer.writerow(
            (
                *(point.started.isoformat(), point.night, point.build, point.version),
                *(point.baseline, point.mode, point.value, point.decides, point.candidate),
                *(point.ratio, point.lo, point.hi, point.pairs, point.fresh_pairs),
                *(point.acceptance_id, changes.get(point.night)),
            )
        )


def _series(point: Point) -> tuple[str, ...]:
    fresh = f"+{point.fresh_pairs}" if point.fresh_pairs else ""
    accepted = " (accepted)" if point.acceptance_id is not None else ""
    interval = "-"
    if point.lo is not None and point.hi is not None:
        interval = f"{point.lo:.3f} to {point.hi:.3f}"
    return (
        f"{point.started:{TIME}}",
        _build(point),
        "itself" if point.baseline == point.build else point.baseline[:BUILD] or "-",
        "-" if point.ratio is None else f"{point.ratio:.3f}",
        interval,
        "-" if point.ratio is None else f"{point.pairs}{fresh}",
        point.value + accepted,
    )


def _build(point: Point) -> str:
    return f"{point.version} {point.build[:BUILD]}"


def _change(change: Change) -> str:
    size = abs(change.ratio - 1)
    way = "more" if change.ratio > 1 else "less"
    return (
        f"{change.first.started:{TIME}}  {size:.1%} {way}, {min(change.confidence, SURE):.1%} sure:"
        f" from {_build(change.last)} to {_build(change.first)} (night {change.first.night})"
    )


def _no_changes(history: History) -> str:
    if not history.paired:
        return "changes that lasted: not looked for, since none of these nights has pairs"
    return "changes that lasted: none"


def _acceptance(row: Acceptance, state: str) -> tuple[str, ...]:
    size = "-" if row.size is None else f"{row.size:.3f}"
    return str(row.id), f"{row.accepted:{TIME}}", state, size, row.night_id, row.who, row.reason


__all__ = ["BUILD", "TIME", "print_history", "print_table", "write_history"]
