"""Find the files of recorded events, and check that every line of JSON is an event."""

import gzip
import json
import re
import zlib
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from nexmark_jobs.errors import UsageError
from nexmark_jobs.sources.file_order import are_in_order

_SCHEMA = {
    "person": "id bigint, name string, emailAddress string, creditCard string, city string, "
    "state string, dateTime timestamp, extra string",
    "auction": "id bigint, itemName string, description string, initialBid bigint, reserve bigint, "
    "dateTime timestamp, expires timestamp, seller bigint, category bigint, extra string",
    "bid": "auction bigint, bidder bigint, price bigint, channel string, url string, "
    "dateTime timestamp, extra string",
}
KINDS = tuple(_SCHEMA)
"""The names of the entities, in the order of event_type."""

FIELDS: dict[str, dict[str, str]] = {
    name: {field: kind for field, _, kind in (each.partition(" ") for each in ddl.split(", "))}
    for name, ddl in _SCHEMA.items()
}
"""Fields of each entity with their types, in the order of the schema."""

_JSON = re.compile(r".*\.(json|jsonl|ndjson)(\.gz)?")
_TIMESTAMP = re.compile(r"(\d{4}-\d\d-\d\d)[T ](\d\d:\d\d:\d\d)(\.\d{1,9})?")
_MAX_BIGINT = 2**63 - 1
_MAX_SHOWN = 80


@dataclass(frozen=True)
class Recording:
    """The files of a recording, sorted by name: parquet, or JSON lines."""

    directory: Path
    is_parquet: bool
    files: tuple[Path, ...]
    events: tuple[int, ...] = ()  # by file; empty for parquet, which only Spark can read
    numbered: bool = False  # whether every event has an event number

    @property
    def is_in_order(self) -> bool:
        """Tell whether Spark, which takes files by age, can read them one by one."""
        return are_in_order(self.files)


def open_recording(directory: Path) -> Recording:
    """Return the recording in a directory; JSON is read and checked line by line.

    Raises UsageError if the directory has no such files, or other ones, or a line is not an event.
    """
    files = sorted(file for file in directory.iterdir() if not file.name.startswith((".", "_")))
    strange = [file for file in files if not (file.is_file() and _suffix(file))]
    if strange:
        known = "*.json, *.jsonl, *.ndjson, each also with .gz, or *.parquet"
        problem = f"is not a file of events ({known}); take it out of the directory"
        raise UsageError(f"--source: {strange[0]} {problem}")
    suffixes = {_suffix(file) for file in files}
    if not files or len(suffixes) > 1:
        problem = "holds both JSON and parquet" if files else "holds no files"
        raise UsageError(f"--source: {directory} {problem}; give a directory with one of the two")
    if suffixes == {"parquet"}:
        return Recording(directory, True, tuple(files))
    counts, numbered = zip(*(check_lines(file) for file in files), strict=True)
    if not sum(counts):
        raise UsageError(f"--source: {directory} holds no events; record some first")
    return Recording(directory, False, tuple(files), counts, all(numbered))


def _suffix(file: Path) -> str | None:
    if _JSON.fullmatch(file.name):
        return "json"
    return "parquet" if file.suffix == ".parquet" else None


def check_lines(file: Path) -> tuple[int, bool]:
    """Return the number of events in a file, and whether all are numbered; UsageError if bad."""
    events, numbered = 0, 0
    for place, line in _lines(file):
        try:
            numbered += _check_event(json.loads(line))
        except json.JSONDecodeError as error:
            raise _bad_line(file, place, f"not JSON ({error.msg})") from None
        except RecursionError:
            raise _bad_line(file, place, "brackets nested too deep for an event") from None
        except ValueError as error:
            raise _bad_line(file, place, str(error)) from None
        events += 1
    return events, numbered == events


def _lines(file: Path) -> Iterator[tuple[int, str]]:
    """Yield the lines that are not blank, with their numbers from 1."""
    place = 0
    try:
        opener = gzip.open if file.suffix == ".gz" else open
        with opener(file, "rt", encoding="utf-8") as lines:
            for place, line in enumerate(lines, start=1):
                if not line.isspace():
                    yield place, line
    except UnicodeDecodeError:
        raise _bad_line(file, place + 1, "not UTF-8") from None
    except (gzip.BadGzipFile, zlib.error, EOFError) as error:
        problem = f"line {place + 1}: not readable as gzip ({error})"
        raise UsageError(f"--source: {file}, {problem}; copy the file again") from None


def _bad_line(file: Path, place: int, problem: str) -> UsageError:
    remedy = "mend or remove the line (one Nexmark event per line, with every field of its kind)"
    return UsageError(f"--source: {file}, line {place}: {problem}; {remedy}")


def _check_event(event: Any) -> bool:
    """Return whether an event has a number; ValueError if the value is no event."""
    if not isinstance(event, dict):
        raise ValueError("not a JSON object")
    number = event.get("n")
    if number is not None and not _is_bigint(number):
        raise ValueError(f"n is {_shown(number)}, not an integer")
    kind = event.get("event_type")
    if type(kind) is not int or not 0 <= kind < len(KINDS):
        raise ValueError(f"event_type is {_shown(kind)}, not 0, 1 or 2")
    name = KINDS[kind]
    entity = event.get(name)
    if not isinstance(entity, dict):
        raise ValueError(f"the event lacks '{name}'")
    for field, kind_of_field in FIELDS[name].items():
        value = entity.get(field)
        if value is None:
            raise ValueError(f"the {name} lacks '{field}'")
        if not IS_A[kind_of_field](value):
            raise ValueError(f"{field} of the {name} is {_shown(value)}, not a {kind_of_field}")
    return number is not None


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= _MAX_SHOWN else f"{text[:_MAX_SHOWN]}..."


def _is_bigint(value: Any) -> bool:
    return type(value) is int and -_MAX_BIGINT - 1 <= value <= _MAX_BIGINT


def _is_timestamp(value: Any) -> bool:
    matched = _TIMESTAMP.fullmatch(value) if isinstance(value, str) else None
    if matched is None:
        return False
    with suppress(ValueError):
        return bool(datetime.fromisoformat(f"{matched[1]} {matched[2]}"))
    return False


IS_A: dict[str, Callable[[Any], bool]] = {"bigint": _is_bigint, "timestamp": _is_timestamp}
IS_A["string"] = lambda value: isinstance(value, str)
"""By the type of a field, the check that a value of JSON has this type."""
