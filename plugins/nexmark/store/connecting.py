"""Opens the results database, on SQLite or PostgreSQL, and brings its schema up to date.

On both, transactions that write wait for each other.
"""

import fcntl
import os
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, cast

from sqlalchemy import URL, Connection, Engine, create_engine, event
from sqlalchemy.engine import make_url
from sqlalchemy.exc import ArgumentError, SQLAlchemyError

from nexmark.config import paths
from nexmark.home import make_home, touch_private
from nexmark.secrets import without_secrets
from nexmark.store import versions
from nexmark.store.store_error import StoreError, database_error, no_results, shown
from nexmark.store.table_rows import NightRow

if TYPE_CHECKING:
    from psycopg import Connection as PostgresqlConnection
    from psycopg.abc import Buffer
    from psycopg.types.string import StrDumper

BUSY_TIMEOUT_S = 30
"""The lock timeout of a night's tasks, in seconds: how long they wait for another process."""
INTERACTIVE_TIMEOUT_S = 3
"""The lock timeout of commands and pages, in seconds: a person waits for them."""
CONNECT_TIMEOUT_S = 10
CACHE_KIB = 32_000
"""The pages of an SQLite database that a connection keeps in memory, in KiB."""
WRITERS, OPENERS = 0x4E58_4D01, 0x4E58_4D02
"""PostgreSQL's advisory locks: the lock of transactions that write, and the lock of migrations."""

SQLITE, POSTGRESQL = "sqlite", "postgresql"
ENCODING = "UTF8"
_WRITES, _ONLY_READS = "nexmark_writes", "nexmark_only_reads"


def connect(url: str, patience_s: float | None = None) -> Engine:
    """Return an engine for a database URL, without opening a connection.

    ``patience_s`` is the lock timeout in seconds, by default BUSY_TIMEOUT_S. StoreError if
    the URL cannot be used.
    """
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
    """Return the engine for transactions that write.

    They take the writers' lock at their start, and count themselves.
    """
    return engine.execution_options(**{_WRITES: True})


def snapshot(engine: Engine) -> Engine:
    """Return the engine for transactions that only read, and see the database at one moment.

    SQLAlchemy's ``postgresql_readonly`` would let later transactions of the same connection write
    where the database says that they may not.
    """
    if engine.dialect.name == POSTGRESQL:
        only = {"isolation_level": "REPEATABLE READ", _ONLY_READS: True}
        return engine.execution_options(**only)
    return engine


def _sqlite(url: URL, patience_s: float) -> Engine:
    """Return an engine on SQLite where SQLAlchemy, not the driver, begins transactions."""
    engine = create_engine(url, connect_args={"timeout": patience_s})

    @event.listens_for(engine, "connect")
    def configure(connection: sqlite3.Connection, _: object) -> None:
        connection.isolation_level = None
        connection.execute("PRAGMA foreign_keys=ON")
        connection.execute(f"PRAGMA cache_size=-{CACHE_KIB}")

    @event.listens_for(engine, "begin")
    def begin(connection: Connection) -> None:
        writes = connection.get_execution_options().get(_WRITES)
        connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")
        if writes:
            connection.exec_driver_sql(versions.COUNT)

    return engine


def _postgresql(url: URL, patience_s: float) -> Engine:
    """Return an engine on PostgreSQL that leaves nothing behind in a session of the server.

    PgBouncer gives a session to another client after each transaction. So no statement is prepared,
    and each transaction sets its own settings, whatever the defaults of the database are. A
    connection is tested before each use, because the server may have restarted.
    """
    wanted = {"connect_timeout": CONNECT_TIMEOUT_S, "application_name": "nexmark"}
    given = {name: value for name, value in wanted.items() if name not in url.query}
    given |= {"prepare_threshold": None, "client_encoding": ENCODING}
    engine = create_engine(
        url, connect_args=given, pool_pre_ping=True, isolation_level="READ COMMITTED"
    )
    texts = _texts_without_nul()
    values = {"lock_timeout": round(patience_s * 1000), "DateStyle": "ISO, MDY", "TimeZone": "UTC"}
    settings = ", ".join(f"set_config('{name}', '{value}', true)" for name, value in values.items())

    @event.listens_for(engine, "connect")
    def configure(connection: "PostgresqlConnection", _: object) -> None:
        connection.adapters.register_dumper(str, texts)

    @event.listens_for(engine, "begin")
    def begin(connection: Connection) -> None:
        options = connection.get_execution_options()
        connection.exec_driver_sql(f"SELECT {settings}")
        if options.get(_ONLY_READS):
            connection.exec_driver_sql("SET TRANSACTION READ ONLY")
        if options.get(_WRITES):
            connection.exec_driver_sql(f"SELECT pg_advisory_xact_lock({WRITERS})")
            connection.exec_driver_sql(versions.COUNT)

    return engine


def _texts_without_nul() -> "type[StrDumper]":
    """Return the class that sends texts without the character NUL.

    PostgreSQL refuses NUL in a text, and a log that was cut off may have some.
    """
    from psycopg.types.string import StrDumper

    class WithoutNul(StrDumper):
        def dump(self, obj: str) -> "Buffer | None":
            return super().dump(obj.replace("\0", ""))

    return WithoutNul


def make_file(engine: Engine) -> None:
    """Create the file of an SQLite database, readable for its owner only, and its directory.

    Does nothing on PostgreSQL and for a database in memory.
    """
    if engine.dialect.name == SQLITE and engine.url.database not in (None, "", ":memory:"):
        path = Path(str(engine.url.database))
        if path.resolve().is_relative_to(paths.home()):
            make_home()
        path.parent.mkdir(parents=True, exist_ok=True)
        touch_private(path)


SCHEMA = "0019"  # the newest revision in ``migrations``; a test holds the two together
POLL_S = 0.02


def open_engine(url: str, *, create: bool = True, patience_s: float | None = None) -> Engine:
    """Return an engine on a database that has the schema of this package.

    The schema is created or migrated if necessary. Several processes may open a database at once.

    Args:
        url: The URL of the database.
        create: Whether to create a database, or its tables, if they do not exist.
        patience_s: How long to wait for the lock of another process, in seconds.

    Raises:
        StoreError: The database cannot be reached; it does not exist, and ``create`` is False;
            another process keeps it locked; its schema is newer than this package, or older than
            the first release.
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
    """Put an SQLite database into WAL mode, and let no other process open it during the block.

    Does nothing on PostgreSQL.
    """
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
    """Lock a directory; BlockingIOError if another process still has the lock after patience_s."""
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
    """Refuse a PostgreSQL database whose encoding is not UTF-8; StoreError says what to do.

    Otherwise the first text with a letter that it cannot store would fail much later.
    """
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
    """Bring the schema up to date in one transaction.

    Other processes that want to do so wait, and then find the new schema. SQLite changes a table by
    replacing it. Foreign keys are off during this time: otherwise SQLite would delete the rows that
    refer to the replaced table.
    """
    on_sqlite = connection.dialect.name == SQLITE
    if on_sqlite:
        sqlite_connection(connection).execute("PRAGMA foreign_keys=OFF")
    elif connection.dialect.name == POSTGRESQL:
        connection.exec_driver_sql(f"SELECT pg_advisory_xact_lock({OPENERS})")
    try:
        upgrade(connection)
        connection.commit()
    finally:
        if on_sqlite:
            connection.rollback()
            sqlite_connection(connection).execute("PRAGMA foreign_keys=ON")


def sqlite_connection(connection: Connection) -> sqlite3.Connection:
    """Return the connection of Python's sqlite3 that a connection to an SQLite database uses."""
    return cast(sqlite3.Connection, connection.connection.driver_connection)


def upgrade(connection: Connection) -> None:
    """Create the tables, or migrate them to our schema, in the transaction of the connection."""
    current = versions.revision(connection)
    if current is None:
        versions.check_free(connection, NightRow.metadata.tables)
        NightRow.metadata.create_all(connection, checkfirst=False)
        versions.begin(connection, SCHEMA)
        return
    if current < SCHEMA:
        from nexmark.store.migrations import migrate  # alembic is slow to import

        migrate(connection, current, SCHEMA)
