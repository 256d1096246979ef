"""Outputs are read as Spark leaves them, and what is wrong with the files is said."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import quote

import pytest

from nexmark.expectations.contract import ExpectationsError, contract
from nexmark.expectations.suites import judge
from nexmark.expectations.tables import Events, load_output
from tests.expectations.checked import failed
from tests.expectations.wrong_engines import right_sql


def write(events: Events, directory: Path, sql: str, file: str = "part-0.parquet") -> Path:
    """Write the rows of `sql` as one file of an output directory."""
    path = directory / file
    path.parent.mkdir(parents=True, exist_ok=True)
    options = "(HEADER false, ESCAPE '\\', FORCE_QUOTE (extra))" if path.suffix == ".csv" else ""
    events.connection.execute(f"COPY ({sql}) TO '{path}' {options}")
    return directory


def write_partitions(events: Events, directory: Path, suffix: str = "parquet") -> Path:
    """Write q10 as a filesystem sink does: a directory per day and minute, each committed."""
    days = events.connection.sql(right_sql("q10")).project("dt, hm").distinct().fetchall()
    for day, minute in days:
        folder = f"dt={day}/hm={quote(minute, safe='')}"
        rows = (
            f"SELECT * EXCLUDE (dt, hm) FROM ({right_sql('q10')}) "
            f"WHERE dt = '{day}' AND hm = '{minute}'"
        )
        write(events, directory, rows, f"{folder}/part-0.{suffix}")
        (directory / folder / "_SUCCESS").touch()
    return directory


def test_rows_may_be_in_many_files_and_directories(edge: Events, tmp_path: Path) -> None:
    for half in (0, 1):
        rows = f"SELECT * FROM ({right_sql('q0')}) WHERE price % 2 = {half}"
        write(edge, tmp_path, rows, f"batch={half}/part-0.parquet")
    assert failed(edge, "q0", tmp_path) == set()


def test_markers_metadata_and_hidden_files_are_not_read(edge: Events, tmp_path: Path) -> None:
    write(edge, tmp_path, right_sql("q0"))
    (tmp_path / "_SUCCESS").touch()
    write(edge, tmp_path, right_sql("q0"), "_temporary/part-0.parquet")
    write(edge, tmp_path, right_sql("q0"), ".staging/part-0.parquet")
    assert failed(edge, "q0", tmp_path) == set()


def test_timestamps_with_and_without_a_zone_are_the_same(edge: Events, tmp_path: Path) -> None:
    rows = f"SELECT * REPLACE (dateTime::TIMESTAMPTZ AS dateTime) FROM ({right_sql('q0')})"
    write(edge, tmp_path, rows)
    assert failed(edge, "q0", tmp_path) == set()


def test_microseconds_of_a_timestamp_count(edge: Events, tmp_path: Path) -> None:
    rows = (
        f"SELECT * REPLACE (dateTime + INTERVAL 1 MICROSECOND AS dateTime) FROM ({right_sql('q0')})"
    )
    write(edge, tmp_path, rows)
    assert "unexpected" in failed(edge, "q0", tmp_path)


@pytest.mark.parametrize("suffix", ["parquet", "csv"])
def test_partitions_of_the_filesystem_sink_are_read(
    recorded: Events, tmp_path: Path, suffix: str
) -> None:
    directory = write_partitions(recorded, tmp_path, suffix)
    assert failed(recorded, "q10", directory, "filesystem") == set()


def test_uncommitted_partition_is_found(recorded: Events, tmp_path: Path) -> None:
    directory = write_partitions(recorded, tmp_path)
    next(directory.rglob("_SUCCESS")).unlink()
    entry = contract("q10")
    output = load_output(recorded.connection, entry, directory, "filesystem")
    (failure,) = judge(recorded, entry, output).failures
    assert failure.startswith("partition_is_committed: 1 case, e.g. {")
    assert "dt=2015-07-15/hm=00%3A0" in failure
    assert failed(recorded, "q10", directory) == set()


def test_row_in_the_wrong_partition_is_found(recorded: Events, tmp_path: Path) -> None:
    directory = write_partitions(recorded, tmp_path)
    old, new = (directory / f"dt=2015-07-15/hm=00%3A0{minute}" for minute in (1, 7))
    old.rename(new)
    broken = {"row_is_in_its_partition", "missing", "unexpected"}
    assert broken <= failed(recorded, "q10", directory, "filesystem")


def test_lost_partition_is_found(recorded: Events, tmp_path: Path) -> None:
    directory = write_partitions(recorded, tmp_path)
    next(directory.rglob("*.parquet")).unlink()
    broken = {"missing", "conserves_bids"}
    assert broken <= failed(recorded, "q10", directory, "filesystem")


@pytest.mark.parametrize(
    ("query", "sink", "files", "fault"),
    [
        ("q0", "parquet", None, "no output directory"),
        ("q0", "parquet", [], "holds no *.parquet"),
        ("q0", "parquet", ["_SUCCESS"], "holds no *.parquet"),
        ("q0", "parquet", ["part-0.parquet"], "cannot be read as output of q0"),
        ("q0", "kafka", [], "unknown sink 'kafka': use one of parquet, filesystem"),
        ("q0", "filesystem", [], "q0 has no filesystem sink: only q10 has"),
    ],
)
def test_unreadable_output_says_what_to_do(
    edge: Events, tmp_path: Path, query: str, sink: str, files: list[str] | None, fault: str
) -> None:
    directory = tmp_path / "output"
    if files is not None:
        directory.mkdir()
        for name in files:
            (directory / name).write_text("junk")
    with pytest.raises(ExpectationsError) as caught:
        load_output(edge.connection, contract(query), directory, sink)
    assert fault in str(caught.value)
    assert "\n" not in str(caught.value)


def test_files_of_different_columns_are_an_error(edge: Events, tmp_path: Path) -> None:
    write(edge, tmp_path, right_sql("q0"), "part-0.parquet")
    write(edge, tmp_path, right_sql("q2"), "part-1.parquet")
    with pytest.raises(ExpectationsError, match="cannot be read as output of q0"):
        load_output(edge.connection, contract("q0"), tmp_path, "parquet")
