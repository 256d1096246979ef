"""Runs the checks of an output by DuckDB alone: the SQL of the suite, without the seconds that
Great Expectations takes. `test_validation.py` holds that both find the same."""

from __future__ import annotations

from pathlib import Path

from nexmark.expectations.checks import content_checks, prepare, types_check
from nexmark.expectations.contract import contract
from nexmark.expectations.tables import Events, load_output

DIFFERENCE = "difference"
"""Rows are missing or unexpected: the tables of wrong engines do not say which."""


def failed(events: Events, query: str, directory: Path, sink: str = "parquet") -> set[str]:
    """The names of what is wrong with an output, as its messages have them."""
    entry = contract(query)
    output = load_output(events.connection, entry, directory, sink)
    checks = [types_check(entry)]
    counts = prepare(events, entry, output)
    names = set() if [c.name for c in output.columns] == list(entry.names) else {"schema"}
    if output.readable:
        checks += content_checks(entry)
        if counts.compared != counts.reference:
            names.add("row_count")
    for check in checks:
        ((rows,),) = events.connection.execute(f"SELECT count(*) FROM ({check.sql}\n)").fetchall()
        if rows:
            names.add("schema" if check.name == "types" else check.name)
    return names | {DIFFERENCE} if names & {"missing", "unexpected"} else names
