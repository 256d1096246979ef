"""What the page of a night depends on, as a key: while it stays the same, so does the page."""

import hashlib
import json
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import TypeAlias

from sqlalchemy import func, select

from nexmark.model import grouped
from nexmark.store.accepting import states
from nexmark.store.reading import Reader
from nexmark.store.table_rows import (
    AcceptanceRow,
    CanaryRow,
    CompatibilityRow,
    NightRow,
    RepetitionRow,
    SelfTestRow,
    ValidationRow,
    VerdictRow,
)

_Table: TypeAlias = (
    type[RepetitionRow]
    | type[ValidationRow]
    | type[CanaryRow]
    | type[CompatibilityRow]
    | type[SelfTestRow]
)
_COUNTED: tuple[_Table, ...] = (
    RepetitionRow,
    ValidationRow,
    CanaryRow,
    CompatibilityRow,
    SelfTestRow,
)
_Newest: TypeAlias = tuple[str, int]
"""When verdicts were given last, and the largest id among them."""


def night_keys(store: Reader, nights: Sequence[NightRow]) -> dict[str, str]:
    """Return the keys of nights, which are all nights, the newest first.

    A key changes with the rows of the night, with a verdict on an earlier night of the same DAG,
    with the nights just before and after it, and with the acceptances in its place.
    """
    rows = [_counts(store, table) for table in _COUNTED]
    verdicts = _newest_verdicts(store)
    accepted = grouped(states(store.acceptances(), datetime.now(UTC)), lambda one: _place(one[0]))
    acks = {place: [(row.id, state) for row, state in of] for place, of in accepted.items()}
    keys = {}
    for of_dag in grouped(nights, lambda night: night.dag_id).values():
        newest: _Newest = ("", 0)
        for place, night in reversed([*enumerate(of_dag)]):
            newest = max(newest, verdicts.get(night.id, newest))
            beside = [each.id for each in of_dag[max(0, place - 1) : place + 2]]
            columns = {each.name: getattr(night, each.name) for each in NightRow.__table__.columns}
            counts = [of_nights.get(night.id) for of_nights in rows]
            parts = (columns, newest, beside, acks.get(_place(night)), counts)
            text = json.dumps(parts, sort_keys=True, default=str)
            keys[night.id] = hashlib.sha256(text.encode()).hexdigest()
    return keys


def _place(row: NightRow | AcceptanceRow) -> tuple[str, str, str]:
    return row.engine, row.workload, row.cluster


def _counts(store: Reader, table: _Table) -> dict[str, tuple[int, int]]:
    """Return the number of rows of each night in a table, and the largest id."""
    columns = table.night_id, func.count(), func.max(table.id)
    with store.reading() as session:
        rows = session.execute(select(*columns).group_by(columns[0]))
        return {night: (count, newest) for night, count, newest in rows}


def _newest_verdicts(store: Reader) -> dict[str, _Newest]:
    """Return when each night was judged last, and its newest verdict."""
    columns = VerdictRow.night_id, func.max(VerdictRow.judged), func.max(VerdictRow.id)
    with store.reading() as session:
        rows = session.execute(select(*columns).group_by(VerdictRow.night_id))
        return {night: (str(judged), newest) for night, judged, newest in rows}
