"""The checks of a query's output, and the evidence that DuckDB finds for or against it.

``reference/`` has a SQL file per query: its result by an engine that is not Spark, as if the input
had ended and every window had closed. ``invariants/`` has the rules of a query, which do not know
the reference: each check is a SELECT of the rows that break one. Both run over the tables
``person``, ``auction`` and ``bid``, the invariants also over ``output``.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from importlib import resources
from typing import TYPE_CHECKING, Any

from nexmark.expectations.contract import EXPERIMENT_CONTRACTS, Column, Contract, contract
from nexmark.expectations.tables import Events, Output

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

EXAMPLES = 3
MAX_TEXT = 60

_NOT_COMPARABLE = "not checked: the columns differ from the contract"
_HEADER = re.compile(r"-- check (?P<name>\w+): (?P<rule>.*)")


@dataclass(frozen=True)
class Check:
    """One invariant: its name, the rule for a person, and a SELECT of the rows that break it."""

    name: str
    rule: str
    sql: str


@dataclass(frozen=True)
class Evidence:
    """The ``findings`` on one output: each a sentence about a problem, with example rows, or None.

    They are named schema, difference, and as the invariants.
    ``compared_rows`` counts the output's rows after folding (q12), ``missing_rows`` the rows that
    only the reference has, ``unexpected_rows`` those that only the output has; duplicates count
    each time. If the columns differ from the contract, the output is not ``comparable``: these two
    counts are None, and only the schema finding is meaningful.
    """

    query: str
    events: int
    rows: int
    reference_rows: int
    reference_may_be_empty: bool
    comparable: bool
    compared_rows: int
    missing_rows: int | None
    unexpected_rows: int | None
    findings: dict[str, str | None]


def invariants(query: str) -> tuple[Check, ...]:
    """Return the invariants of `query`, in the order of its file; none for an experiment's."""
    if query in EXPERIMENT_CONTRACTS:
        return ()
    found = []
    for statement in filter(None, map(str.strip, _sql("invariants", query).split(";\n"))):
        comment, sql = re.split(r"\n(?!--)", statement, maxsplit=1)
        header = _HEADER.fullmatch(comment.replace("\n-- ", " "))
        if header is None:
            raise ValueError(f"an invariant begins with '-- check NAME: RULE', not with: {comment}")
        found.append(Check(header["name"], header["rule"], sql))
    return tuple(found)


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


def gather(events: Events, entry: Contract, output: Output) -> Evidence:
    """Compare the loaded output of a query with its reference and run its invariants."""
    connection = events.connection
    connection.execute(f"CREATE OR REPLACE TEMP TABLE reference AS {reference_select(entry.query)}")
    reference_rows = _count(connection, "reference")
    compared_rows, missing, unexpected = output.rows, None, None
    rules = {check.name: check.sql for check in invariants(entry.query)}
    found: dict[str, str | None] = dict.fromkeys(("difference", *rules), _NOT_COMPARABLE)
    if output.readable:
        found = {name: _finding(connection, sql) for name, sql in rules.items()}
        compared_rows, missing, unexpected, found["difference"] = _compare(events, entry)
    return Evidence(
        query=entry.query,
        events=events.count,
        rows=output.rows,
        comparable=output.readable,
        reference_rows=reference_rows,
        reference_may_be_empty=bool(connection.execute(entry.may_be_empty).fetchall()[0][0]),
        compared_rows=compared_rows,
        missing_rows=missing,
        unexpected_rows=unexpected,
        findings={"schema": _schema_finding(entry.columns, output.columns), **found},
    )


def _compare(events: Events, entry: Contract) -> tuple[int, int, int, str | None]:
    """Compare output and reference as multisets; return rows, missing, unexpected, finding.

    Rows are compared by a 64-bit hash of all their values. This is 5 times faster than grouping by
    the values, and two different rows pass as equal once in 2^64.
    """
    connection, compared = events.connection, "FROM output"
    if entry.fold:
        terms = ", ".join(f"{expression} AS {name}" for name, expression in entry.fold.items())
        compared = f"SELECT {terms} FROM output GROUP BY ALL"
    columns = "*" if events.numbered else ", ".join(entry.tie_free) or "*"
    for side, rows in (("found", compared), ("wanted", "FROM reference")):
        connection.execute(
            f"CREATE OR REPLACE TEMP TABLE {side} AS "
            f"SELECT hash(line) AS line_hash, line.* FROM (SELECT {columns} FROM ({rows})) AS line"
        )
    connection.execute(
        "CREATE OR REPLACE TEMP TABLE difference AS "
        "SELECT line_hash, sum(copies) AS copies FROM ("
        "SELECT line_hash, 1 AS copies FROM found UNION ALL SELECT line_hash, -1 FROM wanted"
        ") GROUP BY line_hash HAVING sum(copies) <> 0"
    )
    ((missing, unexpected),) = connection.execute(
        "SELECT coalesce(-sum(copies) FILTER (WHERE copies < 0), 0)::BIGINT, "
        "coalesce(sum(copies) FILTER (WHERE copies > 0), 0)::BIGINT FROM difference"
    ).fetchall()
    parts = []
    sides = ((missing, "missing", "wanted", "< 0"), (unexpected, "unexpected", "found", "> 0"))
    for count, what, side, copies in (each for each in sides if each[0]):
        examples = _examples(
            connection,
            f"SELECT DISTINCT * EXCLUDE (line_hash) FROM {side} "
            f"WHERE line_hash IN (SELECT line_hash FROM difference WHERE copies {copies})",
        )
        parts.append(f"{count} {'row' if count == 1 else 'rows'} {what}, e.g. {examples}")
    return _count(connection, "found"), missing, unexpected, "; ".join(parts) or None


def _finding(connection: DuckDBPyConnection, sql: str) -> str | None:
    """Run a SELECT of rows that break a rule; return the finding, None if there is none."""
    connection.execute(f"CREATE OR REPLACE TEMP TABLE broken AS {sql}")
    count = _count(connection, "broken")
    if not count:
        return None
    examples = _examples(connection, "FROM broken")
    return f"{count} {'case' if count == 1 else 'cases'}, e.g. {examples}"


def _examples(connection: DuckDBPyConnection, sql: str) -> str:
    found = connection.execute(f"FROM ({sql}) ORDER BY ALL LIMIT {EXAMPLES}")
    names = [column[0] for column in found.description or ()]
    return ", ".join(
        "{" + ", ".join(f"{n}: {_text(v)}" for n, v in zip(names, row, strict=True)) + "}"
        for row in found.fetchall()
    )


def _text(value: Any) -> str:
    if isinstance(value, dict):
        return "{" + ", ".join(f"{name}: {_text(part)}" for name, part in value.items()) + "}"
    text = "NULL" if value is None else repr(value) if isinstance(value, str) else str(value)
    return text if len(text) <= MAX_TEXT else text[: MAX_TEXT - 2] + ".."


def _schema_finding(wanted: tuple[Column, ...], found: tuple[Column, ...]) -> str | None:
    if wanted == found:
        return None
    if len(wanted) != len(found):
        listed = ", ".join(map(str, found))
        return f"{len(found)} columns, the contract has {len(wanted)}; found: {listed}"
    return "; ".join(
        f"column {position} is '{has}', the contract says '{wants}'"
        for position, (wants, has) in enumerate(zip(wanted, found, strict=True), 1)
        if wants != has
    )


def _count(connection: DuckDBPyConnection, table: str) -> int:
    return int(connection.execute(f"SELECT count(*) FROM {table}").fetchall()[0][0])
