"""Which files the tables of a job are, and what is in them."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from nexmark.config import Job, paths
from nexmark.config.document import display
from nexmark.config.job_tables import JobTable
from nexmark.config.own_jobs import FOLDER
from nexmark.errors import NexmarkError, suggest
from nexmark.expectations.tables import data_files, first_line, identifier, listed_files

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

#: How DuckDB reads files by the end of their names.
_READERS = {
    ".parquet": "read_parquet({}, union_by_name = true{})",
    ".json": "read_json({}, union_by_name = true{})",
    ".jsonl": "read_json({}, union_by_name = true{})",
    ".ndjson": "read_json({}, union_by_name = true{})",
    ".csv": "read_csv({}, union_by_name = true{})",
}
_KNOWN = "*.parquet, *.json, *.jsonl, *.ndjson or *.csv, the latter four also with .gz"
#: Types that Spark does not read from Parquet, or reads as something else, and what they become.
_CASTS = {
    "HUGEINT": "DECIMAL(38, 0)",
    "UHUGEINT": "DECIMAL(38, 0)",
    "UBIGINT": "DECIMAL(20, 0)",
    "UINTEGER": "BIGINT",
    "USMALLINT": "INTEGER",
    "UTINYINT": "SMALLINT",
    "BIT": "VARCHAR",
    "INTERVAL": "VARCHAR",
    "JSON": "VARCHAR",
    "TIME": "VARCHAR",
    "TIME WITH TIME ZONE": "VARCHAR",
    "UUID": "VARCHAR",
}
_ZONED = "TIMESTAMP WITH TIME ZONE"
_ZONELESS = ("TIMESTAMP", "TIMESTAMP_S", "TIMESTAMP_MS", "TIMESTAMP_NS")
_TIMES = (*_ZONELESS, _ZONED, "DATE", "VARCHAR")
_BLOCK = 1 << 20


@dataclass(frozen=True)
class InputTable:
    """A table of a job with its files, in the order in which they are read.

    Attributes:
        job: the name of the job.
        name: the name of the table.
        table: what the job says of it.
        files: the files, sorted by their paths.
    """

    job: str
    name: str
    table: JobTable
    files: tuple[Path, ...]

    def error(self, key: str, problem: str) -> NexmarkError:
        """Return the error to raise for a key of the table."""
        return _error(self.job, self.name, key, problem)

    def scan(self, *, whole: bool) -> str:
        """Return the table function of DuckDB that reads the files in their order.

        Args:
            whole: Whether types of texts are found by all rows, or by the first ones only.
        """
        ending = _ending(self.files[0])
        sampled = ", sample_size = -1" if whole and ending != ".parquet" else ""
        return _READERS[ending].format(listed_files(self.files), sampled)

    def columns(self, connection: DuckDBPyConnection, *, whole: bool) -> dict[str, str]:
        """Return the expression of each column, in a type that every Spark reads from Parquet.

        Args:
            connection: A connection to DuckDB.
            whole: Whether types of texts are found by all rows, or by the first ones only.

        Raises:
            NexmarkError: The files cannot be read, or the event time is no column of times.
        """
        import duckdb

        try:
            described = connection.execute(f"DESCRIBE FROM {self.scan(whole=whole)}").fetchall()
        except duckdb.Error as error:
            raise self.error("files", f"{first_line(error)}; correct the files") from None
        types = {str(name): str(kind) for name, kind, *_ in described}
        if (time := self.table.event_time) is not None:
            if time not in types:
                problem = f"the files have no column {time!r}; {suggest(time, types)}"
                raise self.error("event_time", problem)
            if types[time] not in _TIMES:
                problem = f"{time} is of type {types[time]}"
                remedy = "name a column of timestamps, or of texts such as 2026-01-31 10:00:00"
                raise self.error("event_time", f"{problem}; {remedy}")
        return {name: _typed(name, kind, is_time=name == time) for name, kind in types.items()}


def input_tables(job: Job) -> list[InputTable]:
    """Return the tables of a job with their files; NexmarkError where there are none."""
    if job.own_tables is None:
        return []
    return [_with_files(job.name, name, table) for name, table in job.own_tables.items()]


def input_problem(job: Job) -> str:
    """Return what is wrong with the files of a job, as one line; '' for nothing."""
    import duckdb

    try:
        with duckdb.connect() as connection:
            for table in input_tables(job):
                table.columns(connection, whole=False)
    except NexmarkError as error:
        return str(error)
    return ""


def with_input_hash(job: Job) -> Job:
    """Return a job with the hash of the content of its files; NexmarkError where there are none.

    Other files make another formulation of the job, so no night compares figures over them.
    """
    if job.own_tables is None:
        return job
    digest = hashlib.sha256()
    for table in input_tables(job):
        for file in table.files:
            digest.update(f"{table.name}\0{file.name}\0{file.stat().st_size}\0".encode())
            for block in _blocks(file):
                digest.update(block)
    return job.model_copy(update={"input_sha256": digest.hexdigest()})


def _with_files(job: str, name: str, table: JobTable) -> InputTable:
    pattern = paths.conf_dir() / FOLDER / Path(table.files).expanduser()
    files = _files(pattern)
    if not files:
        raise _error(job, name, "files", f"there is no file {display(pattern)}; correct the path")
    if strange := [file for file in files if _ending(file) not in _READERS]:
        problem = f"{display(strange[0])} is not read; name {_KNOWN}"
        raise _error(job, name, "files", problem)
    if len(endings := sorted({_ending(file) for file in files})) > 1:
        problem = f"there are files of {' and of '.join(endings)}; name one kind"
        raise _error(job, name, "files", problem)
    return InputTable(job, name, table, tuple(files))


def _files(pattern: Path) -> Sequence[Path]:
    """Return the files of a path, a directory or a pattern, without hidden ones and Spark's."""
    place = pattern.absolute()
    if place.is_file():
        return [place]
    if place.is_dir():
        return data_files(place, "**/*")
    matching = sorted(Path(place.anchor).glob(str(place.relative_to(place.anchor))))
    return [path for path in matching if path.is_file() and not path.name.startswith((".", "_"))]


def _ending(file: Path) -> str:
    """Return the end of the name of a file that says what is in it."""
    plain = file.with_suffix("") if file.suffix == ".gz" else file
    return plain.suffix.lower()


def _typed(name: str, kind: str, *, is_time: bool) -> str:
    """Return the expression of a column.

    Args:
        name: Its name.
        kind: Its type in DuckDB.
        is_time: Whether it is the event time.
    """
    column = identifier(name)
    if kind in _ZONELESS or (is_time and kind != _ZONED):
        # A time without a zone is one of UTC; Spark then reads a TIMESTAMP, not a TIMESTAMP_NTZ.
        return f"{column}::TIMESTAMP::{_ZONED} AS {column}"
    cast = "VARCHAR" if kind.startswith("ENUM") else _CASTS.get(kind)
    return f"{column}::{cast} AS {column}" if cast else column


def _error(job: str, table: str, key: str, problem: str) -> NexmarkError:
    file = display(paths.conf_dir() / FOLDER / f"{job}.yaml")
    return NexmarkError(f"{file}: tables.{table}.{key}: {problem}")


def _blocks(path: Path) -> Iterator[bytes]:
    with path.open("rb") as file:
        while block := file.read(_BLOCK):
            yield block
