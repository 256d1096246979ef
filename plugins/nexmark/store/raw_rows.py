"""The raw rows of nights: how much room they take, and how they go.

Raw are the repetitions with their parts and CPU series, and the readings of the canary: what the
verdicts were computed from. Verdicts, validations, acceptances, self-tests and what came of an
upgrade are no raw rows, and stay for ever: the gate learns from verdicts.
"""

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from shutil import disk_usage
from typing import Any, cast

from sqlalchemy import Connection, CursorResult, Delete, Engine, delete, exists, func, select
from sqlalchemy.orm import Session

from nexmark.store.connecting import POSTGRESQL, SQLITE
from nexmark.store.table_base import Base
from nexmark.store.table_rows import (
    AcceptanceRow,
    CanaryRow,
    NightRow,
    PartRow,
    PlanRow,
    RepetitionRow,
    SeriesRow,
    VerdictRow,
)

#: Below this share of free pages an SQLite file is not written again: the pages are used again.
WORTH = 0.2
#: VACUUM writes the file twice: to a temporary one, and to the write-ahead log.
_COPIES = 2


@dataclass(frozen=True)
class RawSize:
    """The raw rows of a night: how many, and the bytes of their values."""

    rows: int = 0
    bytes: int = 0


def raw_sizes(session: Session) -> dict[str, RawSize]:
    """Return the size of the raw rows of each night that has some; reads all of them."""
    found: dict[str, RawSize] = {}
    for row in (RepetitionRow, PartRow, SeriesRow, CanaryRow):
        night = getattr(row, "night_id", RepetitionRow.night_id)
        query = select(night, func.count(), func.sum(_width(session, row))).group_by(night)
        if row in (PartRow, SeriesRow):
            query = query.select_from(row).join(RepetitionRow)
        for name, rows, size in session.execute(query):
            before = found.get(name, RawSize())
            found[name] = RawSize(before.rows + rows, before.bytes + int(size or 0))
    return found


def _width(session: Session, row: type[Base]) -> Any:
    """Return the expression for the bytes that the values of a row take."""
    on_server = session.get_bind().dialect.name == POSTGRESQL
    of_value = func.pg_column_size if on_server else func.length
    first, *others = (func.coalesce(of_value(x), 0) for x in row.__table__.columns)
    return sum(others, first)


def compared_runs(session: Session, runs: Collection[str]) -> set[str]:
    """Return the accepted runs that nights were compared with by bounds, without a second arm."""
    query = select(VerdictRow.baseline_run).where(VerdictRow.night_id.in_(runs)).distinct()
    return {run for run in session.scalars(query) if run}


def delete_raw_rows(session: Session, run: str, at: datetime) -> int:
    """Delete the raw rows of a night within a transaction that writes; returns how many went.

    Nothing goes, and 0 is returned, if they are gone already, or if an acceptance that counts at
    the moment `at` names the night: it may be younger than the decision to delete.
    """
    night = session.get(NightRow, run)
    accepted = session.scalars(select(AcceptanceRow).where(AcceptanceRow.night_id == run))
    if night is None or night.rows_pruned or any(not row.over(at) for row in accepted):
        return 0
    of_night = select(RepetitionRow.id).where(RepetitionRow.night_id == run)
    statements = (
        delete(SeriesRow).where(SeriesRow.repetition_id.in_(of_night)),
        delete(PartRow).where(PartRow.repetition_id.in_(of_night)),
        delete(RepetitionRow).where(RepetitionRow.night_id == run),
        delete(CanaryRow).where(CanaryRow.night_id == run),
    )
    gone = sum(_executed(session, statement) for statement in statements)
    night.rows_pruned = at
    return gone


def delete_lost_plans(session: Session) -> int:
    """Delete the executed plans that no repetition refers to; returns how many went."""
    used = exists().where(RepetitionRow.plan_id == PlanRow.id)
    return _executed(session, delete(PlanRow).where(~used))


def _executed(session: Session, statement: Delete) -> int:
    """Delete rows; returns how many went."""
    done = cast(CursorResult[Any], session.execute(statement))
    return int(done.rowcount)


def shrink(engine: Engine) -> int:
    """Give the free pages of an SQLite file back to the disk; returns how many bytes went.

    It is left as it is, and 0 is returned, if few of its pages are free, or if the disk has no room
    for the copy that SQLite writes meanwhile. PostgreSQL uses the room again by itself.
    """
    if engine.dialect.name != SQLITE or not engine.url.database:
        return 0
    file = Path(engine.url.database)
    with engine.connect() as connection:
        free, pages, size = (
            int(connection.exec_driver_sql(f"PRAGMA {name}").scalar() or 0)
            for name in ("freelist_count", "page_count", "page_size")
        )
        connection.rollback()
        left = (pages - free) * size
        if free < pages * WORTH or disk_usage(file.parent).free < _COPIES * left:
            return 0
        checkpoint = "PRAGMA wal_checkpoint(TRUNCATE)"  # from the write-ahead log to the file
        _outside_transactions(connection, checkpoint)
        before = file.stat().st_size
        _outside_transactions(connection, "VACUUM", checkpoint)
    return before - file.stat().st_size


def _outside_transactions(connection: Connection, *statements: str) -> None:
    """Execute statements that SQLite refuses within a transaction."""
    raw: Any = connection.connection.driver_connection
    for statement in statements:
        raw.execute(statement).fetchall()
