"""Open the results database at the schema of this package, migrating it if need be."""

from __future__ import annotations

import fcntl
import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from sqlalchemy import Connection, Engine, inspect, text
from sqlalchemy.exc import SQLAlchemyError

from nexmark.store.connecting import OPENERS, POSTGRESQL, SQLITE, connect, make_directory
from nexmark.store.errors import StoreError, database_error, shown

#: The newest revision in ``migrations/versions``; a test holds the two together.
SCHEMA = "0006"


def open_engine(url: str) -> Engine:
    """Return an engine on a database with the schema of this package.

    Creates or migrates it first; several processes may do so at once. StoreError when it cannot be
    reached, or when a newer package has been at it.
    """
    engine = connect(url)
    try:
        make_directory(engine)
        with _alone(engine), engine.connect() as connection:
            if _outdated(connection):
                _migrate(connection)
    except (SQLAlchemyError, sqlite3.Error, OSError) as error:
        raise database_error(engine, error) from error
    return engine


@contextmanager
def _alone(engine: Engine) -> Iterator[None]:
    """Keep other processes from opening the same SQLite file meanwhile; it goes into WAL mode."""
    if engine.dialect.name != SQLITE or not engine.url.database:
        yield
        return
    directory = os.open(Path(engine.url.database).parent, os.O_RDONLY)
    try:
        fcntl.flock(directory, fcntl.LOCK_EX)
        raw = engine.raw_connection()
        try:
            raw.cursor().execute("PRAGMA journal_mode=WAL")
        finally:
            raw.close()
        yield
    finally:
        os.close(directory)


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
            upgrade(connection, SCHEMA)
        connection.commit()


def upgrade(connection: Connection, revision: str) -> None:
    """Migrate to a revision within the transaction of the connection."""
    from alembic import command
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", str(Path(__file__).with_name("migrations")))
    config.attributes["connection"] = connection
    command.upgrade(config, revision)


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


__all__ = ["SCHEMA", "open_engine", "upgrade"]
