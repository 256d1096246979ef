"""The rows that an application has written to files, and their digest.

The digest does not depend on the order of rows, nor on how they are spread over files. It is the
sum of the first halves of the MD5 of each row, modulo 2^64. A row is the JSON of its columns
(Parquet, Delta), or its line (JSON, CSV), after its path below the output and its partition. The
first line of each file is no row where the format is "csv with header".

The files of a sink of Spark's are those that its log names, and the files of a Delta table those
that its own log has not removed. So what a stopped query has left behind does not count.
"""

import gzip
import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote, urlsplit

from nexmark.errors import NexmarkError
from nexmark.model import grouped

DIGEST_KIND = "sum64(md5(row))"
_SPARK_LOG, _DELTA_LOG = "_spark_metadata", "_delta_log"
_PARQUET = ("parquet", "delta")
_DELTA_DAYS = "delta.logRetentionDuration"


class OutputError(NexmarkError):
    """What an application has written cannot be read; the text says where and what to change."""


@dataclass(frozen=True)
class WrittenRows:
    """The number of rows, and their digest: 16 hexadecimal digits."""

    rows: int
    digest: str


@dataclass(frozen=True)
class _File:
    path: Path
    partition: str


def written_rows(output: Path, formats: Mapping[str, str]) -> WrittenRows:
    """Return the rows below `output`; OutputError for a path that is missing, or without any row.

    Args:
        output: the directory that `{{ output }}` stood for.
        formats: the format of what was written, by its path below the directory.
    """
    rows = total = 0
    for below, kind in formats.items():
        directory = output / below
        files = list(_files(directory, kind))
        count, added = (_of_parquet if kind in _PARQUET else _of_lines)(below, kind, files)
        rows, total = rows + count, total + added
    if rows == 0:
        names = ", ".join(str(output / below) for below in formats)
        raise OutputError(f"{names}: has no rows, so builds cannot be compared; correct output")
    return WrittenRows(rows, format(total % (1 << 64), "016x"))


def _files(directory: Path, kind: str) -> Iterator[_File]:
    if not directory.is_dir():
        names = sorted(path.name for path in directory.parent.glob("[!._]*"))
        there = f"{directory.parent.name} has {', '.join(names) or 'nothing'}"
        raise OutputError(f"{directory}: was not written; {there}")
    if kind == "delta":
        yield from _delta_files(directory)
    elif (log := directory / _SPARK_LOG).is_dir():
        yield from (_file(directory, path) for path in _sink_files(log))
    else:
        for path in sorted(directory.rglob("*")):
            parts = path.relative_to(directory).parts
            if path.is_file() and not any(part.startswith(("_", ".")) for part in parts):
                yield _file(directory, path)


def _file(directory: Path, path: Path) -> _File:
    try:
        partition = path.parent.relative_to(directory)
    except ValueError:
        raise OutputError(f"{directory}: its log names {path}, which is not below it") from None
    return _File(path, "" if partition == Path() else str(partition))


def _sink_files(log: Path) -> list[Path]:
    """Return the files in the log of Spark's file sink: from its newest compact file on."""
    numbered = {
        int(path.name.partition(".")[0]): path
        for path in sorted(log.iterdir())  # N.compact comes behind N
        if path.name.partition(".")[0].isdigit()
    }
    compact = [number for number, path in numbered.items() if path.suffix == ".compact"]
    since = max(compact, default=0)
    lines = (
        line
        for number, path in sorted(numbered.items())
        if number >= since
        for line in path.read_text(encoding="utf-8").splitlines()[1:]
    )
    entries = [json.loads(line) for line in lines]
    removed = {entry["path"] for entry in entries if entry.get("action") == "delete"}
    return [_local(entry["path"]) for entry in entries if entry["path"] not in removed]


def _local(url: str) -> Path:
    return Path(unquote(urlsplit(url).path))


def _delta_files(directory: Path) -> Iterator[_File]:
    """Yield the files of a Delta table, from all commits of its log."""
    log = directory / _DELTA_LOG
    commits = sorted(log.glob("[0-9]*.json"))
    if not commits or int(commits[0].stem) != 0:
        first = commits[0].name if commits else "nothing"
        problem = f"its log begins with {first}, not with commit 0"
        raise OutputError(f"{directory}: {problem}; raise {_DELTA_DAYS}")
    files: dict[str, _File] = {}
    for commit in commits:
        for line in commit.read_text(encoding="utf-8").splitlines():
            action = json.loads(line)
            if add := action.get("add"):
                if add.get("deletionVector"):
                    remedy = "set delta.enableDeletionVectors to false"
                    raise OutputError(f"{directory}: has deletion vectors; {remedy}")
                partition = json.dumps(add.get("partitionValues") or {}, sort_keys=True)
                files[add["path"]] = _File(directory / unquote(add["path"]), partition)
            elif remove := action.get("remove"):
                files.pop(remove["path"], None)
    yield from files.values()


def _of_parquet(below: str, kind: str, files: Iterable[_File]) -> tuple[int, int]:
    """Return the number of rows in Parquet files, and the sum of their hashes."""
    import duckdb

    rows = total = 0
    by_partition = grouped(files, lambda file: file.partition)
    with closing(duckdb.connect()) as connection:
        for partition, same in by_partition.items():
            paths = [str(file.path) for file in same]
            try:
                summed = connection.execute(
                    "SELECT count(*), sum(md5_number_upper($prefix || CAST(to_json(r) AS VARCHAR)))"
                    " FROM (FROM read_parquet($paths, hive_partitioning = false)) AS r",
                    {"prefix": _prefix(below, partition), "paths": paths},
                ).fetchone()
            except duckdb.Error as error:
                why = str(error).splitlines()[0]
                raise OutputError(f"{same[0].path.parent}: is no {kind}: {why}") from None
            assert summed is not None
            rows, total = rows + summed[0], total + int(summed[1] or 0)
    return rows, total


def _of_lines(below: str, kind: str, files: Iterable[_File]) -> tuple[int, int]:
    """Return the number of lines in files, and the sum of their hashes."""
    suffix, _, header = kind.partition(" ")
    rows = total = 0
    for file in files:
        prefix = _prefix(below, file.partition).encode()
        for line in _lines(file.path, suffix)[1 if header else 0 :]:
            rows += 1
            total += int.from_bytes(hashlib.md5(prefix + line, usedforsecurity=False).digest()[:8])
    return rows, total


def _prefix(below: str, partition: str) -> str:
    return f"{below}\n{partition}\n"


def _lines(path: Path, kind: str) -> list[bytes]:
    if path.suffix not in (f".{kind}", ".txt", ".gz", ""):
        raise OutputError(f"{path}: cannot be read; write {kind} without compression, or with gzip")
    try:
        data = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    except OSError as error:
        raise OutputError(f"{path}: cannot be read: {error.strerror or error}") from None
    return data.splitlines()
