"""Which files the tables of a job are, and what is in them."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from nexmark.config import Job, paths
from nexmark.config.document import display
from nexmark.config.job_tables import JobTable, duckdb_type
from nexmark.config.own_jobs import FOLDER
from nexmark.errors import NexmarkError, suggest
from nexmark.expectations.quoting import identifier, quote
from nexmark.expectations.tables import data_files, listed_files
from nexmark.inputs.spark_types import TARGET, ZONED, ZONELESS, in_spark_type

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection
    from duckdb.sqltypes import DuckDBPyType

#: How DuckDB reads files by the end of their names.
_READERS = {
    ".parquet": "read_parquet",
    ".json": "read_json",
    ".jsonl": "read_json",
    ".ndjson": "read_json",
    ".csv": "read_csv",
}
_KNOWN = "*.parquet, *.json, *.jsonl, *.ndjson or *.csv, the latter four also with .gz"
_TIMES = (*ZONELESS, *ZONED, "DATE", "VARCHAR")
_INTEGERS = re.compile(r"U?(TINY|SMALL|BIG|HUGE)?INT(EGER)?")
_FRACTIONS = re.compile(r"FLOAT|DOUBLE|DECIMAL\(.*\)")
#: By the unit of a number, how it becomes a number of microseconds.
_MICROSECONDS = {"s": "* 1000000", "ms": "* 1000", "us": "* 1", "ns": "// 1000"}
_NAME = "name a column of timestamps, or of texts such as 2026-01-31 10:00:00"
_BLOCK = 1 << 20


@dataclass(frozen=True)
class InputTable:
    """A table of a job with its files, in the order in which they are read.

    Attributes:
        job: the name of the job.
        name: the name of the table.
        table: what the job says of it.
        files: the files.
    """

    job: str
    name: str
    table: JobTable
    files: tuple[Path, ...]

    def error(self, key: str, problem: str) -> NexmarkError:
        """Return the error to raise for a key of the table."""
        return _error(self.job, self.name, key, problem)

    def unread(self, error: Exception) -> NexmarkError:
        """Return the error to raise where DuckDB cannot read the files.

        Args:
            error: The error of DuckDB. Of a mistake in CSV, it names line and file apart.
        """
        reason, *more = str(error).strip().splitlines()
        if "CSV Error" in reason:
            reasons = ("Error when ", "Invalid unicode", "Expected Number of Columns")
            reason += "".join(f": {line}" for line in more if line.startswith(reasons))
            reason += "".join(f" ({line.strip()})" for line in more if line.startswith("  file = "))
        is_typed = "Conversion Error" in reason or "JSON transform error" in reason
        remedy = ", or give the column its type in types" if is_typed else ""
        return self.error("files", f"{reason}; correct the files{remedy}")

    def scan(self, connection: DuckDBPyConnection, *, whole: bool) -> str:
        """Return the table function of DuckDB that reads the files in their order.

        Args:
            connection: A connection to DuckDB.
            whole: Whether types of texts are found by all rows, or by the first ones only.

        Raises:
            NexmarkError: The files cannot be read, or a type is given for a column of theirs that
                does not exist or has a type already.
        """
        ending = _ending(self.files[0])
        options = ["union_by_name = true"]
        options += ["header = true"] if ending == ".csv" else []
        options += ["sample_size = -1"] if whole and ending != ".parquet" else []
        if self.table.types:
            kinds = self._kinds(connection, self._function(options))
            options += self._typed(ending, kinds)
        return self._function(options)

    def columns(self, connection: DuckDBPyConnection, scan: str) -> dict[str, str]:
        """Return the expression of each column, in a type that every Spark reads from Parquet.

        Args:
            connection: A connection to DuckDB.
            scan: What `scan` has returned.

        Raises:
            NexmarkError: The files cannot be read, or the event time is no column of times.
        """
        kinds = self._kinds(connection, scan)
        made = {name: in_spark_type(name, kind) for name, kind in kinds.items()}
        if (time := self.table.event_time) is not None:
            if time not in kinds:
                problem = f"the files have no column {time!r}; {suggest(time, kinds)}"
                raise self.error("event_time", problem)
            made[time] = self._time(time, str(kinds[time]))
        return made

    def _function(self, options: Sequence[str]) -> str:
        reader = _READERS[_ending(self.files[0])]
        # An empty file of CSV would give a column without a name.
        files = [file for file in self.files if file.stat().st_size] or self.files[:1]
        return f"{reader}({', '.join([listed_files(files), *options])})"

    def _kinds(self, connection: DuckDBPyConnection, scan: str) -> dict[str, DuckDBPyType]:
        """Return the type of each column; NexmarkError for files that cannot be read."""
        import duckdb

        try:
            rows = connection.sql(f"FROM {scan}")
        except duckdb.Error as error:
            raise self.unread(error) from None
        return dict(zip(rows.columns, rows.types, strict=True))

    def _typed(self, ending: str, kinds: Mapping[str, DuckDBPyType]) -> list[str]:
        """Return the options by which columns have the types that the job gives them.

        Args:
            ending: The end of the names of the files.
            kinds: The type of each column as DuckDB finds it.
        """
        given = {name: duckdb_type(kind) for name, kind in self.table.types.items()}
        in_path = [part.partition("=")[0] for part in _partitions(self.files[0])]
        for name in given:
            if name not in kinds:
                problem = f"the files have no column {name!r}; {suggest(name, kinds)}"
                raise self.error(f"types.{name}", problem)
            if ending == ".parquet" and name not in in_path:
                problem = f"Parquet says itself that {name} is of type {kinds[name]}"
                raise self.error(
                    f"types.{name}", f"{problem}; remove it here, cast it in the query"
                )
        of_path = {name: kind for name, kind in given.items() if name in in_path}
        of_rows = {name: kind for name, kind in given.items() if name not in in_path}
        option = "types"
        if _READERS[ending] == "read_json" and of_rows:
            # It has no types for some columns only.
            option = "columns"
            rest = {name: str(kind) for name, kind in kinds.items() if name not in in_path}
            of_rows = rest | of_rows
        options = [f"{option} = {_mapping(of_rows)}"] if of_rows else []
        if of_path:
            options += ["hive_partitioning = true", f"hive_types = {_mapping(of_path)}"]
        return options

    def _time(self, name: str, kind: str) -> str:
        """Return the expression of the event time; NexmarkError for a column of another type.

        Args:
            name: The name of the column.
            kind: Its type.
        """
        column, unit = identifier(name), self.table.event_time_unit
        is_integer = bool(_INTEGERS.fullmatch(kind))
        if is_integer or _FRACTIONS.fullmatch(kind):
            if unit is None:
                problem = f"{name} is of type {kind}"
                remedy = "add event_time_unit: ms, if it counts milliseconds from 1970 on"
                raise self.error("event_time", f"{problem}; {remedy} (or s, us, ns), else {_NAME}")
            counted, scaled = "BIGINT", _MICROSECONDS[unit]
            if not is_integer:
                counted, scaled = "DOUBLE", scaled.replace("//", "/")
            return f"make_timestamp(({column}::{counted} {scaled})::BIGINT)::{TARGET}"
        if kind not in _TIMES:
            raise self.error("event_time", f"{name} is of type {kind}; {_NAME}")
        if unit is not None:
            problem = f"{name} is of type {kind}, no number; remove event_time_unit"
            raise self.error("event_time_unit", problem)
        if kind in ("VARCHAR", *ZONED):
            return f"{column}::{TARGET}"  # a text may have an offset, which a TIMESTAMP would lose
        return f"{column}::TIMESTAMP::{TARGET}"


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
                table.columns(connection, table.scan(connection, whole=False))
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
            place = "/".join([*_partitions(file), file.name])
            digest.update(f"{table.name}\0{place}\0{file.stat().st_size}\0".encode())
            for block in _blocks(file):
                digest.update(block)
    return job.model_copy(update={"input_sha256": digest.hexdigest()})


def _with_files(job: str, name: str, table: JobTable) -> InputTable:
    files: dict[Path, None] = {}  # a file that two paths name is read once
    for path in table.files:
        pattern = paths.conf_dir() / FOLDER / Path(path).expanduser()
        matching = _files(pattern)
        if not matching:
            problem = f"there is no file {display(pattern)}; correct the path"
            raise _error(job, name, "files", problem)
        files |= dict.fromkeys(matching)
    if strange := [file for file in files if _ending(file) not in _READERS]:
        problem = f"{display(strange[0])} is not read; name {_KNOWN}"
        raise _error(job, name, "files", problem)
    if len(endings := sorted({_ending(file) for file in files})) > 1:
        problem = f"there are files of {' and of '.join(endings)}; name one kind"
        raise _error(job, name, "files", problem)
    return InputTable(job, name, table, tuple(files))


def _files(pattern: Path) -> Sequence[Path]:
    """Return the files of a path, a directory or a pattern, in the natural order of their names.

    Hidden ones and Spark's are left out. A directory stands for all files below it.
    """
    place = pattern.absolute()
    if place.is_file():
        return [place]
    if place.is_dir():
        return sorted(data_files(place, "**/*"), key=_natural)
    files = set()
    for path in Path(place.anchor).glob(str(place.relative_to(place.anchor))):
        named = [part for part in path.parts if part not in place.parts]
        if not any(part.startswith((".", "_")) for part in named):
            files.update(data_files(path, "**/*") if path.is_dir() else [path])
    return sorted(files, key=_natural)


def _natural(path: Path) -> tuple[Sequence[Sequence[str | int]], Path]:
    """Return by what a path is sorted: the numbers in its names count as numbers.

    part-2 comes before part-10.
    """
    parts = [re.split(r"([0-9]+)", part) for part in path.parts]
    return [[int(text) if text.isdigit() else text for text in part] for part in parts], path


def _partitions(file: Path) -> list[str]:
    """Return the directories of a file that give columns, as day=2026-01-31."""
    return [part for part in file.parent.parts if "=" in part]


def _mapping(types: Mapping[str, str]) -> str:
    """Return types by the names of columns as a struct of DuckDB."""
    listed = (f"{quote(name)}: {quote(kind)}" for name, kind in types.items())
    return f"{{{', '.join(listed)}}}"


def _ending(file: Path) -> str:
    """Return the end of the name of a file that says what is in it."""
    plain = file.with_suffix("") if file.suffix == ".gz" else file
    return plain.suffix.lower()


def _error(job: str, table: str, key: str, problem: str) -> NexmarkError:
    file = display(paths.conf_dir() / FOLDER / f"{job}.yaml")
    return NexmarkError(f"{file}: tables.{table}.{key}: {problem}")


def _blocks(path: Path) -> Iterator[bytes]:
    with path.open("rb") as file:
        while block := file.read(_BLOCK):
            yield block
