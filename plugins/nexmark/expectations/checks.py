"""The checks of a query's output: SQL over the tables of one DuckDB.

``reference/`` has a SQL file per query: its result by an engine that is not Spark, as if the input
had ended and every window had closed. ``invariants/`` has the rules of a query, which do not know
the reference: each check is a SELECT of the rows that break one. The tables are ``person``,
``auction``, ``bid``, the output and the reference; `prepare` says which.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from importlib import resources
from typing import TYPE_CHECKING

from nexmark.expectations.contract import EXPERIMENT_CONTRACTS, Contract, contract
from nexmark.expectations.tables import Events, Output

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

_HEADER = re.compile(r"-- check (?P<name>\w+): (?P<rule>.*)")


@dataclass(frozen=True)
class Check:
    """A check of an output: its name, the rule for a person, and a SELECT of what breaks it."""

    name: str
    rule: str
    sql: str


@dataclass(frozen=True)
class RowCounts:
    """Rows of the reference, and of the output as it is compared with it (q12: folded).

    An output that is not readable is not compared, and has None.
    """

    reference: int
    compared: int | None


def invariants(query: str) -> tuple[Check, ...]:
    """Return the invariants of `query`, in the order of its file; none for an experiment's."""
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
    """Return the SQL of the result of `query`, written from the definition of it alone."""
    return _sql("reference", query)


def reference_select(query: str) -> str:
    """Return a SELECT of the result of `query`, with the contract's columns (q12: two) and types.

    It runs on the connection of opened events; the order of rows is not defined. ``.fetchall()`` of
    it keeps decimals exact, ``.df()`` does not. ExpectationsError: there is no such query.
    """
    columns = contract(query).reference_columns
    casts = ", ".join(f"CAST({c.name} AS {c.type}) AS {c.name}" for c in columns)
    return f"SELECT {casts} FROM ({reference_sql(query)})"


def _sql(folder: str, query: str) -> str:
    file = resources.files(__package__) / folder / contract(query).sql
    return file.read_text(encoding="utf-8")


def prepare(events: Events, entry: Contract, output: Output) -> RowCounts:
    """Make the tables that the checks of a loaded output need; count their rows.

    The table ``reference`` has the reference result. The views ``compared`` and ``wanted`` have
    the rows of the output and of the reference that have to be equal as multisets: all of them,
    but folded for q12, and without the columns that ties change where events have no number.
    """
    connection = events.connection
    connection.execute(f"CREATE OR REPLACE TABLE reference AS {reference_select(entry.query)}")
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
    """Return the check of the types of the columns that were written."""
    columns = ", ".join(
        f"({position}, '{column.name}', '{column.type}')"
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
    """Return the check that a comparison proves something."""
    sql = f"""\
SELECT 'no row' AS reference
WHERE NOT EXISTS (FROM reference) AND NOT ({entry.may_be_empty})"""
    rule = "The reference has rows, unless the events are too few."
    return Check("reference_rows", rule, sql)


def folded_count_check() -> Check:
    """Return the check of the number of rows of a folded output."""
    sql = """\
SELECT * FROM (
    SELECT (SELECT count(*) FROM compared) AS compared, (SELECT count(*) FROM reference) AS wanted
)
WHERE compared <> wanted"""
    rule = "There are as many rows, folded by bidder, as in the reference."
    return Check("row_count", rule, sql)


def difference_checks() -> tuple[Check, Check]:
    """Return the checks of output and reference as multisets of rows.

    ``EXCEPT ALL`` of long rows takes five times as long as sums of their hashes, so it has rows
    only where these differ. Two different tables have one sum in 2^64 cases.
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
    """Return the checks by SQL of an output that is readable, in the order of its suite."""
    folded = (folded_count_check(),) if entry.fold else ()
    return (reference_check(entry), *folded, *difference_checks(), *invariants(entry.query))
