"""Values of any type of DuckDB in a form in which equal ones compare as equal.

Spark writes times with or without a zone, and the entries of a map in any order.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from nexmark.expectations.quoting import identifier

if TYPE_CHECKING:
    from duckdb.sqltypes import DuckDBPyType

#: A time in the text of a type, or a name in quotes, which may have the same letters.
_TIMES = re.compile(r'"(?:[^"]|"")*"|\bTIMESTAMP(?:TZ_NS|_\w+| WITH TIME ZONE)?')


def plain_times(kind: str) -> str:
    """Return a type whose times are all TIMESTAMP, in structs, lists and maps, too.

    Args:
        kind: The type, as DuckDB names it.
    """
    return _TIMES.sub(lambda part: part[0] if part[0].startswith('"') else "TIMESTAMP", kind)


def sorted_maps(expression: str, kind: str) -> str:
    """Return an expression of the same type and value, with the entries of maps by their keys.

    Args:
        expression: A value.
        kind: Its type, as DuckDB names it.
    """
    if "MAP(" not in kind:
        return expression
    import duckdb

    return _sorted(expression, duckdb.sqltype(kind), 0)


def _sorted(value: str, kind: DuckDBPyType, depth: int) -> str:
    """Return an expression with sorted maps.

    Args:
        value: A value.
        kind: Its type.
        depth: In how many lists and maps it is.
    """
    if "MAP(" not in str(kind):
        return value
    parts, each = dict(kind.children), f"each_{depth}"
    if kind.id == "map":
        inner = _sorted(f"{each}.value", _type(parts["value"]), depth + 1)
        entry = f"struct_pack(key := {each}.key, value := {inner})"
        entries = f"list_transform(map_entries({value}), lambda {each}: {entry})"
        return f"map_from_entries(list_sort({entries}))"
    if kind.id in ("list", "array"):
        inner = _sorted(each, _type(parts["child"]), depth + 1)
        return f"list_transform({value}, lambda {each}: {inner})"
    fields = ", ".join(
        f"{identifier(name)} := {_sorted(f'({value}).{identifier(name)}', _type(part), depth)}"
        for name, part in parts.items()
    )
    return f"CASE WHEN {value} IS NOT NULL THEN struct_pack({fields}) END"


def _type(part: object) -> DuckDBPyType:
    from duckdb.sqltypes import DuckDBPyType

    assert isinstance(part, DuckDBPyType)
    return part
