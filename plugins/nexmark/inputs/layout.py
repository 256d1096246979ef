"""Lay the files of a job out in micro-batches, as `nexmark_jobs.sources.laid_out_tables` says.

Spark's file source takes files by the time of their last modification, and as many as a number
says. So the rows are written again: in the order of the files' names and of the rows in them, each
micro-batch with the same number of rows in the same number of files. Two runs of two builds then
read the same rows in the same batches.
"""

from __future__ import annotations

import shutil
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from nexmark.config import Job
from nexmark.errors import NexmarkError
from nexmark.expectations.quoting import identifier, quote
from nexmark.inputs.input_files import InputTable, input_tables, with_input_hash
from nexmark.model import Say
from nexmark_jobs.sources.file_order import put_in_order
from nexmark_jobs.sources.laid_out_tables import LaidOutTable, write_tables

if TYPE_CHECKING:
    from collections.abc import Iterator

    from duckdb import DuckDBPyConnection

_MEMORY = "2GB"
#: About as many rows are worth a task of their own.
_ROWS_PER_FILE = 25_000
_MOST_FILES = 16


def lay_out(job: Job, target: Path, say: Say, most_batches: int | None = None) -> None:
    """Write the tables of a job into a directory, which appears whole or not at all.

    Args:
        job: The job.
        target: The directory; what is there is replaced.
        say: Called with a line for each table.
        most_batches: Leave out what follows this number of micro-batches; None for nothing.

    Raises:
        NexmarkError: The files cannot be read as tables, have no rows, or were changed since the
            night was planned.
    """
    if job.input_sha256 and with_input_hash(job) != job:
        problem = "the files of its tables are not what they were when the night was planned"
        raise NexmarkError(f"{job.name}: {problem}; start the DAG run again")
    work = target.with_name(f".{target.name}.unfinished")
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir(parents=True)
    try:
        laid_out = [_write(each, work, say, most_batches) for each in input_tables(job)]
        write_tables(work, laid_out)
        shutil.rmtree(target, ignore_errors=True)
        work.rename(target)
    finally:
        shutil.rmtree(work, ignore_errors=True)


@contextmanager
def _connected(directory: Path) -> Iterator[DuckDBPyConnection]:
    """Yield a connection to a database in a file of `directory`, which goes with the connection."""
    import duckdb

    place = directory / "duckdb"
    place.mkdir()
    config: dict[str, str | bool | int | float | list[str]] = {
        "memory_limit": _MEMORY,
        "temp_directory": str(place / "spill"),
    }
    try:
        with duckdb.connect(place / "rows", config=config) as connection:
            connection.execute("SET TimeZone = 'UTC'")
            yield connection
    finally:
        shutil.rmtree(place)


def _write(table: InputTable, work: Path, say: Say, most_batches: int | None) -> LaidOutTable:
    """Write the micro-batches of one table.

    Args:
        table: The table.
        work: The directory of all tables.
        say: Called with a line when it is written.
        most_batches: The most batches to write; None for all.
    """
    import duckdb

    name, wanted = table.name, table.table
    target = work / name
    target.mkdir()
    with _connected(work) as connection:
        scan = table.scan(connection, whole=True)
        expressions = table.columns(connection, scan)
        # Names of ours: a column of theirs may be called rowid, which says where a row is.
        kept = {name: f"column_{place}" for place, name in enumerate(expressions)}
        columns = ", ".join(f"{expressions[name]} AS {short}" for name, short in kept.items())
        limit = "" if most_batches is None else f" LIMIT {most_batches * wanted.rows_per_batch}"
        limit = "" if wanted.static else limit
        try:
            connection.execute(f"CREATE TABLE rows AS SELECT {columns} FROM {scan}{limit}")
        except duckdb.Error as error:
            raise table.unread(error) from None
        ((rows,),) = connection.execute("SELECT count(*) FROM rows").fetchall()
        if not rows:
            raise table.error("files", "the files have no row; name others")
        size = rows if wanted.static else wanted.rows_per_batch
        parts = 1 if wanted.static else min(max(-(-size // _ROWS_PER_FILE), 1), _MOST_FILES)
        named = ", ".join(f"{short} AS {identifier(name)}" for name, short in kept.items())
        batches = [min(size, rows - first) for first in range(0, rows, size)]
        for batch, count in enumerate(batches):
            for part in range(parts):
                first, last = (batch * size + count * each // parts for each in (part, part + 1))
                file = target / f"{batch:05}-{part:02}.parquet"
                places = f"rows.rowid >= {first} AND rows.rowid < {last} ORDER BY rows.rowid"
                part_of = f"SELECT {named} FROM rows WHERE {places}"
                connection.execute(f"COPY ({part_of}) TO {quote(file)} (FORMAT parquet)")
    put_in_order(target)
    layout = "static" if wanted.static else f"micro-batches of {size:,}"
    say(f"{table.job}: {name}: {rows:,} rows, {layout}")
    times = (None, None) if wanted.static else (wanted.event_time, wanted.watermark)
    return LaidOutTable(name, tuple(batches), parts, wanted.static, *times)
