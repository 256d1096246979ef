"""The digest of what an application wrote: of its rows, not of how they lie in files."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from pathlib import Path

import duckdb
import pytest

from nexmark.expectations.written_rows import OutputError, WrittenRows, written_rows


def lines(path: Path, *rows: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    text = "".join(f"{row}\n" for row in rows).encode()
    path.write_bytes(gzip.compress(text) if path.suffix == ".gz" else text)
    return path


def parquet(path: Path, first: int, last: int) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    rows = (
        f"SELECT i AS id, 'x' || i AS name, [i, NULL] AS list FROM range({first}, {last}) AS t(i)"
    )
    duckdb.sql(f"COPY ({rows}) TO '{path}' (FORMAT parquet)")
    return path


def sink_log(directory: Path, number: str, *paths: Path) -> None:
    """A batch in the log of Spark's file sink."""
    entries = [json.dumps({"path": path.as_uri(), "action": "add"}) for path in paths]
    lines(directory / "_spark_metadata" / number, "v1", *entries)


def delta_commit(directory: Path, number: int, *actions: dict[str, object]) -> None:
    lines(directory / "_delta_log" / f"{number:020}.json", *map(json.dumps, actions))


def added(name: str, **more: object) -> dict[str, object]:
    return {"add": {"path": name, "partitionValues": {}, **more}}


def json_rows(directory: Path) -> WrittenRows:
    return written_rows(directory, {".": "json"})


def test_neither_the_order_of_rows_nor_the_number_of_files_matters(tmp_path: Path) -> None:
    lines(tmp_path / "one" / "a.json", '{"i":1}', '{"i":2}', '{"i":2}')
    lines(tmp_path / "two" / "b.json.gz", '{"i":2}')
    lines(tmp_path / "two" / "c.json", '{"i":2}', '{"i":1}')
    lines(tmp_path / "two" / "_SUCCESS")
    lines(tmp_path / "two" / ".c.json.crc", "x")
    one, two = (json_rows(tmp_path / name) for name in ("one", "two"))
    assert one == two
    assert one.rows == 3


@pytest.mark.parametrize("rows", [('{"i":1}',), ('{"i":1}', '{"i":1}'), ('{"i":2}', '{"i":1}')])
def test_every_row_counts(rows: tuple[str, ...], tmp_path: Path) -> None:
    lines(tmp_path / "right" / "a.json", '{"i":1}', '{"i":3}')
    lines(tmp_path / "wrong" / "a.json", *rows)
    assert json_rows(tmp_path / "right").digest != json_rows(tmp_path / "wrong").digest


def test_a_row_in_another_partition_or_output_is_another_row(tmp_path: Path) -> None:
    for place in ("a/day=1", "b/day=2"):
        lines(tmp_path / place / "x.json", '{"i":1}')
    digests = {json_rows(tmp_path / name).digest for name in ("a", "b")}
    digests |= {written_rows(tmp_path, {"a": "json"}).digest}
    assert len(digests) == 3


def test_rows_of_parquet_are_their_columns(tmp_path: Path) -> None:
    parquet(tmp_path / "one" / "a.parquet", 0, 10)
    for name, bounds in {"b": (5, 10), "c": (0, 5)}.items():
        parquet(tmp_path / "two" / f"{name}.parquet", *bounds)
    parquet(tmp_path / "less" / "a.parquet", 0, 9)
    one, two, less = (
        written_rows(tmp_path / name, {".": "parquet"}) for name in ("one", "two", "less")
    )
    assert one == two
    assert one.rows == 10
    assert less.digest != one.digest


def test_of_a_sink_of_spark_only_the_files_count_that_its_log_has(tmp_path: Path) -> None:
    """A stopped query leaves files of a batch that it did not commit; a compact file has all."""
    files = [lines(tmp_path / f"{n}.json", f'{{"i":{n}}}') for n in range(4)]
    sink_log(tmp_path, "0", files[3])
    sink_log(tmp_path, "1.compact", *files[:2])
    sink_log(tmp_path, "2", files[2])
    found = json_rows(tmp_path)
    lines(tmp_path / "same" / "a.json", '{"i":0}', '{"i":1}', '{"i":2}')
    assert found == json_rows(tmp_path / "same")


def test_of_a_delta_table_only_the_files_count_that_were_not_removed(tmp_path: Path) -> None:
    table = tmp_path / "table"
    for number in range(3):
        parquet(table / f"part {number}.parquet", number, number + 1)
    delta_commit(table, 0, {"metaData": {}}, added("part%200.parquet"), added("part%201.parquet"))
    delta_commit(table, 1, {"remove": {"path": "part%200.parquet"}}, added("part%202.parquet"))
    parquet(tmp_path / "same" / "a.parquet", 1, 3)
    delta_commit(tmp_path / "same", 0, added("a.parquet"))
    assert written_rows(table, {".": "delta"}) == written_rows(tmp_path / "same", {".": "delta"})


def test_the_header_of_csv_files_is_no_row(tmp_path: Path) -> None:
    lines(tmp_path / "one" / "a.csv", "id", "1")
    lines(tmp_path / "one" / "b.csv", "id", "2")
    lines(tmp_path / "two" / "a.csv", "2")
    lines(tmp_path / "two" / "b.csv", "1")
    one = written_rows(tmp_path / "one", {".": "csv with header"})
    two = written_rows(tmp_path / "two", {".": "csv"})
    assert one == two
    assert one.rows == 2


def test_every_line_of_csv_files_without_a_header_is_a_row(tmp_path: Path) -> None:
    """Files that begin with the same row: this row counts."""
    lines(tmp_path / "one" / "a.csv", "1", "2")
    lines(tmp_path / "one" / "b.csv", "1", "3")
    lines(tmp_path / "two" / "a.csv", "1", "1", "2", "3")
    one, two = (written_rows(tmp_path / name, {".": "csv"}) for name in ("one", "two"))
    assert one == two
    assert one.rows == 4


def _empty(directory: Path) -> None:
    lines(directory / "a.json")


def _missing(directory: Path) -> None:
    lines(directory / "counts" / "a.json", "x")


def _compressed(directory: Path) -> None:
    lines(directory / "a.json.zstd", "x")


def _vectors(directory: Path) -> None:
    delta_commit(directory, 0, added("a.parquet", deletionVector={"storageType": "u"}))


def _later(directory: Path) -> None:
    delta_commit(directory, 7, added("a.parquet"))


def _no_parquet(directory: Path) -> None:
    lines(directory / "a.parquet", "x")


@pytest.mark.parametrize(
    ("write", "below", "kind", "said"),
    [
        (_empty, ".", "json", r"out: has no rows, so builds cannot be compared; correct output"),
        (_missing, "count", "json", r"count: was not written; out has counts"),
        (_compressed, ".", "json", r"a.json.zstd: cannot be read; write json without compression"),
        (_vectors, ".", "delta", r"has deletion vectors; set delta.enableDeletionVectors to false"),
        (_later, ".", "delta", r"its log begins with 0*7.json, not with commit 0; raise delta.log"),
        (_no_parquet, ".", "parquet", r"out: is no parquet: "),
    ],
)
def test_what_cannot_be_read_is_said_in_one_line(
    write: Callable[[Path], None], below: str, kind: str, said: str, tmp_path: Path
) -> None:
    write(tmp_path / "out")
    with pytest.raises(OutputError, match=said) as error:
        written_rows(tmp_path / "out", {below: kind})
    assert "\n" not in str(error.value)
