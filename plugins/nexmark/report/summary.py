"""The three lines that matter below the table: what happened, why, and what to do."""

from __future__ import annotations

import math
from collections.abc import Sequence
from textwrap import shorten

from nexmark.report.rows import Row
from nexmark.store.models import Night
from nexmark.verdict import FAILING, Value

NAMED = 8
REASONS = 3
WIDTH = 120
SAID = {
    Value.INVALID: "invalid",
    Value.MISSING: "missing",
    Value.REGRESSION: "slower than the bound allows",
    Value.FASTER: "faster",
    Value.OK: "within the bound",
    Value.CALIBRATING: "not compared",
}


def failed(rows: Sequence[Row]) -> bool:
    """Tell whether the night is red; one without any verdict is."""
    return not any(row.verdict for row in rows) or any(row.verdict in FAILING for row in rows)


def summary(night: Night, rows: Sequence[Row]) -> list[str]:
    """Return three lines: what happened, why, what to do."""
    return [_what(rows), _why(rows), _next(night, rows)]


def _with(rows: Sequence[Row], value: Value) -> list[Row]:
    return [row for row in rows if row.verdict == value]


def _what(rows: Sequence[Row]) -> str:
    if not any(row.verdict for row in rows):
        return "NIGHT NOT JUDGED: no verdict is recorded."
    parts = []
    for value, words in SAID.items():
        found = _with(rows, value)
        if found and value in FAILING:
            parts.append(f"{len(found)} {words} ({_names(found)})")
        elif found:
            parts.append(f"{len(found)} {words}")
    ratios = [row.ratio for row in rows if row.ratio]
    if ratios:
        mean = math.exp(sum(math.log(ratio) for ratio in ratios) / len(ratios))
        parts.append(f"CPU {mean:.3f} of the baseline (geometric mean of {len(ratios)})")
    return f"NIGHT {'FAILED' if failed(rows) else 'OK'}: {'; '.join(parts)}."


def _why(rows: Sequence[Row]) -> str:
    bad = [row for value in SAID for row in _with(rows, value) if value in FAILING]
    if bad:
        reasons = [f"{row.query}: {shorten(row.reason or '', WIDTH)}" for row in bad[:REASONS]]
        more = f" | and {len(bad) - REASONS} more" if len(bad) > REASONS else ""
        return f"Why: {' | '.join(reasons)}{more}"
    runs = list(dict.fromkeys(row.baseline_run for row in rows if row.ratio and row.baseline_run))
    if runs:
        more = f" and {len(runs) - 1} more" if len(runs) > 1 else ""
        return f"Why: every result is right, and compared with {runs[0]}{more}."
    reasons = list(dict.fromkeys(row.reason for row in rows if row.reason))
    return f"Why: {' | '.join(reasons[:REASONS]) or 'the night did not get so far'}."


def _next(night: Night, rows: Sequence[Row]) -> str:
    accept = f"make accept RUN='{night.id}'"
    if invalid := _with(rows, Value.INVALID):
        docs = f"{night.directory}/data_docs/index.html"
        return f"Next: see what is wrong with {invalid[0].query} in {docs}."
    if missing := _with(rows, Value.MISSING):
        return (
            f"Next: read the log of {missing[0].query}'s failed task, put it right, clear the task."
        )
    if slower := _with(rows, Value.REGRESSION):
        place = f"{night.directory}/{slower[0].query}"
        return f"Next: compare plan and batches in {place}; if it is meant to be so: {accept}"
    if _with(rows, Value.CALIBRATING):
        return f"Next: to compare later nights with this one: {accept}"
    return "Next: nothing to do."


def _names(rows: Sequence[Row]) -> str:
    more = ", ..." if len(rows) > NAMED else ""
    return ", ".join(row.query for row in rows[:NAMED]) + more
