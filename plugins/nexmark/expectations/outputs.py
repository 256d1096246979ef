"""A query's output directory as a DuckDB table in the contract's columns and types."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from nexmark.expectations.contract import Column, Contract, OutputError
from nexmark.expectations.events import data_files, first_line, listed, quote

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection


SINKS = ("parquet", "filesystem")

_COMMITTED = "_SUCCESS"
_PARTITION_COLUMNS = ("dt", "hm")


@dataclass(frozen=True)
class Output:
    """The content of an output directory.

    ``columns`` are the columns found. If they have the contract's names, the output is
    ``readable``: the table ``output`` has its rows in the contract's order and types (a value of
    another type is NULL). The table ``partition`` says for each directory of a filesystem sink
    whether it is committed.
    """

    columns: tuple[Column, ...]
    rows: int
    readable: bool


def load_output(
    connection: DuckDBPyConnection, entry: Contract, directory: Path, sink: str
) -> Output:
    """Load the output of a query, written by `sink`, from `directory`.

    OutputError: it is missing or empty, files differ in their columns, or the query has no such
    sink.
    """
    import duckdb

    if sink not in SINKS:
        raise OutputError(f"unknown sink '{sink}': use one of {', '.join(SINKS)}")
    if sink == "filesystem" and entry.names[-2:] != _PARTITION_COLUMNS:
        raise OutputError(f"{entry.query} has no filesystem sink: only q10 has; use parquet")
    scan = _scan(entry, directory, partitioned=entry.names[-2:] == _PARTITION_COLUMNS)
    try:
        found = connection.execute(f"DESCRIBE FROM {scan}").fetchall()
        columns = tuple(
            Column(name, "TIMESTAMP" if kind.startswith("TIMESTAMP") else kind)
            for name, kind, *_ in found
        )
        rows = connection.execute(f"SELECT count(*) FROM {scan}").fetchall()[0][0]
        readable = {column.name for column in columns} == set(entry.names)
        if readable:
            casts = ", ".join(f"TRY_CAST({c.name} AS {c.type}) AS {c.name}" for c in entry.columns)
            connection.execute(f"CREATE OR REPLACE TEMP TABLE output AS SELECT {casts} FROM {scan}")
    except duckdb.Error as error:
        raise OutputError(
            f"{directory} cannot be read as output of {entry.query}: {first_line(error)}"
        ) from None
    _load_partitions(connection, directory if sink == "filesystem" else None)
    return Output(columns, rows, readable)


def _scan(entry: Contract, directory: Path, *, partitioned: bool) -> str:
    """Return a table function over the data files below `directory`."""
    if not directory.is_dir():
        raise OutputError(
            f"no output directory {directory}: run the query with --sink parquet:{directory}"
        )
    files = data_files(directory, "**/*.parquet")
    function, options = "read_parquet", []
    if not files:
        files, function = data_files(directory, "**/*.csv"), "read_csv"
        kept = (c for c in entry.columns if c.name not in _PARTITION_COLUMNS)
        columns = ", ".join(f"{c.name}: {quote(c.type)}" for c in kept)
        options = [
            "auto_detect = false, header = false, allow_quoted_nulls = false",
            "delim = ',', quote = '\"', escape = '\\'",
            f"columns = {{{columns}}}",
        ]
    if not files:
        raise OutputError(f"{directory} holds no *.parquet: the query job wrote nothing there")
    if partitioned and all(file.parent != directory for file in files):
        options += ["hive_partitioning = true", "hive_types_autocast = false"]
    else:
        options += ["hive_partitioning = false"]
    return f"{function}({', '.join([listed(files), *options])})"


def _load_partitions(connection: DuckDBPyConnection, directory: Path | None) -> None:
    connection.execute(
        'CREATE OR REPLACE TEMP TABLE "partition" (directory VARCHAR, committed BOOLEAN)'
    )
    if directory is None:
        return
    for parent in sorted({file.parent for file in data_files(directory, "**/*.*")}):
        connection.execute(
            'INSERT INTO "partition" VALUES (?, ?)',
            [os.fspath(parent.relative_to(directory)), (parent / _COMMITTED).is_file()],
        )
