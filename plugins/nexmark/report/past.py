"""The history of the paired ratio of a query: what each night said, and when it changed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from nexmark.verdict.nights import QueryVerdict

NIGHTS = 100


def history_of(
    query: str, metric: str, nights: Sequence[Sequence[QueryVerdict]]
) -> list[dict[str, Any]]:
    """Return what each night said of a query and metric, oldest first."""
    return [
        {
            "night": verdict.night,
            "value": verdict.value.value,
            "ratio": verdict.ratio,
            "lo": verdict.lo,
            "hi": verdict.hi,
            "shift": verdict.shift,
            "noise": verdict.noise,
            "baseline": verdict.baseline,
        }
        for verdicts in nights
        for verdict in verdicts
        if (verdict.query, verdict.metric) == (query, metric)
    ]


def changes_in(history: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the lasting changes in the last nights that had one and the same baseline."""
    from nexmark.verdict.change_points import change_points

    if not history:
        return []
    last = len(history)
    while last and history[last - 1]["baseline"] == history[-1]["baseline"]:
        last -= 1
    nights = [
        (x["night"], x["shift"], x["noise"]) for x in history[last:] if x["shift"] is not None
    ]
    return [asdict(change) for change in change_points(nights)]


__all__ = ["NIGHTS", "changes_in", "history_of"]
