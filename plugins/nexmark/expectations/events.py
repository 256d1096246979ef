"""Nexmark events of a directory as three DuckDB tables: person, auction and bid.

Reads the files of ``nexmark_jobs/dump_events.py`` and recorded Nexmark topics: JSON (one object per
line, gzip or not) or Parquet. ``n`` and the keys of the two other entities may be absent. A
timestamp has a ``T`` or a blank, and 0 to 9 fraction digits. Digits beyond milliseconds are cut off
(the schema says TIMESTAMP(3)).
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nexmark.expectations.contract import EventsError
from nexmark_jobs.ending import UsageError
from nexmark_jobs.sources.recorded_events import FIELDS, check_lines

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection


MEMORY_LIMIT = "2GB"

_TYPES = {"bigint": "BIGINT", "string": "VARCHAR", "timestamp": "TIMESTAMP"}
ENTITIES: dict[str, dict[str, str]] = {
    entity: {name: _TYPES[kind] for name, kind in fields.items()}
    for entity, fields in FIELDS.items()
}
"""Fields and types of each entity, in the order of ``event_type``."""

_JSON_SUFFIXES = (".json", ".jsonl", ".ndjson", ".json.gz", ".jsonl.gz", ".ndjson.gz")


@dataclass(frozen=True)
class Events:
    """Opened events: a DuckDB connection with the tables ``person``, ``auction`` and ``bid``.

    Each table has the entity's fields and ``n``, the event number, which is NULL throughout unless
    every event has its own (``numbered``).
    """

    connection: DuckDBPyConnection
    path: Path
    count: int
    numbered: bool


@contextmanager
def open_events(path: Path | str) -> Iterator[Events]:
    """Load events of a directory (or a file) into a DuckDB; EventsError says where one is wrong."""
    import duckdb

    path = Path(path)
    files = _event_files(path)
    with (
        tempfile.TemporaryDirectory(prefix="nexmark-duckdb-") as spill,
        duckdb.connect(
            config={"memory_limit": MEMORY_LIMIT, "temp_directory": spill}
        ) as connection,
    ):
        connection.execute("SET TimeZone = 'UTC'")
        try:
            _load(connection, files)
        except duckdb.Error as error:
            raise EventsError(_find_fault(files) or f"{path}: {first_line(error)}") from None
        count, numbered = _tables(connection, files)
        yield Events(connection, path, count, numbered)


def data_files(directory: Path, pattern: str = "*") -> list[Path]:
    """Return the files below `directory` that hold data, sorted: no hidden or ``_`` entries."""

    def visible(file: Path) -> bool:
        return not any(part.startswith((".", "_")) for part in file.relative_to(directory).parts)

    return sorted(f for f in directory.glob(pattern) if f.is_file() and visible(f))


def quote(text: object) -> str:
    """Return `text` as an SQL string literal."""
    return "'" + str(text).replace("'", "''") + "'"


def listed(files: Iterable[Path]) -> str:
    """Return files as an SQL list."""
    return "[" + ", ".join(quote(os.fspath(file)) for file in files) + "]"


def _event_files(path: Path) -> list[Path]:
    if not path.exists():
        raise EventsError(f"no events at {path}: write them with nexmark_jobs/dump_events.py")
    files = [path] if path.is_file() else data_files(path)
    if not files:
        raise EventsError(f"{path} holds no event file: write it with nexmark_jobs/dump_events.py")
    for file in files:
        if not file.name.endswith((*_JSON_SUFFIXES, ".parquet")):
            raise EventsError(
                f"{file} is not an event file: events are *.json, *.jsonl (also .gz) or *.parquet"
            )
    if len({file.suffix == ".parquet" for file in files}) > 1:
        raise EventsError(f"{path} mixes Parquet and JSON events: keep one format per directory")
    return files


def _load(connection: DuckDBPyConnection, files: list[Path]) -> None:
    """Read the files into the table ``event``: n, event_type and one struct per entity."""
    names = listed(files)
    if files[0].suffix == ".parquet":
        scan = f"read_parquet({names}, union_by_name = true)"
        present = {row[0] for row in connection.execute(f"DESCRIBE FROM {scan}").fetchall()}
        number = "n" if "n" in present else "NULL"
    else:
        structs = ", ".join(f"{entity}: {quote(_struct(x))}" for entity, x in ENTITIES.items())
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
    types = {"TIMESTAMP": "VARCHAR"}
    return "STRUCT(" + ", ".join(f"{n} {types.get(k, k)}" for n, k in fields.items()) + ")"


def _tables(connection: DuckDBPyConnection, files: list[Path]) -> tuple[int, bool]:
    """Check that every event is whole; return their number and whether they are numbered."""
    count, unknown, numbers = _one(
        connection,
        "SELECT count(*), count(*) FILTER (WHERE event_type NOT IN (0, 1, 2) "
        "OR event_type IS NULL), count(DISTINCT n) FROM event",
    )
    where = files[0].parent
    if count == 0:
        raise EventsError(f"{where} holds no event: write some with nexmark_jobs/dump_events.py")
    faults = ["event_type is not 0, 1 or 2"] if unknown else []
    for entity, fields in ENTITIES.items():
        counts = ", ".join(f"count(*) - count({name})" for name in fields)
        nulls = _one(connection, f"SELECT {counts} FROM {entity}")
        faults += [
            f"{entity}.{name} is missing or malformed in {missing} events"
            for name, missing in zip(fields, nulls, strict=True)
            if missing
        ]
    if faults:
        raise EventsError(_find_fault(files) or f"{where}: {faults[0]}; dump the events again")
    connection.execute("DROP TABLE event")
    numbered = numbers == count
    if not numbered:
        for entity in ENTITIES:
            connection.execute(f"UPDATE {entity} SET n = NULL")
    return count, numbered


def _one(connection: DuckDBPyConnection, sql: str) -> tuple[Any, ...]:
    row = connection.execute(sql).fetchone()
    assert row is not None
    return tuple(row)


def first_line(error: Exception) -> str:
    """Return what an error says in short."""
    return str(error).strip().splitlines()[0]


def _find_fault(files: list[Path]) -> str | None:
    """Look for the first malformed JSON event, line by line; None when there is none."""
    for file in files:
        if file.suffix != ".parquet":
            try:
                check_lines(file)
            except (UsageError, OSError) as error:
                return str(error).removeprefix("--source: ")
    return None
