"""Loads Nexmark events into the DuckDB tables person, auction and bid, and an output into a table.

The events are files of ``nexmark_jobs/dump_events.py`` or recorded Nexmark topics. They are JSON
with an object per line (gzip or not), or Parquet. ``n`` and the keys of the other two entities may
be missing. The time of a timestamp follows ``T`` or a blank, and has 0 to 9 decimals. Decimals
beyond milliseconds are cut off, because the schema says TIMESTAMP(3). An output gets the columns
and types of its contract.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from nexmark.expectations.comparable import plain_times, sorted_maps
from nexmark.expectations.contract import Column, Contract, ExpectationsError
from nexmark.expectations.quoting import identifier, quote
from nexmark_jobs.errors import UsageError
from nexmark_jobs.sources.laid_out_tables import read_tables
from nexmark_jobs.sources.recorded_events import FIELDS, check_lines

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

MEMORY_LIMIT = "2GB"
SINKS = ("parquet", "filesystem")

_TYPES = {"bigint": "BIGINT", "string": "VARCHAR", "timestamp": "TIMESTAMP"}
ENTITIES: dict[str, dict[str, str]] = {
    entity: {name: _TYPES[kind] for name, kind in fields.items()}
    for entity, fields in FIELDS.items()
}
"""The types of the fields of each entity; the entities are in the order of ``event_type``."""

_JSON_SUFFIXES = (".json", ".jsonl", ".ndjson", ".json.gz", ".jsonl.gz", ".ndjson.gz")
_COMMITTED = "_SUCCESS"
_PARTITION_COLUMNS = ("dt", "hm")


@dataclass(frozen=True)
class Events:
    """Opened events: a DuckDB connection with the tables ``person``, ``auction`` and ``bid``.

    Each table has the fields of its entity, and ``n``, the number of the event. ``numbered``: each
    event has a number of its own; if not, ``n`` is NULL in all rows. A job with own files has its
    own tables in their place.
    """

    connection: DuckDBPyConnection
    count: int
    numbered: bool


@contextmanager
def open_events(path: Path | str) -> Iterator[Events]:
    """Load the events of a directory or a file; ExpectationsError says where an event is wrong."""
    import duckdb

    path = Path(path)
    files = _event_files(path)
    with _connected() as database:
        try:
            _load(database, files)
        except duckdb.Error as error:
            raise ExpectationsError(_find_fault(files) or f"{path}: {first_line(error)}") from None
        yield Events(database, *_checked(database, files))


@contextmanager
def open_laid_out(directory: Path) -> Iterator[Events]:
    """Open the tables of a job's own files, as `nexmark.inputs` lays them out.

    Each is a view, with its times as TIMESTAMP in UTC. `count` is the number of rows of the
    streams.
    """
    with _connected() as connection:
        tables = read_tables(directory)
        for table in tables:
            scan = f"read_parquet({listed_files(data_files(directory / table.name))})"
            described = connection.execute(f"DESCRIBE FROM {scan}").fetchall()
            columns = ", ".join(_without_zone(str(name), kind) for name, kind, *_ in described)
            view = f"CREATE VIEW {identifier(table.name)} AS SELECT {columns} FROM {scan}"
            connection.execute(view)
        count = sum(sum(table.rows) for table in tables if not table.static)
        yield Events(connection, count, numbered=True)


@contextmanager
def _connected() -> Iterator[DuckDBPyConnection]:
    """Yield a connection to a database of its own, with bounded memory, in UTC."""
    import duckdb

    with (
        tempfile.TemporaryDirectory(prefix="nexmark-duckdb-") as spill,
        duckdb.connect(config={"memory_limit": MEMORY_LIMIT, "temp_directory": spill}) as database,
    ):
        database.execute("SET GLOBAL TimeZone = 'UTC'")
        yield database


def _without_zone(name: str, kind: str) -> str:
    column, plain = identifier(name), plain_times(kind)
    return column if plain == kind else f"{column}::{plain} AS {column}"


def data_files(directory: Path, pattern: str = "*") -> list[Path]:
    """Return the data files below `directory`, sorted; names with a leading . or _ are left out."""

    def visible(file: Path) -> bool:
        return not any(part.startswith((".", "_")) for part in file.relative_to(directory).parts)

    return sorted(file for file in directory.glob(pattern) if file.is_file() and visible(file))


def listed_files(files: Iterable[Path]) -> str:
    """Return paths as a list of DuckDB."""
    return "[" + ", ".join(quote(os.fspath(file)) for file in files) + "]"


def _event_files(path: Path) -> list[Path]:
    if not path.exists():
        raise ExpectationsError(f"no events at {path}: write them with nexmark_jobs/dump_events.py")
    files = [path] if path.is_file() else data_files(path)
    if not files:
        raise ExpectationsError(
            f"{path} holds no event file: write it with nexmark_jobs/dump_events.py"
        )
    for file in files:
        if not file.name.endswith((*_JSON_SUFFIXES, ".parquet")):
            raise ExpectationsError(
                f"{file} is not an event file: events are *.json, *.jsonl (also .gz) or *.parquet"
            )
    if len({file.suffix == ".parquet" for file in files}) > 1:
        raise ExpectationsError(
            f"{path} mixes Parquet and JSON events: keep one format per directory"
        )
    return files


def _load(connection: DuckDBPyConnection, files: list[Path]) -> None:
    """Load the files into the table ``event``, and from there into a table per entity.

    ``event`` has the columns n and event_type, and a struct per entity.
    """
    names = listed_files(files)
    if files[0].suffix == ".parquet":
        scan = f"read_parquet({names}, union_by_name = true)"
        present = {row[0] for row in connection.execute(f"DESCRIBE FROM {scan}").fetchall()}
        number = "n" if "n" in present else "NULL"
    else:
        structs = ", ".join(
            f"{entity}: {quote(_struct(fields))}" for entity, fields in ENTITIES.items()
        )
        scan = (
            f"read_json({names}, format = 'newline_delimited', "
            f"columns = {{n: 'BIGINT', event_type: 'INTEGER', {structs}}})"
        )
        number = "n"
    connection.execute(
        f"CREATE TABLE event AS SELECT CAST({number} AS BIGINT) AS n, "
        f"CAST(event_type AS INTEGER) AS event_type, {', '.join(ENTITIES)} FROM {scan}"
    )
    for event_type, (entity, fields) in enumerate(ENTITIES.items()):
        columns = "n"
        for name, kind in fields.items():
            value = f"TRY_CAST({entity}.{name} AS {kind})"
            if kind == "TIMESTAMP":
                value = f"date_trunc('millisecond', {value})"
            columns += f", {value} AS {name}"
        where = f"event_type = {event_type}"
        connection.execute(f"CREATE TABLE {entity} AS SELECT {columns} FROM event WHERE {where}")


def _struct(fields: dict[str, str]) -> str:
    return "STRUCT(" + ", ".join(f"{name} {kind}" for name, kind in fields.items()) + ")"


def _checked(connection: DuckDBPyConnection, files: list[Path]) -> tuple[int, bool]:
    """Return the number of events and whether all have numbers; ExpectationsError if one is bad."""
    ((count, unknown, numbers),) = connection.execute(
        "SELECT count(*), count(*) FILTER (WHERE event_type NOT IN (0, 1, 2) "
        "OR event_type IS NULL), count(DISTINCT n) FROM event"
    ).fetchall()
    at = files[0].parent
    if count == 0:
        raise ExpectationsError(f"{at} holds no event: write some with nexmark_jobs/dump_events.py")
    faults = ["event_type is not 0, 1 or 2"] if unknown else []
    for entity, fields in ENTITIES.items():
        counts = ", ".join(f"count(*) - count({name})" for name in fields)
        (nulls,) = connection.execute(f"SELECT {counts} FROM {entity}").fetchall()
        faults += [
            f"{entity}.{name} is missing or malformed in {missing} events"
            for name, missing in zip(fields, nulls, strict=True)
            if missing
        ]
    if faults:
        raise ExpectationsError(_find_fault(files) or f"{at}: {faults[0]}; dump the events again")
    connection.execute("DROP TABLE event")
    numbered = numbers == count
    if not numbered:
        for entity in ENTITIES:
            connection.execute(f"UPDATE {entity} SET n = NULL")
    return count, numbered


def first_line(error: Exception) -> str:
    """Return the first line of the message of an error."""
    return str(error).strip().splitlines()[0]


def _find_fault(files: list[Path]) -> str | None:
    """Return what is wrong with the first malformed JSON event; None if there is none."""
    for file in files:
        if file.suffix != ".parquet":
            try:
                check_lines(file)
            except (UsageError, OSError) as error:
                return str(error).removeprefix("--source: ")
    return None


@dataclass(frozen=True)
class Output:
    """A loaded output.

    ``columns`` are the columns of the files, as the view ``written`` has them. If these have the
    names of the contract, the output is ``readable``: then the table ``output`` has its rows, with
    the columns in the order and the types of the contract; a value of another type is NULL. The
    table ``partition`` says for each directory of a filesystem sink whether it is committed.
    """

    columns: tuple[Column, ...]
    rows: int
    readable: bool


def load_output(
    connection: DuckDBPyConnection, entry: Contract, directory: Path, sink: str
) -> Output:
    """Load the output of a query into tables.

    Args:
        connection: The connection with the events.
        entry: The contract of the query.
        directory: The directory of the output.
        sink: The sink that wrote it.

    Raises:
        ExpectationsError: The output is missing or empty, its files have different columns, or the
            query has no such sink.
    """
    import duckdb

    if sink not in SINKS:
        raise ExpectationsError(f"unknown sink '{sink}': use one of {', '.join(SINKS)}")
    if sink == "filesystem" and entry.names[-2:] != _PARTITION_COLUMNS:
        raise ExpectationsError(f"{entry.query} has no filesystem sink: only q10 has; use parquet")
    scan = _scan(entry, directory, partitioned=entry.names[-2:] == _PARTITION_COLUMNS)
    try:
        described = connection.execute(f"DESCRIBE FROM {scan}").fetchall()
        columns = tuple(Column(name, plain_times(kind)) for name, kind, *_ in described)
        instants = ", ".join(
            f"CAST({identifier(column.name)} AS {column.type}) AS {identifier(column.name)}"
            for column in columns
            if "TIMESTAMP" in column.type
        )
        replaced = f"* REPLACE ({instants})" if instants else "*"
        connection.execute(f"CREATE OR REPLACE VIEW written AS SELECT {replaced} FROM {scan}")
        rows = connection.execute(f"SELECT count(*) FROM {scan}").fetchall()[0][0]
        readable = {column.name for column in columns} == set(entry.names)
        if readable:
            casts = ", ".join(_cast(column) for column in entry.columns)
            connection.execute(f"CREATE OR REPLACE TABLE output AS SELECT {casts} FROM {scan}")
    except duckdb.Error as error:
        raise ExpectationsError(
            f"{directory} cannot be read as output of {entry.query}: {first_line(error)}"
        ) from None
    _load_partitions(connection, directory if sink == "filesystem" else None)
    return Output(columns, rows, readable)


def _cast(column: Column) -> str:
    """Return the expression of a column of an output in the type of the contract, else NULL."""
    name = identifier(column.name)
    return f"{sorted_maps(f'TRY_CAST({name} AS {column.type})', column.type)} AS {name}"


def _scan(entry: Contract, at: Path, *, partitioned: bool) -> str:
    """Return a table function of DuckDB that reads the data files below `at`."""
    if not at.is_dir():
        raise ExpectationsError(f"no output directory {at}: run the query with --sink parquet:{at}")
    files = data_files(at, "**/*.parquet")
    function, options = "read_parquet", []
    if not files:
        files, function = data_files(at, "**/*.csv"), "read_csv"
        kept = (column for column in entry.columns if column.name not in _PARTITION_COLUMNS)
        columns = ", ".join(f"{column.name}: {quote(column.type)}" for column in kept)
        options = [
            "auto_detect = false, header = false, allow_quoted_nulls = false",
            "delim = ',', quote = '\"', escape = '\\'",
            f"columns = {{{columns}}}",
        ]
    if not files:
        raise ExpectationsError(f"{at} holds no *.parquet: the query job wrote nothing there")
    if partitioned and all(file.parent != at for file in files):
        options += ["hive_partitioning = true", "hive_types_autocast = false"]
    else:
        options += ["hive_partitioning = false"]
    return f"{function}({', '.join([listed_files(files), *options])})"


def _load_partitions(connection: DuckDBPyConnection, directory: Path | None) -> None:
    connection.execute('CREATE OR REPLACE TABLE "partition" (directory VARCHAR, committed BOOLEAN)')
    if directory is None:
        return
    for parent in sorted({file.parent for file in data_files(directory, "**/*.*")}):
        row = [os.fspath(parent.relative_to(directory)), (parent / _COMMITTED).is_file()]
        connection.execute('INSERT INTO "partition" VALUES (?, ?)', row)
