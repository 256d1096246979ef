"""Nights as CSV: what ``nexmark replay`` reads and writes, text in and text out.

The nights have the order of their first rows; otherwise rows may have any order. Rows of the query
``canary`` are readings of the host; their stage, pair, order and arm (before|after too) may be
empty, and give their order in time. Optional columns: asked (the pairs to measure), queries (to
run, with spaces between), baseline (the accepted build), candidate (the build that is tested;
without it, a baseline that was not there before is the candidate of the night before), basis,
teaches (0 in every row of a night that teaches nothing, since a person asked for the comparison,
whose rules it has; else 1 or empty), host and group of a canary, batch and warmup. A row with a
batch is a figure of a sample of a soak night (``aged_rows``), taken after the batch with this
number, and needs ``warmup``, the number of batches that warm up. Other columns are ignored. A text
that is not such a table is an error with its line; a number that cannot be a measurement (NaN, 0,
below 0) is a fact, which the gate judges.
"""

import csv
import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from nexmark.model import ARMS, CANARY, FIRST_ROUND, MOST_ROUNDS, SUITE, Basis, grouped
from nexmark.verdict.aged_rows import sample_of
from nexmark.verdict.measured_night import (
    Aged,
    Canary,
    Measured,
    MeasuredNight,
    canaries_of,
    rounds_of,
)
from nexmark.verdict.verdict import Verdict

COLUMNS = ("night", "query", "stage", "pair", "arm", "order", "metric", "value")
OUT = ("night", "query", "metric", "verdict", "ratio", "lo", "hi", "mde", "gate_version")
OPTIONAL = (
    *("asked", "queries", "baseline", "candidate", "basis", "teaches", "host", "group"),
    *("batch", "warmup"),
)
STAGES = {str(number): number for number in range(FIRST_ROUND, MOST_ROUNDS + 1)}
NO_STAGE = {"": 0, "0": 0}
TEACHES = {"": True, "1": True, "0": False}
BASES: Mapping[str, Basis | None] = {"": None} | {str(basis): basis for basis in Basis}
Known = TypeVar("Known")
CANARY_ARMS = ("", "before", "after", *ARMS)
REMEMBERED = 7
"""A query that ran in at least one of the last nights is expected; this is their number."""
_QUOTED = 60
_ROUND = f"a round, {FIRST_ROUND} to {MOST_ROUNDS}"


class MalformedError(ValueError):
    """An error in the CSV: ``line`` (from 1), and the problem in one line."""

    def __init__(self, line: int, problem: str) -> None:
        """Keep the line apart: the name of the file is the caller's."""
        super().__init__(problem)
        self.line = line


def quoted(text: str) -> str:
    """Return a text from the table for a message: in quotes, on one line, not long."""
    return repr(text if len(text) <= _QUOTED else f"{text[: _QUOTED - 3]}...")


@dataclass(frozen=True)
class _Row:
    line: int
    night: str
    query: str
    stage: int
    pair: int
    arm: str
    order: float
    metric: str
    value: float
    asked: int
    queries: tuple[str, ...]
    baseline: str
    candidate: str
    basis: Basis | None
    teaches: bool
    host: str | None
    group: str
    batch: int | None
    warmup: int

    @property
    def of_host(self) -> bool:
        """Whether this is a reading of a canary that names its host and moment."""
        return self.query == CANARY and self.host is not None and self.arm in ("before", "after")


def read_nights(lines: Iterable[str]) -> list[MeasuredNight]:
    """Return the nights of a CSV; MalformedError if the text is not such a table.

    In the order of the file, whatever their names are: of their first rows.
    """
    nights = grouped(_rows(lines), lambda row: row.night)
    if not nights:
        raise MalformedError(1, "there are no rows; nothing can be judged")
    made = list[MeasuredNight]()
    for name, of_night in nights.items():
        night = _night(name, of_night)
        if not night.expected:
            lately = {one.query for before in made[-REMEMBERED:] for one in before.measured}
            night = replace(night, expected=tuple(sorted(lately, key=_natural)))
        made.append(night)
    return made


def write_verdicts(verdicts: Iterable[Verdict]) -> Iterator[Sequence[str]]:
    """Return the table of verdicts as rows, the names of the columns first."""
    yield OUT
    for verdict in verdicts:
        names = (verdict.night, verdict.query, verdict.metric, verdict.value.value)
        numbers = (verdict.ratio, verdict.lo, verdict.hi, verdict.mde)
        texts = ("" if number is None else f"{number:.6g}" for number in numbers)
        yield (*names, *texts, str(verdict.gate_version))


def _rows(lines: Iterable[str]) -> Iterator[_Row]:
    reader = csv.reader(lines, strict=True)
    filled = (cells for cells in reader if any(cell.strip() for cell in cells))
    seen: dict[tuple[object, ...], int] = {}
    try:
        if (head := next(filled, None)) is None:
            raise MalformedError(1, f"the file is empty; its first line is {','.join(COLUMNS)}")
        places = _header(head, reader.line_num)
        for cells in filled:
            row = _row(cells, places, reader.line_num)
            if row.query != CANARY:
                _only_once(row, seen)
            yield row
    except csv.Error as error:
        raise MalformedError(reader.line_num, f"not CSV: {error}") from None


def _header(cells: Sequence[str], line: int) -> Mapping[str, int]:
    names = [cell.strip().lstrip("\ufeff") for cell in cells]
    for column in COLUMNS:
        if names.count(column) != 1:
            what = "is missing" if column not in names else "is there twice"
            raise MalformedError(line, f"column {column!r} {what}; needed: {', '.join(COLUMNS)}")
    known = (*COLUMNS, *(column for column in OPTIONAL if column in names))
    return {column: names.index(column) for column in known}


def _row(cells: Sequence[str], places: Mapping[str, int], line: int) -> _Row:
    if len(cells) <= max(places.values()):
        raise MalformedError(line, f"{len(cells)} cells, the first line has more columns")
    text = dict.fromkeys(OPTIONAL, "") | {
        column: cells[place].strip() for column, place in places.items()
    }
    for column in ("night", "query", "metric"):
        if not text[column]:
            raise MalformedError(line, f"{column} is empty")
    if text["query"] == SUITE:
        raise MalformedError(line, f"query {SUITE!r}: the name is the gate's own; rename the query")
    canary = text["query"] == CANARY
    arms = {str(arm): str(arm) for arm in (CANARY_ARMS if canary else ARMS)}
    return _Row(
        line,
        text["night"],
        text["query"],
        _one_of("stage", text["stage"], line, STAGES | (NO_STAGE if canary else {}), _ROUND),
        _whole("pair", text["pair"], line, canary),
        _one_of("arm", text["arm"], line, arms, " or ".join(filter(None, arms))),
        # The place in time as far as it is a number; only canaries need it.
        float(text["order"]) if re.fullmatch(r"[0-9]{1,15}([.][0-9]+)?", text["order"]) else 0.0,
        text["metric"],
        _value(text["value"], line),
        _whole("asked", text["asked"], line, may_be_empty=True),
        tuple(text["queries"].split()),
        text["baseline"],
        text["candidate"],
        _one_of("basis", text["basis"], line, BASES, "steady, application or empty"),
        _one_of("teaches", text["teaches"], line, TEACHES, "0, 1 or empty"),
        text["host"] if "host" in places else None,
        text["group"],
        _whole("batch", text["batch"], line, may_be_empty=False) if text["batch"] else None,
        _whole("warmup", text["warmup"], line, may_be_empty=not text["batch"]),
    )


def _one_of(column: str, text: str, line: int, values: Mapping[str, Known], known: str) -> Known:
    """Return the value that a cell stands for; MalformedError for a text that is not known.

    Args:
        column: The column of the cell.
        text: The text of the cell.
        line: Its line in the file.
        values: The values by their texts.
        known: The texts in words, for the message.
    """
    if text not in values:
        raise MalformedError(line, f"{column} {quoted(text)} is not known; it is {known}")
    return values[text]


def _whole(column: str, text: str, line: int, may_be_empty: bool) -> int:
    """Return a cell as a whole number; MalformedError if it is none.

    Args:
        column: The column of the cell.
        text: The text of the cell.
        line: Its line in the file.
        may_be_empty: Whether an empty cell stands for 0.
    """
    if may_be_empty and not text:
        return 0
    if not re.fullmatch(r"[0-9]{1,9}", text):
        raise MalformedError(line, f"{column} {quoted(text)} is not a whole number")
    return int(text)


def _value(text: str, line: int) -> float:
    try:
        return float(text) if text else math.nan
    except ValueError:
        raise MalformedError(line, f"value {quoted(text)} is not a number") from None


def _only_once(row: _Row, seen: dict[tuple[object, ...], int]) -> None:
    key = (row.night, row.query, row.stage, row.pair, row.arm, row.metric, row.batch)
    first = seen.setdefault(key, row.line)
    if first != row.line:
        batch = "" if row.batch is None else f", batch {row.batch}"
        problem = (
            f"{quoted(row.metric)} of {quoted(row.query)}, stage {row.stage}, pair {row.pair}, "
            f"{row.arm}{batch} is there twice in night {quoted(row.night)} "
            f"(first on line {first}); remove one"
        )
        raise MalformedError(row.line, problem)


def _natural(name: str) -> list[tuple[str, int, str]]:
    """Sort q2 before q10, however many digits there are: the longer number is larger."""
    texts = re.split("([0-9]+)", name)
    digits = (part.lstrip("0") for part in [*texts[1::2], ""])
    return [(text, len(part), part) for text, part in zip(texts[::2], digits, strict=True)]


def _night(name: str, rows: Sequence[_Row]) -> MeasuredNight:
    figures, readings = (
        [row for row in rows if (row.query == CANARY) == canary] for canary in (0, 1)
    )
    samples = [row for row in figures if row.batch is not None]
    of_runs = (row for row in figures if row.batch is None)
    series = grouped(of_runs, lambda row: (row.query, row.metric))
    measured = []
    for query, metric in sorted(series, key=lambda key: (_natural(key[0]), key[1])):
        of_query = series[query, metric]
        first, *later = rounds_of(
            ((row.stage, row.pair, row.arm, row.value) for row in of_query), ARMS
        )
        measured.append(Measured(query, metric, first, tuple(later), of_query[-1].basis))
    in_order = sorted((row for row in readings if row.of_host), key=_moment)
    of_hosts = canaries_of(
        (row.metric, row.host or "", row.group, row.arm, row.value) for row in in_order
    )
    groups = {canary.group for canary in of_hosts}
    expected = tuple(dict.fromkeys(query for row in rows for query in row.queries))
    return MeasuredNight(
        name,
        tuple(measured),
        (*_canaries([row for row in readings if not row.of_host]), *of_hosts),
        expected=expected,
        asked=max(row.asked for row in rows) or None,
        baseline={row.query: row.baseline for row in rows if row.baseline},
        groups={one.query: one.query for one in measured if one.query in groups},
        teaches=all(row.teaches for row in rows),
        candidate=next((row.candidate for row in rows if row.candidate), ""),
        aged=_aged(samples),
        warmup=max((row.warmup for row in samples), default=0),
    )


def _aged(rows: Iterable[_Row]) -> dict[str, tuple[Aged, ...]]:
    """Return by query the samples of both arms, pair by pair."""
    aged: dict[str, tuple[Aged, ...]] = {}
    of_pairs = grouped(rows, lambda row: (row.query, row.stage, row.pair))
    for (query, stage, pair), of_pair in sorted(of_pairs.items()):
        arms = [
            [
                sample_of(batch, {row.metric: row.value for row in of_sample})
                for batch, of_sample in sorted(grouped(of_arm, lambda row: row.batch or 0).items())
            ]
            for of_arm in ([row for row in of_pair if row.arm == arm] for arm in ARMS)
        ]
        candidate, baseline = (samples or None for samples in arms)
        aged[query] = (*aged.get(query, ()), Aged(stage, pair, candidate, baseline))
    return aged


def _canaries(rows: Sequence[_Row]) -> Iterator[Canary]:
    """Return each canary metric twice: the night's first half and second, and pair by pair."""
    for metric, unordered in grouped(rows, lambda row: row.metric).items():
        ordered = sorted(unordered, key=_moment)
        values = [row.value for row in ordered]
        half = len(values) // 2
        rest = values[-half:]  # all where half is 0
        yield Canary(metric, tuple(values[:half]), tuple(rest))
        groups = grouped(ordered, lambda row: (row.stage, row.pair)).values()
        ends = [(group[0].value, group[-1].value) for group in groups if len(group) > 1]
        if len(groups) > 1 and ends:
            before, after = zip(*ends, strict=True)
            yield Canary(metric, tuple(before), tuple(after))


def _moment(row: _Row) -> tuple[int, int, bool, float, int]:
    return row.stage, row.pair, row.arm == "after", row.order, row.line
