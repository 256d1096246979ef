"""The database, on SQLite or PostgreSQL, opened at the schema of this package.

On both, transactions that write wait for each other.
"""

import fcntl
import os
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from sqlalchemy import URL, Connection, Engine, create_engine, event
from sqlalchemy.engine import make_url
from sqlalchemy.exc import ArgumentError, SQLAlchemyError

from nexmark.config import paths
from nexmark.home import make_home, touch_private
from nexmark.secrets import without_secrets
from nexmark.store import versions
from nexmark.store.store_error import StoreError, database_error, no_results, shown
from nexmark.store.table_rows import NightRow

BUSY_TIMEOUT_S = 30  # so long a night's tasks wait for the lock of another process
BRIEF_S = 3  # so long those wait behind whom a person sits
CONNECT_TIMEOUT_S = 10
WRITERS, OPENERS = 0x4E58_4D01, 0x4E58_4D02
"""PostgreSQL's advisory locks: of whoever writes, and of whoever migrates."""

SQLITE, POSTGRESQL = "sqlite", "postgresql"
ENCODING = "UTF8"
_WRITES = "nexmark_writes"


def connect(url: str, patience_s: float | None = None) -> Engine:
    """Return an engine on a database URL; nothing is opened yet. StoreError for no such URL."""
    patience_s = BUSY_TIMEOUT_S if patience_s is None else patience_s
    try:
        parsed = make_url(url)
        if parsed.drivername in ("postgresql", "postgres"):
            parsed = parsed.set(drivername="postgresql+psycopg")
        if parsed.get_backend_name() == SQLITE:
            return _sqlite(parsed, patience_s)
        if parsed.get_backend_name() == POSTGRESQL:
            return _postgresql(parsed, patience_s)
        return create_engine(parsed)
    except (ArgumentError, ImportError, ValueError) as error:
        readable = without_secrets(url)
        raise StoreError(
            f"results database {readable!r}: {str(error).replace(url, readable)}; set NEXMARK_DB to"
            " a URL as sqlite:////path/file.db or postgresql://user@host/database"
        ) from None


def writing(engine: Engine) -> Engine:
    """Return the engine for transactions that write: they wait for each other from the start."""
    return engine.execution_options(**{_WRITES: True})


def snapshot(engine: Engine) -> Engine:
    """Return the engine for transactions that see one moment only, however long they read."""
    if engine.dialect.name == POSTGRESQL:
        only = {"isolation_level": "REPEATABLE READ", "postgresql_readonly": True}
        return engine.execution_options(**only)
    return engine


def _sqlite(url: URL, patience_s: float) -> Engine:
    """Let SQLAlchemy, not the driver, begin transactions."""
    engine = create_engine(url, connect_args={"timeout": patience_s})

    @event.listens_for(engine, "connect")
    def configure(connection: Any, _: object) -> None:
        connection.isolation_level = None
        connection.execute("PRAGMA foreign_keys=ON")

    @event.listens_for(engine, "begin")
    def begin(connection: Connection) -> None:
        writes = connection.get_execution_options().get(_WRITES)
        connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")

    return engine


def _postgresql(url: URL, patience_s: float) -> Engine:
    """Leave nothing in a session of the server: PgBouncer gives it to another client.

    So no statement is prepared, and each transaction has its own settings, whatever the database
    prefers. Before each use it is tried whether the connection is still there: the server may have
    restarted.
    """
    wanted = {"connect_timeout": CONNECT_TIMEOUT_S, "application_name": "nexmark"}
    given = {name: value for name, value in wanted.items() if name not in url.query}
    given |= {"prepare_threshold": None, "client_encoding": ENCODING}
    engine = create_engine(
        url, connect_args=given, pool_pre_ping=True, isolation_level="READ COMMITTED"
    )
    texts = _texts_without_nul()
    own = {"lock_timeout": round(patience_s * 1000), "DateStyle": "ISO, MDY", "TimeZone": "UTC"}
    settings = ", ".join(f"set_config('{name}', '{value}', true)" for name, value in own.items())

    @event.listens_for(engine, "connect")
    def configure(connection: Any, _: object) -> None:
        connection.adapters.register_dumper(str, texts)

    @event.listens_for(engine, "begin")
    def begin(connection: Connection) -> None:
        connection.exec_driver_sql(f"SELECT {settings}")
        if connection.get_execution_options().get(_WRITES):
            connection.exec_driver_sql(f"SELECT pg_advisory_xact_lock({WRITERS})")

    return engine


def _texts_without_nul() -> Any:
    """Return how texts are sent: PostgreSQL keeps no NUL, and a log that was cut off has some."""
    from psycopg.types.string import StrDumper

    class WithoutNul(StrDumper):
        def dump(self, text: str) -> Any:
            return super().dump(text.replace("\0", ""))

    return WithoutNul


def make_file(engine: Engine) -> None:
    """Make an SQLite file for its owner only, and its directory; nothing elsewhere."""
    if engine.dialect.name == SQLITE and engine.url.database not in (None, "", ":memory:"):
        path = Path(str(engine.url.database))
        if path.resolve().is_relative_to(paths.home()):
            make_home()
        path.parent.mkdir(parents=True, exist_ok=True)
        touch_private(path)


SCHEMA = "0013"  # the newest revision in ``migrations``; a test holds the two together
POLL_S = 0.02


def open_engine(url: str, *, create: bool = True, patience_s: float | None = None) -> Engine:
    """Return an engine on a database with the schema of this package, made or migrated if need be.

    Several processes may open it at once. ``patience_s``: how long to wait for others. StoreError
    when it cannot be reached or is not there (and may not be ``create``d), when another process
    keeps it locked, or when a package has been at it that is newer, or of before the first release.
    """
    engine = connect(url, patience_s)
    try:
        if create:
            make_file(engine)
        elif engine.dialect.name == SQLITE and not Path(engine.url.database or "/").exists():
            raise no_results(engine)
        with _alone(engine, patience_s), engine.connect() as connection:
            _check_encoding(connection)
            current = versions.revision(connection)
            connection.rollback()
            if current is None and not create:
                raise no_results(engine, "it has no tables of ours")
            if current is not None:
                versions.check_readable(connection, current, SCHEMA)
            if current != SCHEMA:
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
        with closing(engine.raw_connection()) as raw:
            raw.cursor().execute("PRAGMA journal_mode=WAL")
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


def _check_encoding(connection: Connection) -> None:
    """Refuse a database of a server that cannot keep every letter: its error would come later."""
    if connection.dialect.name != POSTGRESQL:
        return
    encoding = connection.exec_driver_sql("SHOW server_encoding").scalar()
    if encoding != ENCODING:
        raise StoreError(
            f"results database {shown(connection.engine)}: its encoding is {encoding}, and must be"
            f" {ENCODING}; set NEXMARK_DB to a database made with CREATE DATABASE ... ENCODING"
            f" '{ENCODING}' TEMPLATE template0 (pg_dump and psql copy what is here)"
        )


def _migrate(connection: Connection) -> None:
    """Bring the schema up to date in one transaction; others that want to, wait and find it so.

    SQLite changes a table by replacing it: foreign keys are off, or rows that refer to it would go.
    """
    raw: Any = connection.connection.driver_connection
    on_sqlite = connection.dialect.name == SQLITE
    if on_sqlite:
        raw.execute("PRAGMA foreign_keys=OFF")
    elif connection.dialect.name == POSTGRESQL:
        connection.exec_driver_sql(f"SELECT pg_advisory_xact_lock({OPENERS})")
    try:
        upgrade(connection)
        connection.commit()
    finally:
        if on_sqlite:
            connection.rollback()
            raw.execute("PRAGMA foreign_keys=ON")


def upgrade(connection: Connection) -> None:
    """Migrate to our schema, or make the tables, within the transaction of the connection."""
    current = versions.revision(connection)
    if current is None:
        versions.check_free(connection, NightRow.metadata.tables)
        NightRow.metadata.create_all(connection, checkfirst=False)
        versions.begin(connection, SCHEMA)
        return
    if current < SCHEMA:
        from nexmark.store.migrations import migrate  # alembic is slow to import

        migrate(connection, current, SCHEMA)
