"""Events of any Nexmark generator can be read; what cannot be is named by file, line and field."""

from __future__ import annotations

import gzip
import json
from datetime import datetime
from pathlib import Path
from typing import Any

import duckdb
import pytest

from nexmark.expectations.contract import ExpectationsError
from nexmark.expectations.tables import open_events
from tests.expectations.event_builders import Event, auction, bid, edge_events, person, write_events


def rows(path: Path, sql: str) -> list[tuple[Any, ...]]:
    with open_events(path) as events:
        return events.connection.execute(sql).fetchall()


def one_event(directory: Path, event: Event) -> Path:
    """Write two good events with `event` between them."""
    return write_events(directory, [person(1), event, auction(1)])


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2015-07-15 00:00:01", datetime(2015, 7, 15, 0, 0, 1)),
        ("2015-07-15T00:00:01", datetime(2015, 7, 15, 0, 0, 1)),
        ("2015-07-15 00:00:01.5", datetime(2015, 7, 15, 0, 0, 1, 500_000)),
        ("2015-07-15T00:00:01.010", datetime(2015, 7, 15, 0, 0, 1, 10_000)),
        ("2015-07-15 00:00:01.123999", datetime(2015, 7, 15, 0, 0, 1, 123_000)),
        ("2015-07-15T00:00:01.123456789", datetime(2015, 7, 15, 0, 0, 1, 123_000)),
    ],
)
def test_timestamps_of_all_generators_are_read_to_the_millisecond(
    tmp_path: Path, text: str, expected: datetime
) -> None:
    directory = one_event(tmp_path, bid(dateTime=text))
    assert rows(directory, "SELECT dateTime FROM bid") == [(expected,)]


def test_other_entities_may_be_null_or_absent(tmp_path: Path) -> None:
    nulls = bid(price=1) | {"person": None, "auction": None}
    directory = write_events(tmp_path, [nulls, bid(price=2)])
    assert rows(directory, "SELECT price FROM bid ORDER BY n") == [(1,), (2,)]


def test_unknown_keys_are_ignored(tmp_path: Path) -> None:
    directory = write_events(tmp_path, [bid(color="red") | {"source": "x"}])
    assert rows(directory, "SELECT count(*) FROM bid") == [(1,)]


@pytest.mark.parametrize("suffix", ["json", "jsonl", "json.gz", "jsonl.gz"])
def test_json_may_be_gzip(tmp_path: Path, suffix: str) -> None:
    text = (write_events(tmp_path / "plain", edge_events()) / "events.json").read_bytes()
    path = tmp_path / f"part-0.{suffix}"
    path.write_bytes(gzip.compress(text) if suffix.endswith("gz") else text)
    assert rows(path, "FROM bid ORDER BY n") == rows(tmp_path / "plain", "FROM bid ORDER BY n")


@pytest.mark.parametrize("kind", ["TIMESTAMP", "TIMESTAMP WITH TIME ZONE"])
def test_parquet_gives_the_same_events_as_json(tmp_path: Path, kind: str) -> None:
    json_directory = write_events(tmp_path / "json", edge_events())
    (tmp_path / "parquet").mkdir()
    with duckdb.connect() as connection:
        connection.execute("SET TimeZone = 'UTC'")
        for half in (0, 1):
            connection.execute(
                f"COPY (SELECT n, event_type, "
                f"struct_update(person, dateTime := CAST(person.dateTime AS {kind})) AS person, "
                f"struct_update(auction, dateTime := CAST(auction.dateTime AS {kind}), "
                f"  expires := CAST(auction.expires AS {kind})) AS auction, "
                f"struct_update(bid, dateTime := CAST(bid.dateTime AS {kind})) AS bid "
                f"FROM '{json_directory}/*.json' WHERE n % 2 = {half}) "
                f"TO '{tmp_path}/parquet/part-{half}.parquet'"
            )
    for entity in ("person", "auction", "bid"):
        sql = f"FROM {entity} ORDER BY n"
        assert rows(tmp_path / "parquet", sql) == rows(json_directory, sql)


def test_hidden_files_and_markers_are_no_events(tmp_path: Path) -> None:
    directory = write_events(tmp_path, [bid()])
    (directory / "_SUCCESS").touch()
    (directory / ".events.json.crc").write_bytes(b"crc")
    assert rows(directory, "SELECT count(*) FROM bid") == [(1,)]


@pytest.mark.parametrize(
    ("numbers", "numbered"),
    [([0, 1, 2], True), ([5, 9, 7], True), ([0, 0, 1], False), ([0, None, 2], False)],
)
def test_events_are_numbered_only_if_each_has_a_number_of_its_own(
    tmp_path: Path, numbers: list[int | None], numbered: bool
) -> None:
    events = [{"n": n} | bid() for n in numbers]
    text = "".join(json.dumps(event) + "\n" for event in events)
    (tmp_path / "events.json").write_text(text)
    with open_events(tmp_path) as opened:
        assert opened.numbered is numbered
        found = opened.connection.execute("SELECT n FROM bid").fetchall()
    assert {row[0] for row in found} == (set(numbers) if numbered else {None})


@pytest.mark.parametrize(
    ("line", "fault"),
    [
        ("{", "not JSON ("),
        ("[1]", "not a JSON object"),
        ('{"event_type": 3}', "event_type is 3, not 0, 1 or 2"),
        ("{}", "event_type is None, not 0, 1 or 2"),
        ('{"event_type": 2}', "the event lacks 'bid'"),
        (json.dumps({"n": "x"} | bid()), "n is 'x', not an integer"),
        (json.dumps(bid(price=None)), "the bid lacks 'price'"),
        (json.dumps(bid(price="dear")), "price of the bid is 'dear', not a bigint"),
        (json.dumps(bid(dateTime="noon")), "dateTime of the bid is 'noon', not a timestamp"),
        (json.dumps(auction(1) | {"auction": {"id": 1}}), "the auction lacks 'itemName'"),
        (json.dumps(person(1, dateTime="2015-07-32 00:00:00")), "dateTime of the person is"),
        ("[" * 100_000, "brackets nested too deep for an event"),
        ('{"n":' + "[" * 100_000, "brackets nested too deep for an event"),
        ('{"n":' + "9" * 5000 + "}", "Exceeds the limit"),
        ('{"event_type": "' + "x" * 1000 + '"}', f"event_type is '{'x' * 79}..., not 0, 1"),
    ],
)
def test_malformed_event_is_named_by_file_and_line(tmp_path: Path, line: str, fault: str) -> None:
    path = tmp_path / "topic.json"
    good = json.dumps(bid())
    path.write_text(f"{good}\n{line}\n{good}\n")
    with pytest.raises(ExpectationsError) as caught, open_events(tmp_path):
        pass
    message = str(caught.value)
    assert message.startswith(f"{path}, line 2: ")
    assert fault in message
    assert "\n" not in message


def test_truncated_gzip_says_so(tmp_path: Path) -> None:
    path = tmp_path / "topic.json.gz"
    lines = (json.dumps(bid(price=price)) + "\n" for price in range(5000))
    path.write_bytes(gzip.compress("".join(lines).encode())[:-200])
    with pytest.raises(ExpectationsError, match=r"topic.json.gz, line \d+: not readable as gzip"):
        open_events(tmp_path).__enter__()


@pytest.mark.parametrize(
    ("files", "fault"),
    [
        (None, "no events at "),
        ([], "holds no event file: write it with nexmark_jobs/dump_events.py"),
        (["_SUCCESS"], "holds no event file"),
        (["events.csv"], "events.csv is not an event file: events are *.json"),
        (["a.json", "b.parquet"], "mixes Parquet and JSON events"),
        (["empty.json"], "holds no event"),
        (["junk.parquet"], "junk.parquet"),
    ],
)
def test_directory_without_events_says_what_to_do(
    tmp_path: Path, files: list[str] | None, fault: str
) -> None:
    directory = tmp_path / "events"
    if files is not None:
        directory.mkdir()
        for name in files:
            (directory / name).write_text("" if name == "empty.json" else "junk")
    with pytest.raises(ExpectationsError) as caught, open_events(directory):
        pass
    assert fault in str(caught.value)
    assert "\n" not in str(caught.value)


def test_parquet_that_lacks_a_field_is_an_error(tmp_path: Path) -> None:
    duckdb.execute(
        f"COPY (SELECT 2 AS event_type, {{'auction': 1}} AS bid, NULL AS person, NULL AS auction) "
        f"TO '{tmp_path}/part.parquet'"
    )
    with pytest.raises(ExpectationsError) as caught, open_events(tmp_path):
        pass
    assert "\n" not in str(caught.value)
    assert str(tmp_path) in str(caught.value)
