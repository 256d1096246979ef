"""Do the files of a job have rows behind the warm-up?"""

from __future__ import annotations

from typing import TYPE_CHECKING

from nexmark.config import Job
from nexmark.errors import NexmarkError
from nexmark.inputs.input_files import InputTable, input_tables

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

#: About as many micro-batches behind the warm-up are proposed.
_PROPOSED = 10


def warm_up_problem(job: Job, warm_up: int) -> str:
    """Return a line if a job over files has only warm-up, with the key to change; '' if it has not.

    Files that cannot be read say nothing here: `input_problem` and the layout say it.

    Args:
        job: The job.
        warm_up: How many micro-batches of a repetition are its warm-up.
    """
    import duckdb

    streams = [each for each in input_tables(job) if not each.table.static]
    if not streams:
        return ""
    try:
        with duckdb.connect() as connection:
            counted = [(each, _rows(connection, each)) for each in streams]
    except (NexmarkError, duckdb.Error):
        return ""
    table, rows = max(counted, key=lambda pair: _batches(*pair))
    batches = _batches(table, rows)
    if batches > warm_up:
        return ""
    plural = "es" if batches > 1 else ""
    problem = f"{rows:,} rows are {batches} micro-batch{plural}, all of them warm-up"
    start = "so the figures of the job have the start of the JVM in them"
    remedy = f"write rows_per_batch: {max(rows // (_PROPOSED + warm_up), 1)}"
    return str(table.error("rows_per_batch", f"{problem}, {start}; {remedy}"))


def _rows(connection: DuckDBPyConnection, table: InputTable) -> int:
    query = f"SELECT count(*) FROM {table.scan(connection, whole=False)}"
    ((rows,),) = connection.execute(query).fetchall()
    return int(rows)


def _batches(table: InputTable, rows: int) -> int:
    return -(-rows // table.table.rows_per_batch)
