"""Reference results: what each query yields over given events, by an engine that is not Spark.

One SQL file per query, naive and readable, over the tables ``person``, ``auction`` and ``bid``. It
is written from the query's definition alone, never from the Spark formulation it judges. The
result is the final table: as if the input had ended and every window had closed.
"""

from __future__ import annotations

from importlib import resources

from nexmark.expectations.contract import contract


def reference_sql(query: str) -> str:
    """Return the SQL text that defines the result of `query`."""
    return resources.files(__name__).joinpath(contract(query).sql).read_text(encoding="utf-8")


def reference_select(query: str) -> str:
    """Return a SELECT of the result of `query`, with the contract's columns and types.

    q12 has its bidders and counts only. It runs on the connection of opened events; the order of
    rows is not defined. ``.fetchall()`` of it keeps decimals exact, ``.df()`` does not.

    Raises:
        ExpectationsError: There is no such query.
    """
    columns = contract(query).reference_columns
    casts = ", ".join(f"CAST({c.name} AS {c.type}) AS {c.name}" for c in columns)
    return f"SELECT {casts} FROM ({reference_sql(query)})"
