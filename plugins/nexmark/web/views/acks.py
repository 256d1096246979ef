"""What was accepted, by whom and why, and what has become of it."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from datetime import UTC, datetime

from nexmark.store import Store
from nexmark.store.accepting import COUNTS, SUPERSEDED, states
from nexmark.store.models import Acceptance


@dataclass(frozen=True)
class Ack:
    """An acceptance; ``open``: it can be withdrawn."""

    row: Acceptance
    state: str
    open: bool


def acks_of(store: Store, dags: Collection[str], now: datetime | None = None) -> list[Ack]:
    """Return the acceptances of nights of these DAGs, the newest first."""
    found = states(store.acceptances(), now or datetime.now(UTC))
    return [
        Ack(row, state, state in (COUNTS, SUPERSEDED))
        for row, state in reversed(found)
        if row.night_id.partition("/")[0] in dags
    ]


__all__ = ["Ack", "acks_of"]
