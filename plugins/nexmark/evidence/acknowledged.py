"""Acceptances: the night, the person, the reason, and the present state."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from datetime import UTC, datetime

from nexmark.store import Store
from nexmark.store.accepting import COUNTS, SUPERSEDED, states
from nexmark.store.table_rows import AcceptanceRow, NightRow


@dataclass(frozen=True)
class Acknowledged:
    """An acceptance and its state; ``covers``: the query whose verdict in the night it covers."""

    row: AcceptanceRow
    state: str
    covers: str | None = None

    @property
    def open(self) -> bool:
        """Whether it can be withdrawn."""
        return self.state in (COUNTS, SUPERSEDED)


def acks_of(store: Store, dags: Collection[str], now: datetime | None = None) -> list[Acknowledged]:
    """Return the acceptances of nights of these DAGs, the newest first."""
    found = states(store.acceptances(), now or datetime.now(UTC))
    return [
        Acknowledged(row, state)
        for row, state in reversed(found)
        if row.night_id.partition("/")[0] in dags
    ]


def acks_for(store: Store, night: NightRow) -> list[Acknowledged]:
    """Return what was accepted for the engine, workload and cluster of a night, oldest first."""
    rows = store.acceptances(night.engine, night.workload, night.cluster)
    covers = {x.acceptance_id: x.query for x in store.verdicts(night.id)}
    return [Acknowledged(row, x, covers.get(row.id)) for row, x in states(rows, datetime.now(UTC))]
