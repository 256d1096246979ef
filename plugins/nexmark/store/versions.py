"""Reads and writes the number of the schema, and finds out to which program tables belong.

Counts the transactions that have written, too. Both numbers are in a table of our own. Alembic's
table ``alembic_version`` may belong to any program that uses Alembic, so it is never read or
written.
"""

from collections.abc import Iterable

from sqlalchemy import Connection, inspect, text

from nexmark.store.store_error import StoreError, shown

TABLE = "nexmark_version"
FIRST = "0013"
"""The schema of the first release; schemas with lower numbers cannot be read."""
_NUMBER = "version_num"
CHANGES = "changes"
"""The column with the number of transactions that have written."""
COUNT = f"UPDATE {TABLE} SET {CHANGES} = {CHANGES} + 1"
"""The statement with which each transaction that writes counts itself."""
_MAKE = (
    f"CREATE TABLE {TABLE} ({_NUMBER} VARCHAR(32) NOT NULL,"
    f" {CHANGES} BIGINT DEFAULT 0 NOT NULL,"
    f" CONSTRAINT {TABLE}_pkc PRIMARY KEY ({_NUMBER}))"
)
_UNNUMBERED = "0000"
_OURS = {  # tables and columns that no other program has all of
    "night": {"dag_id", "run_id", "shape", "workload_spec"},
    "repetition": {"night_id", "query", "arm", "cpu_s_per_mevent"},
    "sample_series": {"repetition_id", "series"},
}


def revision(connection: Connection) -> str | None:
    """Return the number of our schema in a database; None if it has no tables of ours."""
    number = _number(connection)
    if number is None and all(_has(connection, name, columns) for name, columns in _OURS.items()):
        # Another process may have made the tables, and their number, since the first look.
        return _number(connection) or _UNNUMBERED
    return number


def _number(connection: Connection) -> str | None:
    if not _has(connection, TABLE, {_NUMBER}):
        return None
    number = connection.execute(text(f"SELECT {_NUMBER} FROM {TABLE}")).scalar()
    return None if number is None else str(number)


def begin(connection: Connection, number: str) -> None:
    """Create the table of the schema's number, with the number of a new schema."""
    connection.execute(text(_MAKE))
    connection.execute(text(f"INSERT INTO {TABLE} ({_NUMBER}) VALUES (:n)"), {"n": number})


def write(connection: Connection, number: str) -> None:
    """Replace the number of the schema."""
    connection.execute(text(f"UPDATE {TABLE} SET {_NUMBER} = :n"), {"n": number})


def changes(connection: Connection) -> int:
    """Return the number of transactions that have written to a database of our schema."""
    return int(connection.execute(text(f"SELECT {CHANGES} FROM {TABLE}")).scalar_one())


def check_readable(connection: Connection, current: str, newest: str) -> None:
    """Refuse a schema that is older than the first release, or newer than ours.

    ``current`` is the number of the schema of the database, ``newest`` the number of ours.
    StoreError says what to do.
    """
    database = f"results database {shown(connection.engine)}"
    if current < FIRST:
        raise StoreError(
            f"{database}: it was made before the first release, and this package cannot read it;"
            " set NEXMARK_HOME to a new directory or NEXMARK_DB to another database (the version"
            " that made it writes its results to files: nexmark export --out DIR)"
        )
    if current > newest:
        raise StoreError(
            f"{database}: its schema {current} is newer than schema {newest} of this package;"
            " update the package or set NEXMARK_DB to another database"
        )


def check_free(connection: Connection, names: Iterable[str]) -> None:
    """Refuse to create tables in a database where another program has a table of the same name."""
    inspector = inspect(connection)
    schema = inspector.default_schema_name
    taken = sorted(name for name in (*names, TABLE) if inspector.has_table(name, schema=schema))
    if taken:
        tables = f"table{'s' * (len(taken) > 1)} {', '.join(taken)}"
        raise StoreError(
            f"results database {shown(connection.engine)}: it has the {tables} of another program;"
            " set NEXMARK_DB to a database, or to a user with a schema, that is nexmark's alone"
        )


def _has(connection: Connection, table: str, columns: set[str]) -> bool:
    """Tell whether a database has a table with at least these columns."""
    inspector = inspect(connection)
    if not inspector.has_table(table):
        return False
    return columns <= {str(column["name"]) for column in inspector.get_columns(table)}
