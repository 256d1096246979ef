"""The checks of a query's output: SQL over the tables of one DuckDB.

``reference/`` has a SQL file per query. It computes the result on an engine that is not Spark, as
if the input had ended and every window had closed. ``invariants/`` has the rules of each query that
hold without the reference. A check is a SELECT of the rows that break its rule. The tables are
``person``, ``auction``, ``bid``, the output, and the tables that `prepare` makes.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from importlib import resources
from typing import TYPE_CHECKING

from nexmark.expectations.comparable import sorted_maps
from nexmark.expectations.contract import (
    EXPERIMENT_CONTRACTS,
    Contract,
    ExpectationsError,
    contract,
)
from nexmark.expectations.quoting import identifier, quote
from nexmark.expectations.tables import Events, Output, first_line

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

_HEADER = re.compile(r"-- check (?P<name>\w+): (?P<rule>.*)")


@dataclass(frozen=True)
class Check:
    """A check of an output: its name, its rule in words, and a SELECT of the rows that break it."""

    name: str
    rule: str
    sql: str


@dataclass(frozen=True)
class RowCounts:
    """The number of rows of the reference, and of the output that is compared with it.

    The output of q12 is folded before. An output that is not readable is not compared: None. A job
    without a reference has neither.
    """

    reference: int | None
    compared: int | None


def invariants(query: str) -> tuple[Check, ...]:
    """Return the invariants of `query`, in the order of its file; () if only experiments run it."""
    if query in EXPERIMENT_CONTRACTS:
        return ()
    checks = []
    for statement in filter(None, map(str.strip, _sql("invariants", query).split(";\n"))):
        comment, sql = re.split(r"\n(?!--)", statement, maxsplit=1)
        header = _HEADER.fullmatch(comment.replace("\n-- ", " "))
        if header is None:
            raise ValueError(f"an invariant begins with '-- check NAME: RULE', not with: {comment}")
        checks.append(Check(header["name"], header["rule"], sql.rstrip("; \n")))
    return tuple(checks)


def reference_sql(query: str) -> str:
    """Return the SQL of the result of `query`; it is written from the query's definition alone."""
    return _sql("reference", query)


def reference_select(query: str) -> str:
    """Return a SELECT of the result of `query`, with the columns and types of its contract.

    The SELECT runs on the connection of opened events. The order of its rows is not defined. For
    q12, it has only the two columns of the fold. ``.fetchall()`` keeps decimals exact, ``.df()``
    does not. ExpectationsError if there is no such query.
    """
    return _select(contract(query))


def _select(entry: Contract) -> str:
    casts = ", ".join(
        f"{sorted_maps(f'CAST({name} AS {column.type})', column.type)} AS {name}"
        for column in entry.reference_columns
        for name in [identifier(column.name)]
    )
    sql = entry.reference or reference_sql(entry.query)
    return f"SELECT {casts} FROM (\n{sql}\n)"


def _sql(folder: str, query: str) -> str:
    file = resources.files(__package__) / folder / contract(query).sql
    return file.read_text(encoding="utf-8")


def prepare(events: Events, entry: Contract, output: Output) -> RowCounts:
    """Make the tables that the checks of a loaded output need, and count their rows.

    The table ``reference`` has the reference result. The views ``compared`` and ``wanted`` have the
    rows of the output and of the reference, which must be equal as multisets. The output of q12 is
    folded in them. If the events have no numbers, the views leave out the columns that depend on
    ties. ExpectationsError if DuckDB cannot compute the reference.
    """
    import duckdb

    if not entry.compared:
        return RowCounts(None, None)
    connection = events.connection
    try:
        connection.execute(f"CREATE OR REPLACE TABLE reference AS {_select(entry)}")
    except duckdb.Error as error:
        raise ExpectationsError(f"{entry.sql}: {first_line(error)}; correct it") from None
    reference_rows = _count(connection, "reference")
    if not output.readable:
        return RowCounts(reference_rows, None)
    compared = "FROM output"
    if entry.fold:
        terms = ", ".join(f"{expression} AS {name}" for name, expression in entry.fold.items())
        compared = f"SELECT {terms} FROM output GROUP BY ALL"
    columns = "*" if events.numbered else ", ".join(entry.tie_free) or "*"
    for view, rows in (("compared", compared), ("wanted", "FROM reference")):
        connection.execute(f"CREATE OR REPLACE VIEW {view} AS SELECT {columns} FROM ({rows})")
    return RowCounts(reference_rows, _count(connection, "compared"))


def _count(connection: DuckDBPyConnection, table: str) -> int:
    return int(connection.execute(f"SELECT count(*) FROM {table}").fetchall()[0][0])


def types_check(entry: Contract) -> Check:
    """Return the check that the columns of the output have the types of the contract."""
    columns = ", ".join(
        f"({position}, {quote(column.name)}, {quote(column.type)})"
        for position, column in enumerate(entry.columns, 1)
    )
    sql = f"""\
SELECT contract.*, written.data_type AS written_type
FROM (VALUES {columns}) AS contract(position, column_name, contract_type)
JOIN (FROM duckdb_columns() WHERE table_name = 'written') AS written USING (column_name)
WHERE contract_type <> data_type"""
    listed = ", ".join(map(str, entry.columns))
    return Check("types", f"The types are: {listed}.", sql)


def reference_check(entry: Contract) -> Check:
    """Return the check that the reference has rows: two empty results prove nothing."""
    sql = f"""\
SELECT 'no row' AS reference
WHERE NOT EXISTS (FROM reference) AND NOT ({entry.may_be_empty})"""
    rule = "The reference has rows, unless the events are too few."
    return Check("reference_rows", rule, sql)


def folded_count_check() -> Check:
    """Return the check that a folded output has as many rows as the reference."""
    sql = """\
SELECT * FROM (
    SELECT (SELECT count(*) FROM compared) AS compared, (SELECT count(*) FROM reference) AS wanted
)
WHERE compared <> wanted"""
    rule = "There are as many rows, folded by bidder, as in the reference."
    return Check("row_count", rule, sql)


def difference_checks() -> tuple[Check, Check]:
    """Return the checks that output and reference are equal as multisets of rows.

    ``EXCEPT ALL`` of long rows takes five times as long as the sums of their hashes. So it compares
    rows only if these sums differ. Two different tables have equal sums in one of 2^64 cases.
    """
    missing, unexpected = (
        f"""\
WITH differ AS (
    SELECT (SELECT sum(hash(compared)) FROM compared)
           IS DISTINCT FROM (SELECT sum(hash(wanted)) FROM wanted) AS differ
)
SELECT {one}.* FROM {one}, differ WHERE differ.differ
EXCEPT ALL
SELECT {other}.* FROM {other}, differ WHERE differ.differ"""
        for one, other in (("wanted", "compared"), ("compared", "wanted"))
    )
    return (
        Check("missing", "Every row of the reference is in the output, as often.", missing),
        Check("unexpected", "Every row of the output is in the reference, as often.", unexpected),
    )


def content_checks(entry: Contract) -> tuple[Check, ...]:
    """Return the checks of the rows of a readable output, in the order of its suite."""
    if entry.reference:
        return (reference_check(entry), *difference_checks())
    folded = (folded_count_check(),) if entry.fold else ()
    return (reference_check(entry), *folded, *difference_checks(), *invariants(entry.query))
