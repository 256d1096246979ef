"""What a table of stored nights says, cell by cell; how it is judged: test_replay.py."""

from __future__ import annotations

import pytest

from nexmark.verdict.measured_night import Canary, Measured, MeasuredNight, Pair
from nexmark.verdict.stored_nights import COLUMNS, MalformedError, quoted, read_nights

HEAD = ",".join(COLUMNS)
OPTIONAL = "asked,queries,baseline,candidate,basis,teaches,host,group"


def test_every_column_is_read() -> None:
    (first, second) = read_nights(
        [
            f"{HEAD},{OPTIONAL}",
            "n1,q5,1,1,candidate,1,cpu,11,7,q5 q9,old,new,steady,1,,",
            "n1,q5,1,1,baseline,2,cpu,10,9,q5,old,new,application,,,",
            "n1,q5,2,4,baseline,2,cpu,12,,,,,application,,,",
            "n1,canary,1,1,before,1,steal,1,,,,,,,h1,q5",
            "n1,canary,1,1,after,2,steal,3,,,,,,,,q5",
            "n2,q5,1,1,candidate,1,cpu,,,,,,,0,,",
            "n2,q7,1,1,candidate,1,cpu,8,,,,,,,,",
        ]
    )
    assert first == MeasuredNight(
        "n1",
        (Measured("q5", "cpu", (Pair(1, 11.0, 10.0),), ((Pair(4, None, 12.0),),), "application"),),
        (Canary("steal", (), (3.0,), "", "q5"), Canary("steal", (1.0,), (), "h1", "q5")),
        expected=("q5", "q9"),
        asked=9,
        baseline={"q5": "old"},
        groups={"q5": "q5"},
        candidate="new",
    )
    assert (second.teaches, second.asked, second.baseline) == (False, None, {})
    assert (second.candidate, second.groups) == ("", {})


def test_without_the_columns_that_may_be_missing_a_night_teaches_and_names_no_build() -> None:
    assert read_nights([HEAD, "n1,q5,1,1,candidate,1,cpu,11"]) == [
        MeasuredNight("n1", (Measured("q5", "cpu", (Pair(1, 11.0, None),)),))
    ]


def test_the_queries_of_the_seven_nights_before_are_expected() -> None:
    rows = [f"n{i},q{i},1,1,candidate,1,cpu,1" for i in range(1, 10)]
    nights = read_nights([HEAD, *rows])
    assert nights[0].expected == ()
    assert nights[8].expected == ("q2", "q3", "q4", "q5", "q6", "q7", "q8")


def test_queries_are_in_the_order_of_the_numbers_in_their_names() -> None:
    names = ["a1b2", "a1b10", "a2", "q", "q0", "q2", "q2a", "q3", "q10", "q020", "x"]
    rows = [f"n1,{name},1,1,candidate,1,cpu,1" for name in reversed(names)]
    (night,) = read_nights([HEAD, *rows])
    assert [one.query for one in night.measured] == names


def test_a_text_of_sixty_letters_is_quoted_whole_and_a_longer_one_up_to_there() -> None:
    assert quoted("x" * 60) == repr("x" * 60)
    assert quoted("x" * 61) == repr("x" * 57 + "...")


ROW = "n1,q5,1,1,candidate,1,cpu,1"


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        ([], f"the file is empty; its first line is {HEAD}"),
        ([HEAD, "n1,q5,1,1,candidate,1,cpu"], "7 cells, the first line has more columns"),
        ([HEAD, "n1,q5,0,1,candidate,1,cpu,1"], "stage '0' is not known; it is a round, 1 to 12"),
        ([HEAD, "n1,q5,,1,candidate,1,cpu,1"], "stage '' is not known; it is a round, 1 to 12"),
        ([HEAD, "n1,q5,1,,candidate,1,cpu,1"], "pair '' is not a whole number"),
        (
            [HEAD, "n1,q5,1,1,before,1,cpu,1"],
            "arm 'before' is not known; it is candidate or baseline",
        ),
        (
            [HEAD, "n1,canary,1,1,x,1,cpu,1"],
            "arm 'x' is not known; it is before or after or candidate or baseline",
        ),
        ([f"{HEAD},asked", f"{ROW},x"], "asked 'x' is not a whole number"),
        ([f"{HEAD},teaches", f"{ROW},no"], "teaches 'no' is not known; it is 0, 1 or empty"),
        (
            [HEAD, ROW, ROW],
            "'cpu' of 'q5', stage 1, pair 1, candidate is there twice in night 'n1' "
            "(first on line 2); remove one",
        ),
    ],
)
def test_what_is_wrong_is_said_with_what_would_be_right(lines: list[str], said: str) -> None:
    with pytest.raises(MalformedError) as error:
        read_nights(lines)
    assert (str(error.value), error.value.line) == (said, max(len(lines), 1))
