"""An engine on SQLite or PostgreSQL. On both, transactions that write wait for each other."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from sqlalchemy import URL, Connection, Engine, create_engine, event
from sqlalchemy.engine import make_url
from sqlalchemy.exc import ArgumentError

from nexmark.config import paths
from nexmark.home import make_home, touch_private
from nexmark.secrets import without_secrets
from nexmark.store.store_error import StoreError

BUSY_TIMEOUT_S = 30
"""So long a night's tasks wait for the lock of another process."""
BRIEF_S = 3
"""So long those wait behind whom a person sits."""
CONNECT_TIMEOUT_S = 10
WRITERS, OPENERS = 0x4E58_4D01, 0x4E58_4D02
"""PostgreSQL's advisory locks: of whoever writes, and of whoever migrates."""

SQLITE, POSTGRESQL = "sqlite", "postgresql"
_WRITES = "nexmark_writes"


def connect(url: str, patience_s: float | None = None) -> Engine:
    """Return an engine on a database URL; nothing is opened yet. StoreError for no such URL.

    ``patience_s``: how long to wait for the lock of another process (``BUSY_TIMEOUT_S``).
    """
    patience_s = BUSY_TIMEOUT_S if patience_s is None else patience_s
    try:
        parsed = _with_driver(make_url(url))
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
        return engine.execution_options(isolation_level="REPEATABLE READ")
    return engine


def _with_driver(url: URL) -> URL:
    """Return the URL with the driver of this package where it names none."""
    if url.drivername in ("postgresql", "postgres"):
        return url.set(drivername="postgresql+psycopg")
    return url


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
    """Look before each use whether the connection is still there: the server may have restarted."""
    wanted = {"connect_timeout": CONNECT_TIMEOUT_S, "application_name": "nexmark"}
    given = {name: value for name, value in wanted.items() if name not in url.query}
    engine = create_engine(url, connect_args=given, pool_pre_ping=True)
    texts = _texts_without_nul()
    limit = f"SET lock_timeout = {round(patience_s * 1000)}"

    @event.listens_for(engine, "connect")
    def configure(connection: Any, _: object) -> None:
        connection.adapters.register_dumper(str, texts)
        connection.execute(limit)
        connection.commit()

    @event.listens_for(engine, "begin")
    def begin(connection: Connection) -> None:
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


def is_there(engine: Engine) -> bool:
    """Tell whether an SQLite file is there, without making it; a server may always have one."""
    return engine.dialect.name != SQLITE or Path(engine.url.database or "/").exists()
