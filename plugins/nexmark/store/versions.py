"""The number of the schema in a database, in a table of our own; and whose the tables there are.

Up to schema 0012 the number was in ``alembic_version``. Every program that uses Alembic has a table
of that name, so ours is taken over from there, and theirs is left alone.
"""

from collections.abc import Iterable

from sqlalchemy import Connection, inspect, text

from nexmark.store.store_error import StoreError, shown

TABLE, EARLIER = "nexmark_version", "alembic_version"
_NUMBER = "version_num"
_MAKE = (
    f"CREATE TABLE {TABLE} ({_NUMBER} VARCHAR(32) NOT NULL,"
    f" CONSTRAINT {TABLE}_pkc PRIMARY KEY ({_NUMBER}))"
)
_LAST_EARLIER = 12
_OURS = {  # of the first schema: no other program has all of these
    "night": {"dag_id", "run_id", "shape", "workload_spec"},
    "repetition": {"night_id", "query", "arm", "cpu_s_per_mevent"},
    "sample_series": {"repetition_id", "series"},
}


def revision(connection: Connection) -> str | None:
    """Return the number of our schema, None where there is none of ours."""
    if is_settled(connection):
        number = connection.execute(text(f"SELECT {_NUMBER} FROM {TABLE}")).scalar()
        return None if number is None else str(number)
    return _earlier(connection)


def is_settled(connection: Connection) -> bool:
    """Tell whether the number is in the table of our own."""
    return _has(connection, TABLE, {_NUMBER})


def begin(connection: Connection, number: str) -> None:
    """Make our table, with the number of a new schema, or of one that an earlier package made."""
    connection.execute(text(_MAKE))
    connection.execute(text(f"INSERT INTO {TABLE} VALUES (:n)"), {"n": number})


def take_over(connection: Connection, number: str) -> None:
    """Move the number from where earlier packages had it; rows of others stay there."""
    begin(connection, number)
    connection.execute(text(f"DELETE FROM {EARLIER} WHERE {_NUMBER} = :n"), {"n": number})
    if not connection.execute(text(f"SELECT count(*) FROM {EARLIER}")).scalar():
        connection.execute(text(f"DROP TABLE {EARLIER}"))


def write(connection: Connection, number: str) -> None:
    """Replace the number."""
    connection.execute(text(f"UPDATE {TABLE} SET {_NUMBER} = :n"), {"n": number})


def check_free(connection: Connection, names: Iterable[str]) -> None:
    """Refuse to make tables where another program has one of the same name; StoreError."""
    inspector = inspect(connection)
    schema = inspector.default_schema_name
    taken = sorted(x for x in (*names, TABLE) if inspector.has_table(x, schema=schema))
    if taken:
        tables = f"table{'s' * (len(taken) > 1)} {', '.join(taken)}"
        raise StoreError(
            f"results database {shown(connection.engine)}: it has the {tables} of another program;"
            " set NEXMARK_DB to a database, or to a user with a schema, that is nexmark's alone"
        )


def _earlier(connection: Connection) -> str | None:
    if not _has(connection, EARLIER, {_NUMBER}):
        return None
    found = connection.execute(text(f"SELECT {_NUMBER} FROM {EARLIER}")).scalars()
    numbers = [f"{x:04}" for x in range(1, _LAST_EARLIER + 1)]
    ours = [str(number) for number in found if number in numbers]
    if ours and all(_has(connection, name, columns) for name, columns in _OURS.items()):
        return max(ours)
    return None


def _has(connection: Connection, table: str, columns: set[str]) -> bool:
    inspector = inspect(connection)
    if not inspector.has_table(table):
        return False
    return columns <= {str(column["name"]) for column in inspector.get_columns(table)}
