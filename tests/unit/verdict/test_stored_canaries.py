"""The readings of a canary in a table: the night's two halves, and each pair's two ends."""

from __future__ import annotations

import pytest

from nexmark.verdict.measured_night import Canary
from nexmark.verdict.stored_nights import COLUMNS, read_nights

HEAD = ",".join(COLUMNS)
QUERY = "n1,q5,1,1,candidate,1,cpu,1.0"


def canaries(*rows: str, head: str = HEAD, query: str = QUERY) -> tuple[Canary, ...]:
    (night,) = read_nights([head, query, *(f"n1,canary,{row}" for row in rows)])
    return night.canary


def halves(before: tuple[float, ...], after: tuple[float, ...]) -> Canary:
    return Canary("steal", before, after)


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        (["1,1,,1,steal,3"], [halves((), (3.0,))]),
        (["1,1,,1,steal,3", "1,1,,2,steal,4"], [halves((3.0,), (4.0,))]),  # one pair: no ends
        (
            ["1,1,,1,steal,3", "1,2,,1,steal,4", "1,3,,1,steal,5"],  # one reading each: no ends
            [halves((3.0,), (5.0,))],
        ),
        (
            ["1,2,,1,steal,5", "1,1,,2,steal,4", "1,2,,2,steal,6", "1,1,,1,steal,3"],
            [halves((3.0, 4.0), (5.0, 6.0)), halves((3.0, 5.0), (4.0, 6.0))],
        ),
        (
            ["1,1,,1,steal,3", "1,1,,2,steal,4", "1,1,,3,steal,5", "1,2,,1,steal,6"],
            [halves((3.0, 4.0), (5.0, 6.0)), halves((3.0,), (5.0,))],
        ),
        (
            ["1,1,after,1,steal,4", "1,1,before,2,steal,3"],  # the moment counts before the order
            [halves((3.0,), (4.0,))],
        ),
        (
            ["1,1,,0.5,steal,4", "1,1,,soon,steal,3"],  # what is no number is before all
            [halves((3.0,), (4.0,))],
        ),
        (
            # without a column for hosts, a moment is only a place in time
            [
                "1,1,before,,steal,3",
                "1,1,after,,steal,4",
                "1,2,before,,steal,5",
                "1,2,after,,steal,6",
            ],
            [halves((3.0, 4.0), (5.0, 6.0)), halves((3.0, 5.0), (4.0, 6.0))],
        ),
        (
            ["2,1,,1,steal,5", "1,9,,9,steal,4"],
            [halves((4.0,), (5.0,))],
        ),
    ],
)
def test_readings_are_halved_in_the_order_of_time(rows: list[str], expected: list[Canary]) -> None:
    assert list(canaries(*rows)) == expected


def test_rows_of_the_same_place_keep_their_order() -> None:
    assert canaries(",,,,steal,3", ",,,,steal,4") == (halves((3.0,), (4.0,)),)


def test_each_metric_has_its_own() -> None:
    found = canaries("1,1,,1,steal,3", "1,1,,2,load,1", "1,1,,3,steal,4")
    assert found == (halves((3.0,), (4.0,)), Canary("load", (), (1.0,)))


def test_readings_that_name_host_and_moment_are_by_host_and_group() -> None:
    rows = ("1,1,before,1,cpu,2,h1,q5", "1,1,after,2,cpu,3,h1,q5", "1,1,candidate,3,cpu,9,h1,q5")
    found = canaries(*rows, head=f"{HEAD},host,group", query=f"{QUERY},,")
    assert found == (Canary("cpu", (), (9.0,)), Canary("cpu", (2.0,), (3.0,), "h1", "q5"))
