"""Numbers, moments and names as the pages write them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any
from urllib.parse import quote

from nexmark.store.errors import without_secrets

NONE = "–"
BUILD = 12
"""Characters of a build's name that are shown where there is little room."""
_UNITS = ("B", "kB", "MB", "GB", "TB")


def ratio(value: float | None) -> str:
    """Return a ratio: ``1.082``."""
    return NONE if value is None else f"{value:.3f}"


def change(value: float | None) -> str:
    """Return a ratio as a change: ``+8.2 %``."""
    return NONE if value is None else f"{100 * (value - 1):+.1f} %".replace("-", "−")


def percent(value: float | None) -> str:
    """Return a share: ``7.0 %``."""
    return NONE if value is None else f"{100 * value:.1f} %"


def number(value: float | None, digits: int = 2) -> str:
    """Return a figure with thousands separators."""
    return NONE if value is None else f"{value:,.{digits}f}"


def count(value: int | None, one: str, many: str = "") -> str:
    """Return ``1 pair``, ``5 pairs``."""
    return f"{value or 0:,} {one if value == 1 else many or one + 's'}"


def size(value: float | None) -> str:
    """Return bytes with a unit: ``1.0 MB``."""
    if value is None:
        return NONE
    unit = 0
    while value >= 1000 and unit < len(_UNITS) - 1:
        value, unit = value / 1000, unit + 1
    return f"{value:.{1 if unit else 0}f} {_UNITS[unit]}"


def moment(value: datetime | None) -> str:
    """Return a moment in UTC: ``2026-11-21 04:00``."""
    return NONE if value is None else f"{value.astimezone(UTC):%Y-%m-%d %H:%M}"


def day(value: datetime | None) -> str:
    """Return the day of a moment in UTC."""
    return NONE if value is None else f"{value.astimezone(UTC):%Y-%m-%d}"


def short(build: str | None) -> str:
    """Return what a build is told by where there is little room."""
    return (build or NONE)[:BUILD]


def part(text: str) -> str:
    """Return a text as one part of a URL's path."""
    return quote(text, safe="+:~@")


FILTERS: Mapping[str, Callable[..., Any]] = {
    "ratio": ratio,
    "change": change,
    "percent": percent,
    "number": number,
    "count": count,
    "size": size,
    "moment": moment,
    "day": day,
    "short": short,
    "part": part,
    "public": without_secrets,
}
"""By the name that they have in the templates."""

__all__ = [
    "FILTERS",
    "NONE",
    "change",
    "count",
    "day",
    "moment",
    "number",
    "part",
    "percent",
    "ratio",
    "short",
    "size",
]
