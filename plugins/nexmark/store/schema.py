"""Open the results database at the schema of this package, migrating it if need be."""

from __future__ import annotations

import fcntl
import os
import sqlite3
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from sqlalchemy import Connection, Engine, inspect, text
from sqlalchemy.exc import SQLAlchemyError

from nexmark.store.connecting import (
    BUSY_TIMEOUT_S,
    OPENERS,
    POSTGRESQL,
    SQLITE,
    connect,
    is_there,
    make_file,
)
from nexmark.store.store_error import StoreError, database_error, no_results, shown
from nexmark.store.table_rows import NightRow

SCHEMA = "0012"
"""The newest revision in ``migrations``; a test holds the two together."""
POLL_S = 0.02
_VERSIONS = (
    "CREATE TABLE alembic_version (version_num VARCHAR(32) NOT NULL,"
    " CONSTRAINT alembic_version_pkc PRIMARY KEY (version_num))"
)


def open_engine(url: str, *, create: bool = True, patience_s: float | None = None) -> Engine:
    """Return an engine on a database with the schema of this package.

    Migrates it first, or makes it if it may ``create`` it; several processes may do so at once.
    ``patience_s``: how long to wait for others. StoreError when it cannot be reached or is not
    there, when another process keeps it locked, or when a newer package has been at it.
    """
    engine = connect(url, patience_s)
    try:
        if create:
            make_file(engine)
        elif not is_there(engine):
            raise no_results(engine)
        with _alone(engine, patience_s), engine.connect() as connection:
            if not create and _revision(connection) is None:
                raise no_results(engine)
            if _outdated(connection):
                _migrate(connection)
    except (SQLAlchemyError, sqlite3.Error, OSError) as error:
        raise database_error(engine, error) from error
    return engine


@contextmanager
def _alone(engine: Engine, patience_s: float | None) -> Iterator[None]:
    """Keep other processes from opening the same SQLite file meanwhile; it goes into WAL mode."""
    if engine.dialect.name != SQLITE or not engine.url.database:
        yield
        return
    directory = os.open(Path(engine.url.database).parent, os.O_RDONLY)
    try:
        _lock(directory, BUSY_TIMEOUT_S if patience_s is None else patience_s)
        raw = engine.raw_connection()
        try:
            raw.cursor().execute("PRAGMA journal_mode=WAL")
        finally:
            raw.close()
        yield
    finally:
        os.close(directory)


def _lock(directory: int, patience_s: float) -> None:
    """Lock a directory; BlockingIOError where another process has it for longer."""
    deadline = time.monotonic() + patience_s
    while True:
        try:
            fcntl.flock(directory, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        except BlockingIOError:
            if time.monotonic() >= deadline:
                raise
        time.sleep(POLL_S)


def _outdated(connection: Connection) -> bool:
    current = _revision(connection)
    connection.rollback()
    if current is not None and current > SCHEMA:
        raise StoreError(
            f"results database {shown(connection.engine)}: its schema {current} is newer than that"
            f" of this package ({SCHEMA}); update the package or set NEXMARK_DB to another database"
        )
    return current != SCHEMA


def _revision(connection: Connection) -> str | None:
    if not inspect(connection).has_table("alembic_version"):
        return None
    revision = connection.execute(text("SELECT version_num FROM alembic_version")).scalar()
    return str(revision) if revision is not None else None


def _migrate(connection: Connection) -> None:
    """Bring the schema up to date in one transaction; others that want to, wait and find it so."""
    with _tables_may_be_replaced(connection):
        if connection.dialect.name == POSTGRESQL:
            connection.exec_driver_sql(f"SELECT pg_advisory_xact_lock({OPENERS})")
        if _revision(connection) != SCHEMA:
            upgrade(connection)
        connection.commit()


def upgrade(connection: Connection, revision: str = SCHEMA) -> None:
    """Migrate to a revision, or make the tables, within the transaction of the connection."""
    current = _revision(connection)
    if current is None:
        NightRow.metadata.create_all(connection)
        connection.execute(text(_VERSIONS))
        connection.execute(text(f"INSERT INTO alembic_version VALUES ('{SCHEMA}')"))
    else:
        from nexmark.store.migrations import migrate  # alembic is slow to import

        migrate(connection, current, revision)


@contextmanager
def _tables_may_be_replaced(connection: Connection) -> Iterator[None]:
    """Let SQLite drop a table that others refer to; it makes a new one to change its columns.

    With foreign keys on, dropping a table also deletes the rows that refer to it.
    """
    if connection.dialect.name != SQLITE:
        yield
        return
    raw = connection.connection.driver_connection
    assert raw is not None
    raw.execute("PRAGMA foreign_keys=OFF")
    try:
        yield
    finally:
        connection.rollback()
        raw.execute("PRAGMA foreign_keys=ON")
