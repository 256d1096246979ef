"""A dialect of SQLAlchemy for an open DuckDB connection: Great Expectations queries its tables.

The dialect `duckdb-engine` reads no columns and loses results under SQLAlchemy 2.1. It also cannot
reach a database in memory that is open already. Great Expectations needs little of a dialect: to
run statements, and the names and columns of tables.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from sqlalchemy import Connection, dialects
from sqlalchemy.engine import URL
from sqlalchemy.engine.default import DefaultDialect
from sqlalchemy.engine.interfaces import ReflectedColumn
from sqlalchemy.types import UserDefinedType

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

_NAME = "duckdb"


class DuckDbType(UserDefinedType[Any]):
    """A type of DuckDB, known by its name."""

    cache_ok = True

    def __init__(self, name: str) -> None:
        """Take the name, e.g. ``DECIMAL(23,3)``."""
        self.name = name

    def get_col_spec(self, **_: Any) -> str:
        """Return the name of the type."""
        return self.name


class _Shared:
    """An open database, and the cursors that SQLAlchemy has of it."""

    def __init__(self, connection: DuckDBPyConnection) -> None:
        self.connection = connection
        self.cursors: list[DuckDBPyConnection] = []

    def cursor(self) -> DuckDBPyConnection:
        self.cursors.append(self.connection.cursor())
        return self.cursors[-1]

    def close(self) -> None:
        for cursor in self.cursors:
            cursor.close()


_open: dict[str, _Shared] = {}


@contextmanager
def shared(connection: DuckDBPyConnection) -> Iterator[str]:
    """Yield a URL by which SQLAlchemy reaches the database of `connection` during the block.

    SQLAlchemy does not see temporary tables, because these belong to one connection of DuckDB.
    """
    dialects.registry.register(_NAME, __name__, DuckDbDialect.__name__)
    key = uuid4().hex
    _open[key] = _Shared(connection)
    try:
        yield f"{_NAME}://{key}"
    finally:
        _open.pop(key).close()


class DuckDbDialect(DefaultDialect):
    """The dialect of DuckDB over a connection that is open; each statement commits itself."""

    name = _NAME
    driver = _NAME
    default_paramstyle = "qmark"
    supports_statement_cache = True
    supports_native_boolean = True

    @classmethod
    def import_dbapi(cls) -> Any:
        """Return the module ``duckdb``."""
        import duckdb

        return duckdb

    def create_connect_args(self, url: URL) -> tuple[list[str], dict[str, Any]]:
        """Take the host of the URL as the name of an open database."""
        return [str(url.host)], {}

    def connect(self, *cargs: Any, **cparams: Any) -> Any:
        """Return a cursor of the database that is open."""
        return _open[cargs[0]].cursor()

    def do_begin(self, dbapi_connection: Any) -> None:
        """Do nothing: DuckDB begins a transaction for each statement."""

    def do_commit(self, dbapi_connection: Any) -> None:
        """Do nothing: DuckDB refuses a commit outside of a transaction."""

    def do_rollback(self, dbapi_connection: Any) -> None:
        """Do nothing: DuckDB refuses a rollback outside of a transaction."""

    def get_schema_names(self, connection: Connection, **_: Any) -> list[str]:
        """Return the name of the only schema."""
        return ["main"]

    def get_table_names(
        self, connection: Connection, schema: str | None = None, **_: Any
    ) -> list[str]:
        """Return the names of all tables and views."""
        rows = connection.exec_driver_sql("SELECT table_name FROM information_schema.tables")
        return [str(name) for (name,) in rows]

    def has_table(
        self, connection: Connection, table_name: str, schema: str | None = None, **_: Any
    ) -> bool:
        """Tell whether there is such a table or view."""
        return table_name in self.get_table_names(connection)

    def get_columns(
        self, connection: Connection, table_name: str, schema: str | None = None, **_: Any
    ) -> list[ReflectedColumn]:
        """Return the columns of a table or view, in order."""
        rows = connection.exec_driver_sql(
            "SELECT column_name, data_type FROM duckdb_columns() "
            "WHERE table_name = ? ORDER BY column_index",
            (table_name,),
        )
        return [
            {"name": name, "type": DuckDbType(kind), "nullable": True, "default": None}
            for name, kind in rows
        ]
