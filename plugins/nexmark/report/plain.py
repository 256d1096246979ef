"""Rows of the results database as plain data, ready for JSON."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any

from nexmark.store.models import Base

_NOT_TO_SHOW = frozenset({"id", "night_id"})


def plain(row: Base, keep: Iterable[str] = (), leave_out: Iterable[str] = ()) -> dict[str, Any]:
    """Return the columns of a row; its ids only where they are to be kept."""
    names = [column.name for column in row.__table__.columns]
    left_out = _NOT_TO_SHOW.union(leave_out).difference(keep)
    return {name: _value(getattr(row, name)) for name in names if name not in left_out}


def moment(value: datetime) -> str:
    """Return a moment as ISO text in UTC."""
    return value.astimezone(UTC).isoformat()


def _value(value: Any) -> Any:
    return moment(value) if isinstance(value, datetime) else value


__all__ = ["moment", "plain"]
