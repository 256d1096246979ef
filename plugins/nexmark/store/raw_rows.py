"""The raw rows of nights: measures how much room they take, and deletes them.

Raw rows are the repetitions with their parts and CPU series, and the readings of the canary: the
verdicts were computed from them. Verdicts, validations, acceptances, self-tests and the results of
upgrades are not raw rows, and are never deleted: the gate learns from verdicts.
"""

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from shutil import disk_usage

from sqlalchemy import (
    ColumnElement,
    Connection,
    Delete,
    Engine,
    delete,
    exists,
    func,
    select,
)
from sqlalchemy.orm import Session

from nexmark.store.connecting import POSTGRESQL, SQLITE, sqlite_connection
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

#: An SQLite file with a smaller share of free pages is not shrunk: new rows will use these pages.
MIN_FREE_SHARE = 0.2
#: VACUUM writes the database twice: to a temporary file, and to the write-ahead log.
_COPIES = 2


@dataclass(frozen=True)
class RawSize:
    """The number of raw rows of a night, and the size of their values in bytes."""

    rows: int = 0
    bytes: int = 0


def raw_sizes(session: Session) -> dict[str, RawSize]:
    """Return the size of the raw rows by night; nights without raw rows are left out.

    The database reads all raw rows for this.
    """
    sizes: dict[str, RawSize] = {}
    for row in (RepetitionRow, PartRow, SeriesRow, CanaryRow):
        night = getattr(row, "night_id", RepetitionRow.night_id)
        query = select(night, func.count(), func.sum(_width(session, row))).group_by(night)
        if row in (PartRow, SeriesRow):
            query = query.select_from(row).join(RepetitionRow)
        for name, rows, size in session.execute(query):
            before = sizes.get(name, RawSize())
            sizes[name] = RawSize(before.rows + rows, before.bytes + int(size or 0))
    return sizes


def _width(session: Session, row: type[Base]) -> ColumnElement[int]:
    """Return the SQL expression for the size of a row's values in bytes."""
    on_server = session.get_bind().dialect.name == POSTGRESQL
    of_value = func.pg_column_size if on_server else func.length
    width: ColumnElement[int]
    width, *others = (func.coalesce(of_value(column), 0) for column in row.__table__.columns)
    for other in others:
        width = width + other
    return width


def compared_runs(session: Session, runs: Collection[str]) -> set[str]:
    """Return the accepted runs with which nights without a baseline arm were compared."""
    query = select(VerdictRow.baseline_run).where(VerdictRow.night_id.in_(runs)).distinct()
    return {run for run in session.scalars(query) if run}


def delete_raw_rows(session: Session, run: str, at: datetime) -> int:
    """Delete the raw rows of a night, and return how many rows were deleted.

    The session must be in a transaction that writes. Deletes nothing and returns 0 if the raw rows
    were deleted before, or if the night is accepted at the moment ``at``: the acceptance may be
    newer than the decision to delete.
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
    deleted = sum(_delete(session, statement) for statement in statements)
    night.rows_pruned = at
    return deleted


def delete_lost_plans(session: Session) -> int:
    """Delete the executed plans to which no repetition refers, and return how many."""
    used = exists().where(RepetitionRow.plan_id == PlanRow.id)
    return _delete(session, delete(PlanRow).where(~used))


def _delete(session: Session, statement: Delete) -> int:
    """Execute a statement that deletes rows, and return how many rows were deleted."""
    return session.connection().execute(statement).rowcount


def shrink(engine: Engine) -> int:
    """Give the free pages of an SQLite file back to the disk, and return how many bytes.

    Does nothing and returns 0 if few pages are free, or if the disk has no room for the copies that
    SQLite writes. PostgreSQL uses the room of deleted rows again by itself.
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
        if free < pages * MIN_FREE_SHARE or disk_usage(file.parent).free < _COPIES * left:
            return 0
        checkpoint = "PRAGMA wal_checkpoint(TRUNCATE)"  # from the write-ahead log to the file
        _outside_transactions(connection, checkpoint)
        before = file.stat().st_size
        _outside_transactions(connection, "VACUUM", checkpoint)
    return before - file.stat().st_size


def _outside_transactions(connection: Connection, *statements: str) -> None:
    """Execute statements that SQLite refuses within a transaction."""
    for statement in statements:
        sqlite_connection(connection).execute(statement).fetchall()
