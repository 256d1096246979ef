"""The types in which columns are written, so that every Spark reads them from Parquet.

Spark lacks some types of DuckDB, and reads a time without a zone as another type than a TIMESTAMP.
Each is cast to a type that Spark has, in structs, lists and maps, too.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from nexmark.expectations.quoting import identifier

if TYPE_CHECKING:
    from duckdb.sqltypes import DuckDBPyType

#: Types that Spark does not read from Parquet, or reads as something else, and what they become.
_CASTS = {
    "HUGEINT": "DECIMAL(38, 0)",
    "UHUGEINT": "DECIMAL(38, 0)",
    "UBIGINT": "DECIMAL(20, 0)",
    "UINTEGER": "BIGINT",
    "USMALLINT": "INTEGER",
    "UTINYINT": "SMALLINT",
    "BIT": "VARCHAR",
    "INTERVAL": "VARCHAR",
    "JSON": "VARCHAR",
    "TIME": "VARCHAR",
    "TIME_NS": "VARCHAR",
    "TIME WITH TIME ZONE": "VARCHAR",
    "UUID": "VARCHAR",
    "VARIANT": "VARCHAR",
    "GEOMETRY": "VARCHAR",
    "BIGNUM": "VARCHAR",
    '"NULL"': "VARCHAR",
}
#: What Spark reads as a TIMESTAMP.
TARGET = "TIMESTAMP WITH TIME ZONE"
#: Times with a zone, as pandas writes them, too.
ZONED = (TARGET, "TIMESTAMPTZ_NS")
ZONELESS = ("TIMESTAMP", "TIMESTAMP_S", "TIMESTAMP_MS", "TIMESTAMP_NS")


def in_spark_type(name: str, kind: DuckDBPyType) -> str:
    """Return the expression of a column in a type that every Spark reads from Parquet.

    A time without a zone is one of UTC; Spark then reads a TIMESTAMP, not a TIMESTAMP_NTZ.

    Args:
        name: The name of the column.
        kind: Its type.
    """
    column = identifier(name)
    target, between = _target(kind, TARGET), _target(kind, ZONELESS[0])
    if target == str(kind):
        return column
    # DuckDB casts a time of nanoseconds to one with a zone by way of a TIMESTAMP only.
    return f"{column}::{target}" if between == target else f"{column}::{between}::{target}"


def _target(kind: DuckDBPyType, time: str) -> str:
    """Return the type to cast a column to.

    Args:
        kind: The type of the column, or of a part of it.
        time: What a time without a zone becomes.
    """
    if kind.id == "struct":
        fields = [f"{identifier(name)} {_target(part, time)}" for name, part in _parts(kind)]
        return f"STRUCT({', '.join(fields)})"
    if kind.id in ("list", "array"):
        return f"{_target(_parts(kind)[0][1], time)}[]"
    if kind.id == "map":
        key, value = (_target(part, time) for _, part in _parts(kind))
        return f"MAP({key}, {value})"
    if kind.id in ("enum", "union"):
        return "VARCHAR"
    plain = str(kind)
    if plain in ZONED:
        return TARGET
    return time if plain in ZONELESS else _CASTS.get(plain, plain)


def _parts(kind: DuckDBPyType) -> list[tuple[str, DuckDBPyType]]:
    """Return the types of the parts of a nested type, by their names, without the size of an array.

    Args:
        kind: The type.
    """
    from duckdb.sqltypes import DuckDBPyType

    return [(name, part) for name, part in kind.children if isinstance(part, DuckDBPyType)]
