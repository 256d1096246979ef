"""A query over the nights: its ratios, the lasting changes in them, and what was accepted."""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import datetime
from typing import Any

from nexmark.report.past import lasting_changes
from nexmark.store.history import Point
from nexmark.store.models import Acceptance
from nexmark.web.charts import Chart, history_chart
from nexmark.web.verdicts import look
from nexmark.web.words import day, moment, ratio

NIGHTS = 400
"""So far back a query is shown."""


def history_of(
    points: Sequence[Point], changes: Sequence[dict[str, Any]], acceptances: Sequence[Acceptance]
) -> Chart | None:
    """Return the chart of a query; None where no night has a ratio."""
    if not any(point.ratio is not None for point in points):
        return None
    first = points[0].started
    acks = [
        {
            "night": _stamp(row.accepted),
            "label": f"{day(row.accepted)} by {row.who}: {row.reason}",
        }
        for row in acceptances
        if row.accepted >= first
    ]
    return history_chart([_plain(x) for x in points], changes, acks)


def changes_of(points: Sequence[Point]) -> list[dict[str, Any]]:
    """Return the lasting changes, across baselines that moved."""
    return [
        {
            "night": _stamp(night.started),
            "label": f"{day(night.started)}: {ratio(change.before)} → {ratio(change.after)}",
            "run": night.night,
            "build": night.build,
            "before": change.before,
            "after": change.after,
            "confidence": change.confidence,
        }
        for night, change in lasting_changes(points)
    ]


def _plain(point: Point) -> dict[str, Any]:
    known = point.acceptance is not None
    seen = look(point.value, known=known)
    tone = seen.tone if seen.tone in ("bad", "good") and point.value != "OK" else "calm"
    return {
        "night": _stamp(point.started),
        "label": moment(point.started),
        "verdict": seen.word,
        "tone": tone,
        **{name: _rounded(getattr(point, name)) for name in ("ratio", "lo", "hi")},
    }


def _stamp(at: datetime) -> int:
    """Return a moment as the script reads it: milliseconds."""
    return round(at.timestamp() * 1000)


def _rounded(value: float | None) -> float | None:
    return None if value is None or not math.isfinite(value) else round(value, 4)


__all__ = ["NIGHTS", "changes_of", "history_of"]
