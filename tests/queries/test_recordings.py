"""Which recorded topics are accepted, and that a line which is no event is named."""

from __future__ import annotations

import gzip
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from nexmark_jobs.errors import UsageError
from nexmark_jobs.sources.recorded_events import KINDS, open_recording
from tests.queries.conftest import write_topic
from tests.queries.event_builders import auction, bid, person

BID = {
    "auction": 1,
    "bidder": 2,
    "price": 3,
    "channel": "Google",
    "url": "u",
    "dateTime": "2015-07-15 00:00:00.123",
    "extra": "",
}


def line(**changes: Any) -> str:
    """A bid as a JSON line, with changed fields; a field that is changed to None is left out."""
    fields = {name: value for name, value in (BID | changes).items() if value is not None}
    return json.dumps({"event_type": 2, "bid": fields})


@pytest.mark.parametrize(
    "time",
    [
        "2015-07-15 00:00:00",
        "2015-07-15T00:00:00",
        "2015-07-15 00:00:00.1",
        "2015-07-15T00:00:00.123456789",
    ],
)
def test_timestamps_that_are_accepted(tmp_path: Path, time: str) -> None:
    (tmp_path / "a.json").write_text(line(dateTime=time))
    assert open_recording(tmp_path).events == (1,)


def test_forms_that_are_accepted(tmp_path: Path) -> None:
    """Absent and null keys, other keys, blank lines, gzip; hidden files are passed over."""
    (tmp_path / "b.jsonl").write_text(f"{line()}\n\n{line()}")
    nulls = {"event_type": 2, "person": None, "auction": None, "bid": BID, "n": None, "key": []}
    with gzip.open(tmp_path / "a.ndjson.gz", "wt") as file:
        file.write(json.dumps(nulls) + "\r\n")
    (tmp_path / "_SUCCESS").touch()
    (tmp_path / ".b.jsonl.crc").touch()
    recording = open_recording(tmp_path)
    assert [file.name for file in recording.files] == ["a.ndjson.gz", "b.jsonl"]
    assert recording.events == (1, 2)
    assert not recording.numbered


def test_numbers_count_only_if_every_event_has_one(tmp_path: Path) -> None:
    numbered = json.dumps({"n": 4, "event_type": 2, "bid": BID}) + "\n"
    (tmp_path / "a.json").write_text(numbered)
    assert open_recording(tmp_path).numbered
    (tmp_path / "b.json").write_text(numbered + line())
    assert not open_recording(tmp_path).numbered


def test_files_are_read_one_by_one_only_if_their_age_is_in_the_order_of_their_names(
    tmp_path: Path,
) -> None:
    for name, age in (("a.json", 300), ("b.json", 200)):
        (tmp_path / name).write_text(line())
        os.utime(tmp_path / name, (1e9 - age, 1e9 - age))
    assert open_recording(tmp_path).is_in_order
    os.utime(tmp_path / "b.json", (1e9 - 300, 1e9 - 300))
    assert not open_recording(tmp_path).is_in_order


@pytest.mark.parametrize(
    ("bad", "problem"),
    [
        ("{", "not JSON (Expecting property name enclosed in double quotes)"),
        ("[]", "not a JSON object"),
        ('{"event_type": 3}', "event_type is 3, not 0, 1 or 2"),
        ('{"bid": {}}', "event_type is None, not 0, 1 or 2"),
        ('{"event_type": 0, "bid": {}}', "the event lacks 'person'"),
        ('{"event_type": 2, "bid": 5}', "the event lacks 'bid'"),
        ('{"event_type": 2, "n": "1", "bid": {}}', "n is '1', not an integer"),
        (line(price=None), "the bid lacks 'price'"),
        (line(price="7"), "price of the bid is '7', not a bigint"),
        (line(price=7.0), "price of the bid is 7.0, not a bigint"),
        (line(price=2**63), f"price of the bid is {2**63}, not a bigint"),
        (line(price=True), "price of the bid is True, not a bigint"),
        (line(url=5), "url of the bid is 5, not a string"),
        (line(dateTime="2015-02-30 00:00:00"), "dateTime of the bid is '2015-02-30 00:00:00', not"),
        (line(dateTime="2015-07-15"), "dateTime of the bid is '2015-07-15', not a timestamp"),
        (line(dateTime="2015-07-15 00:00:00Z"), "dateTime of the bid is '2015-07-15 00:00:00Z'"),
        (line(dateTime=5), "dateTime of the bid is 5, not a timestamp"),
        ("[" * 100_000, "brackets nested too deep for an event"),
        ("[" * 900 + "]" * 900, "not a JSON object"),
        ('{"n":' + "[" * 100_000, "brackets nested too deep for an event"),
        ('{"event_type": "' + "x" * 1000 + '"}', f"event_type is '{'x' * 79}..., not 0, 1"),
    ],
)
def test_line_that_is_no_event(tmp_path: Path, bad: str, problem: str) -> None:
    (tmp_path / "a.json").write_text(line() + "\n")
    (tmp_path / "b.json").write_text(f"{line()}\n{bad}\n")
    with pytest.raises(UsageError) as error:
        open_recording(tmp_path)
    message = str(error.value)
    assert message.startswith(f"--source: {tmp_path / 'b.json'}, line 2: {problem}")
    assert "mend or remove the line" in message
    assert "\n" not in message


@pytest.mark.parametrize("kind", KINDS)
def test_every_field_of_every_kind_is_needed(tmp_path: Path, kind: str) -> None:
    build = {"person": person, "auction": auction, "bid": bid}[kind]
    for field in build()[1]:
        event = build()
        del event[1][field]
        write_topic(tmp_path / "a.json", [event])
        with pytest.raises(UsageError, match=f"line 1: the {kind} lacks '{field}'"):
            open_recording(tmp_path)


def corrupt_gzip(directory: Path) -> None:
    (directory / "a.json.gz").write_bytes(gzip.compress(line().encode())[:-9])


@pytest.mark.parametrize(
    ("prepare", "problem"),
    [
        (lambda d: None, "holds no files; give a directory"),
        (lambda d: (d / "a.json").touch(), "holds no events; record some first"),
        (lambda d: (d / "a.txt").touch(), "a.txt is not a file of events"),
        (lambda d: (d / "a.json").mkdir(), "a.json is not a file of events"),
        (
            lambda d: [(d / name).touch() for name in ("a.json", "b.parquet")],
            "holds both JSON and parquet; give a directory with one",
        ),
        (lambda d: (d / "a.json").write_bytes(b"\xff\n"), "a.json, line 1: not UTF-8"),
        (lambda d: (d / "a.json.gz").write_bytes(b"text"), "line 1: not readable as gzip"),
        (corrupt_gzip, "not readable as gzip"),
    ],
)
def test_directory_without_events(
    tmp_path: Path, prepare: Callable[[Path], object], problem: str
) -> None:
    prepare(tmp_path)
    with pytest.raises(UsageError, match=problem):
        open_recording(tmp_path)
