"""Tables of the results database for the terminal, and the history of a query as CSV."""

from __future__ import annotations

import csv
from typing import TextIO

from nexmark.store.query_history import LevelChange, QueryHistory, RatioPoint
from nexmark.store.table_rows import AcceptanceRow
from nexmark.terminal import columns

TIME = "%Y-%m-%d %H:%M UTC"
BUILD = 19
"""Characters of a build's name that are shown: enough to tell it by."""
SURE = 0.999
"""The highest confidence in a date that is printed."""

_SERIES = ("night", "build", "against", "ratio", "95 % interval", "pairs", "verdict")
_ACCEPTED = ("id", "accepted", "state", "ratio", "run", "by", "reason")
_CSV = (
    *("started", "night", "build", "version", "baseline", "mode", "verdict", "decides", "figure"),
    *("ratio", "lo", "hi", "pairs", "fresh_pairs", "acceptance_id", "change"),
)


def print_history(history: QueryHistory, limit: int) -> None:
    """Print the last ``limit`` nights, all changes and all acceptances."""
    place = f"{history.engine} on {history.workload}, cluster {history.cluster}"
    first, count = history.points[0], len(history.points)
    shown = f", the last {limit}" if count > limit else ""
    print(f"{history.query}, {history.metric}: {place}")
    print(f"{count} nights since {first.started:{TIME}}{shown}")
    print(columns(_SERIES, [_series(point) for point in history.points[-limit:]]))
    print()
    print("changes that lasted:" if history.changes else _no_changes(history))
    for change in history.changes:
        print(f"  {_change(change)}")
    print("acceptances:" if history.acceptances else "acceptances: none")
    if history.acceptances:
        print(columns(_ACCEPTED, [_acceptance(row, state) for row, state in history.acceptances]))


def write_history(history: QueryHistory, stream: TextIO) -> None:
    """Write a row of CSV for each night; ``change`` is the ratio of a change that it begins."""
    changes = {change.first.night: change.change.ratio for change in history.changes}
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(_CSV)
    for point in history.points:
        writer.writerow(
            (
                *(point.started.isoformat(), point.night, point.build, point.version),
                *(point.baseline, point.mode, point.value, point.decides, point.candidate),
                *(point.ratio, point.lo, point.hi, point.pairs, point.fresh_pairs),
                *(point.acceptance, changes.get(point.night)),
            )
        )


def _series(point: RatioPoint) -> tuple[str, ...]:
    fresh = f"+{point.fresh_pairs}" if point.fresh_pairs else ""
    accepted = " (accepted)" if point.acceptance is not None else ""
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


def _build(point: RatioPoint) -> str:
    return f"{point.version} {point.build[:BUILD]}"


def _change(found: LevelChange) -> str:
    change = found.change
    size = abs(change.ratio - 1)
    way = "more" if change.ratio > 1 else "less"
    return (
        f"{found.first.started:{TIME}}  {size:.1%} {way}, {min(change.confidence, SURE):.1%} sure:"
        f" from {_build(found.last)} to {_build(found.first)} (night {found.first.night})"
    )


def _no_changes(history: QueryHistory) -> str:
    if not history.paired:
        return "changes that lasted: not looked for, since none of these nights has pairs"
    return "changes that lasted: none"


def _acceptance(row: AcceptanceRow, state: str) -> tuple[str, ...]:
    size = "-" if row.size is None else f"{row.size:.3f}"
    return str(row.id), f"{row.accepted:{TIME}}", state, size, row.night_id, row.who, row.reason
