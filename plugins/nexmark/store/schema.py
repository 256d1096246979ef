"""Open the results database at the schema of this package, migrating it if need be."""

from __future__ import annotations

import fcntl
import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, Engine, create_engine, event, inspect, text
from sqlalchemy.engine import make_url
from sqlalchemy.exc import ArgumentError, SQLAlchemyError

from nexmark.errors import NexmarkError

#: The newest revision in ``migrations/versions``; a test holds the two together.
SCHEMA = "0001"
BUSY_TIMEOUT_S = 30
_BEGIN = "nexmark_begin"


class StoreError(NexmarkError):
    """The results database cannot do what was asked; one line: what, where, remedy."""


def open_engine(url: str) -> Engine:
    """Return an engine on a database with the schema of this package.

    Creates or migrates it first; two processes may do so at once. StoreError when it cannot be
    reached, or when a newer package has been at it.
    """
    try:
        engine = create_engine(url, connect_args=_connect_args(url))
    except (ArgumentError, ImportError) as error:
        raise StoreError(
            f"results database {url!r}: {error}; set NEXMARK_DB to a URL as sqlite:////path/file.db"
        ) from error
    try:
        if engine.dialect.name == "sqlite":
            _prepare_sqlite(engine)
        with _alone(engine), engine.connect() as connection:
            _migrate(connection)
    except (SQLAlchemyError, sqlite3.Error, OSError) as error:
        raise database_error(engine, error) from error
    return engine


def database_error(engine: Engine, error: Exception) -> StoreError:
    """Return the one-line error for a failure of the database."""
    cause = getattr(error, "orig", None) or error
    return StoreError(
        f"results database {engine.url.render_as_string(hide_password=True)}: {cause};"
        " check NEXMARK_DB, that it can be reached and written, and its disk space"
    )


def writing(engine: Engine) -> Engine:
    """Return the engine for transactions that write: they wait for each other from the start."""
    return engine.execution_options(**{_BEGIN: "BEGIN IMMEDIATE"})


def _connect_args(url: str) -> dict[str, Any]:
    sqlite = make_url(url).get_backend_name() == "sqlite"
    return {"timeout": BUSY_TIMEOUT_S} if sqlite else {}


def _prepare_sqlite(engine: Engine) -> None:
    """Make its directory, and let SQLAlchemy, not the driver, begin transactions."""
    if engine.url.database:
        Path(engine.url.database).parent.mkdir(parents=True, exist_ok=True)

    @event.listens_for(engine, "connect")
    def configure(connection: Any, _: object) -> None:
        connection.isolation_level = None
        connection.execute("PRAGMA foreign_keys=ON")

    @event.listens_for(engine, "begin")
    def begin(connection: Connection) -> None:
        connection.exec_driver_sql(connection.get_execution_options().get(_BEGIN, "BEGIN"))


@contextmanager
def _alone(engine: Engine) -> Iterator[None]:
    """Keep other processes from opening the same SQLite file meanwhile; it goes into WAL mode."""
    if engine.dialect.name != "sqlite" or not engine.url.database:
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


def _migrate(connection: Connection) -> None:
    """Bring the schema up to date in one transaction."""
    current = _revision(connection)
    if current is not None and current > SCHEMA:
        url = connection.engine.url.render_as_string(hide_password=True)
        raise StoreError(
            f"results database {url}: its schema {current} is newer than that of this package"
            f" ({SCHEMA}); update the package or set NEXMARK_DB to another database"
        )
    if current == SCHEMA:
        return
    from alembic import command
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", str(Path(__file__).with_name("migrations")))
    config.attributes["connection"] = connection
    command.upgrade(config, SCHEMA)
    connection.commit()


def _revision(connection: Connection) -> str | None:
    if not inspect(connection).has_table("alembic_version"):
        return None
    revision = connection.execute(text("SELECT version_num FROM alembic_version")).scalar()
    return str(revision) if revision is not None else None
