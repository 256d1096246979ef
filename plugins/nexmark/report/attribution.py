"""Why a query of a night is slower or faster, from the results database."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict
from textwrap import shorten
from typing import Any

from nexmark.attribution import Attribution, Change, Kind, words
from nexmark.attribution.attribute import attribute
from nexmark.report.rows import Row
from nexmark.store import BASELINE, CANDIDATE, Store
from nexmark.store.models import Night, VerdictRow
from nexmark.verdict import Value

EXPLAINED = 3
"""So many red queries are explained under the table; all are in the evidence."""
WIDTH = 320
_WALL = "wall_s"
_COMPARED = frozenset({CANDIDATE, BASELINE})


def attribution_of(store: Store, run: str, query: str) -> Attribution | None:
    """Return why a query of a run changed; None where there is nothing to compare it with.

    ``run`` is the whole name of a recorded run. The baseline is that of the night where it has one,
    else the accepted run that the verdict is against; ``paired`` says which. Reads the results
    database only.
    """
    verdicts = [row for row in store.verdicts(run) if row.query == query]
    return _attribution(store, run, query, verdicts)


def attributions(store: Store, night: Night, queries: Iterable[str]) -> dict[str, Attribution]:
    """Return the attributions of some queries of a night, by query, where there are any."""
    verdicts: dict[str, list[VerdictRow]] = {}
    for row in store.verdicts(night.id):
        verdicts.setdefault(row.query, []).append(row)
    found = {x: _attribution(store, night.id, x, verdicts.get(x, ())) for x in queries}
    return {query: one for query, one in found.items() if one is not None}


def attribution_lines(store: Store, night: Night, rows: Sequence[Row]) -> list[str]:
    """Return a line on each of the first red queries, and one on plans that changed unnoticed."""
    red = [row.query for row in rows if row.red and row.ratio]
    lines = []
    for query, one in attributions(store, night, red[:EXPLAINED]).items():
        why = words(one)
        if why:
            lines.append(
                f"Why {query}: {one.kind.value}: {shorten(why, WIDTH, placeholder=' ...')}."
            )
    changed = [
        row.query for row in rows if not row.red and row.query in changed_plans(store, night)
    ]
    if changed:
        lines.append(
            f"Plan: other operators than the baseline's, same speed: {', '.join(changed)}."
        )
    return lines


def changed_plans(store: Store, night: Night) -> frozenset[str]:
    """Return the queries whose arms had other operators, of a night with both arms."""
    return frozenset(
        query
        for query, arms in store.plan_hashes(night.id).items()
        if arms.keys() >= _COMPARED and arms[CANDIDATE] != arms[BASELINE]
    )


def attribution_json(
    store: Store, night: Night, queries: Sequence[str] | None = None
) -> dict[str, Any]:
    """Return the attribution of queries of a night, by default of all, ready for JSON."""
    found = attributions(store, night, night.queries if queries is None else queries)
    return {
        query: {"words": words(one), **asdict(one), "contribution": one.contribution}
        for query, one in found.items()
        if one.kind is not Kind.NOTHING or one.confs or one.parts
    }


def _attribution(
    store: Store, run: str, query: str, verdicts: Sequence[VerdictRow]
) -> Attribution | None:
    deciding = next((row for row in verdicts if row.decides), None)
    wall = next((row for row in verdicts if row.metric == _WALL), None)
    arms = store.observed(run, query, (CANDIDATE, BASELINE))
    baseline, paired = arms[BASELINE], True
    if not baseline and deciding is not None and deciding.baseline_run:
        other = store.observed(deciding.baseline_run, query, (CANDIDATE,))
        baseline, paired = other[CANDIDATE], False
    return attribute(
        query,
        arms[CANDIDATE],
        baseline,
        stated=_stated(deciding),
        verdict=Value(deciding.value) if deciding else None,
        wall_verdict=Value(wall.value) if wall else None,
        paired=paired,
    )


def _stated(verdict: VerdictRow | None) -> Change | None:
    if verdict is None or verdict.ratio is None:
        return None
    return Change(verdict.ratio, verdict.lo, verdict.hi)


__all__ = [
    "attribution_json",
    "attribution_lines",
    "attribution_of",
    "attributions",
    "changed_plans",
]
