"""Events and outputs in files that other programs wrote: other suffixes, Parquet, odd names."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import duckdb
import pytest

from nexmark.expectations.contract import ExpectationsError, contract
from nexmark.expectations.tables import Events, load_output, open_events
from tests.expectations.checked import failed
from tests.expectations.event_builders import Event, auction, bid, person, write_events
from tests.expectations.wrong_engines import right_sql


def parquet(directory: Path, events: list[Event], *, numbered: bool = True) -> Path:
    """The events as one Parquet file in a directory."""
    written = write_events(directory / "json", events, numbered=numbered)
    (directory / "parquet").mkdir()
    duckdb.execute(
        f"COPY (FROM read_json('{written}/events.json')) TO '{directory}/parquet/part-0.parquet'"
    )
    return directory / "parquet"


def refusal(path: Path) -> str:
    with pytest.raises(ExpectationsError) as caught, open_events(path):
        pass
    return str(caught.value)


@pytest.mark.parametrize("suffix", ["json", "jsonl", "ndjson"])
@pytest.mark.parametrize("packed", ["", ".gz"])
def test_events_are_read_by_their_suffix(tmp_path: Path, suffix: str, packed: str) -> None:
    path = tmp_path / f"part-0.{suffix}{packed}"
    text = json.dumps({"n": 7} | bid(price=5)).encode()
    path.write_bytes(gzip.compress(text) if packed else text)
    for given in (path, tmp_path):
        with open_events(given) as events:
            assert events.connection.execute("SELECT n, price FROM bid").fetchall() == [(7, 5)]


@pytest.mark.parametrize("numbered", [True, False])
def test_parquet_may_have_event_numbers_or_none(tmp_path: Path, numbered: bool) -> None:
    directory = parquet(tmp_path, [person(1), auction(1), bid()], numbered=numbered)
    with open_events(directory) as events:
        assert (events.count, events.numbered) == (3, numbered)
        found = events.connection.execute("SELECT n, price FROM bid").fetchall()
    assert found == [(2 if numbered else None, 100)]


@pytest.mark.parametrize(
    ("wrong", "fault"),
    [
        (bid() | {"event_type": 3}, "event_type is not 0, 1 or 2"),
        (person(2, name=None), "person.name is missing or malformed in 1 events"),
        (bid(price="dear"), "bid.price is missing or malformed in 1 events"),
        (auction(2, dateTime="noon"), "auction.dateTime is missing or malformed in 1 events"),
    ],
)
def test_a_wrong_event_in_parquet_is_named_by_its_field(
    tmp_path: Path, wrong: Event, fault: str
) -> None:
    directory = parquet(tmp_path, [person(1), auction(1), bid(), wrong])
    assert refusal(directory) == f"{directory}: {fault}; dump the events again"


def test_a_file_that_is_no_parquet_is_named(tmp_path: Path) -> None:
    (tmp_path / "junk.parquet").write_text("junk")
    assert refusal(tmp_path).startswith(f"{tmp_path}: ")


def test_a_directory_whose_name_has_a_quote_is_read(tmp_path: Path) -> None:
    directory = write_events(tmp_path / "ada's", [bid(price=5)])
    with open_events(directory) as events:
        rows = f"COPY ({right_sql('q0')}) TO '{tmp_path}/part-0.parquet'"
        events.connection.execute(rows)
        output = tmp_path / "bob's"
        output.mkdir()
        (tmp_path / "part-0.parquet").rename(output / "part-0.parquet")
        assert load_output(events.connection, contract("q0"), output, "parquet").rows == 1


def test_what_does_not_fit_into_memory_goes_to_a_directory_of_ours(tmp_path: Path) -> None:
    write_events(tmp_path, [bid()])
    settings = "SELECT current_setting('temp_directory'), current_setting('memory_limit')"
    with open_events(tmp_path) as events:
        ((spill, memory),) = events.connection.execute(settings).fetchall()
        assert Path(spill).name.startswith("nexmark-duckdb-")
        assert Path(spill).is_dir()
    assert memory == "1.8 GiB"
    assert not Path(spill).exists()


def test_csv_files_are_read_without_partitions_too(edge: Events, tmp_path: Path) -> None:
    """A file of CSV has no header; what stands in a directory named by `a=1` is no column."""
    (tmp_path / "batch=1").mkdir()
    edge.connection.execute(
        f"COPY ({right_sql('q0')}) TO '{tmp_path}/batch=1/part-0.csv' "
        "(HEADER false, ESCAPE '\\', FORCE_QUOTE (extra))"
    )
    assert failed(edge, "q0", tmp_path) == set()


@pytest.mark.parametrize("sink", ["parquet", "filesystem"])
def test_partitions_are_listed_only_of_the_sink_that_makes_them(
    edge: Events, tmp_path: Path, sink: str
) -> None:
    rows = f"SELECT * EXCLUDE (dt, hm) FROM ({right_sql('q10')}) LIMIT 1"
    for minute, committed in (("00:00", True), ("00:01", False)):
        folder = tmp_path / "dt=2015-07-15" / f"hm={minute}"
        folder.mkdir(parents=True)
        edge.connection.execute(f"COPY ({rows}) TO '{folder}/part-0.parquet'")
        if committed:
            (folder / "_SUCCESS").touch()
    output = load_output(edge.connection, contract("q10"), tmp_path, sink)
    listed = edge.connection.execute('FROM "partition" ORDER BY ALL').fetchall()
    expected = [("dt=2015-07-15/hm=00:00", True), ("dt=2015-07-15/hm=00:01", False)]
    assert listed == (expected if sink == "filesystem" else [])
    assert (output.rows, output.readable) == (2, True)
