"""The whole results database as files: CSV, or Parquet by way of DuckDB, which reads JSON lines."""

from __future__ import annotations

import csv
import json
import math
import os
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from sqlalchemy import JSON, Boolean, Column, Float, Integer, select
from sqlalchemy.orm import Session

from nexmark.measure.cpu_series import unpack
from nexmark.store.replayed import write_nights
from nexmark.store.store_error import StoreError
from nexmark.store.table_base import Base, Utc
from nexmark.store.table_rows import SeriesRow

FORMATS = ("parquet", "csv")
_AT_ONCE = 200
_TYPES: tuple[tuple[type[Any], str], ...] = (
    (Utc, "TIMESTAMPTZ"),
    (Boolean, "BOOLEAN"),
    (Integer, "BIGINT"),
    (Float, "DOUBLE"),
)
_TEXT = "VARCHAR"
_PACKED = "series"
_CUMULATIVE = ("executors", "python", "driver", "busy", "steal")
_SERIES = {"sampler_cores": "DOUBLE", "executor_count": "BIGINT", "executor_ends": _TEXT}
_SAMPLE = {"repetition_id": "BIGINT", "host": _TEXT, "time": "DOUBLE"} | dict.fromkeys(
    _CUMULATIVE, "DOUBLE"
)

Rows = Iterable[Mapping[str, Any]]


def export(session: Session, directory: Path, form: str) -> Mapping[str, int]:
    """Write every table and the paired nights into a directory that is not there, or empty.

    Returns the number of rows by file; of a file of nights, of nights. It is there whole or not at
    all. StoreError when it cannot be written.
    """
    try:
        with _whole(directory) as temporary:
            written = {
                f"{table.name}.{form}": _WRITERS[form](table, temporary / f"{table.name}.{form}")
                for table in tables(session)
            }
            return {**written, **write_nights(session, temporary)}
    except OSError as error:
        raise StoreError(
            f"cannot export to {directory}: {error.strerror or error}; give another OUT"
        ) from error


@contextmanager
def _whole(directory: Path) -> Iterator[Path]:
    """Let a directory be filled under a temporary name beside it; renamed at the end."""
    if directory.exists() and (not directory.is_dir() or any(directory.iterdir())):
        what = "is not empty" if directory.is_dir() else "is a file"
        raise StoreError(f"cannot export to {directory}: it {what}; give another OUT")
    target = directory.resolve()
    target.parent.mkdir(parents=True, exist_ok=True)
    temporary = target.with_name(f".{target.name}.{os.getpid()}.tmp")
    shutil.rmtree(temporary, ignore_errors=True)
    temporary.mkdir()
    try:
        yield temporary
        temporary.replace(target)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


@dataclass(frozen=True)
class ExportedTable:
    """A table to be written: its columns with DuckDB's names of their types, and its rows."""

    name: str
    columns: Mapping[str, str]
    rows: Rows


def tables(session: Session) -> Iterator[ExportedTable]:
    """Return every table, its rows in the order they were recorded.

    What is packed in ``sample_series`` is there as ``samples``, one row per reading: cumulative
    CPU-seconds at a time (seconds since 1970).
    """
    for table in Base.metadata.sorted_tables:
        columns = {column.name: _type(column) for column in table.columns}
        if table.name == SeriesRow.__tablename__:
            del columns[_PACKED]
            yield ExportedTable(table.name, columns | _SERIES, _series(session))
            yield ExportedTable("samples", _SAMPLE, _samples(session))
        else:
            statement = select(table).order_by(*table.primary_key.columns)
            rows = session.execute(statement.execution_options(yield_per=_AT_ONCE))
            yield ExportedTable(table.name, columns, (dict(row) for row in rows.mappings()))


def write_csv(table: ExportedTable, path: Path) -> int:
    """Write a table as CSV, nothing where there is NULL; return how many rows it has."""
    with path.open("w", encoding="utf-8", newline="") as stream:
        writer = csv.writer(stream, lineterminator="\n")
        writer.writerow(table.columns)
        return _each(table.rows, lambda row: writer.writerow(_cells(row, table.columns)))


def write_parquet(table: ExportedTable, path: Path) -> int:
    """Write a table as Parquet; return how many rows it has."""
    import duckdb

    lines = path.with_suffix(".jsonl")
    with lines.open("w", encoding="utf-8") as stream:
        count = _each(table.rows, lambda row: stream.write(_line(row, table.columns) + "\n"))
    columns = ", ".join(f"'{name}': '{kind}'" for name, kind in table.columns.items())
    source = f"read_json({_text(lines)}, format='newline_delimited', columns={{{columns}}})"
    options = "FORMAT parquet, COMPRESSION zstd"
    try:
        with duckdb.connect() as connection:
            connection.execute("SET threads = 1")  # the rows stay in their order
            connection.execute(f"COPY (SELECT * FROM {source}) TO {_text(path)} ({options})")
    except duckdb.Error as error:
        raise StoreError(f"cannot write {path.name}: {error}; try FORMAT=csv") from error
    lines.unlink()
    return count


def plain(value: Any) -> Any:
    """Return a value as CSV and JSON have it: moments in ISO 8601, JSON as its text."""
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat()
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if isinstance(value, dict | list | tuple):
        return json.dumps(value, separators=(",", ":"), ensure_ascii=False)
    return value


def _each(rows: Rows, write: Callable[[Mapping[str, Any]], object]) -> int:
    count = 0
    for row in rows:
        write(row)
        count += 1
    return count


def _cells(row: Mapping[str, Any], columns: Iterable[str]) -> list[Any]:
    return [plain(row[name]) for name in columns]


def _line(row: Mapping[str, Any], columns: Iterable[str]) -> str:
    return json.dumps({name: plain(row[name]) for name in columns}, ensure_ascii=False)


def _text(path: Path) -> str:
    """Return a path as a literal of DuckDB."""
    return "'" + str(path).replace("'", "''") + "'"


def _type(column: Column[Any]) -> str:
    if isinstance(column.type, JSON):
        return _TEXT
    return next((name for kind, name in _TYPES if isinstance(column.type, kind)), _TEXT)


def _stored(session: Session) -> Iterator[SeriesRow]:
    statement = select(SeriesRow).order_by(SeriesRow.id)
    for row in session.scalars(statement.execution_options(yield_per=_AT_ONCE)):
        yield row
        session.expunge(row)


def _series(session: Session) -> Rows:
    names = [x.name for x in SeriesRow.__table__.columns if x.name != _PACKED]
    for row in _stored(session):
        series = unpack(row.series)
        own = {name: getattr(row, name) for name in names}
        yield own | {name: getattr(series, name) for name in _SERIES}


def _samples(session: Session) -> Rows:
    for row in _stored(session):
        series = unpack(row.series)
        columns: list[Sequence[float | None]] = [
            getattr(series, name) or [None] * len(series.times) for name in _CUMULATIVE
        ]
        for time, *values in zip(series.times, *columns, strict=True):
            figures = dict(zip(_CUMULATIVE, values, strict=True))
            yield {"repetition_id": row.repetition_id, "host": row.host, "time": time, **figures}


_WRITERS = {"csv": write_csv, "parquet": write_parquet}
