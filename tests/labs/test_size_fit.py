"""What restarts at several sizes tell: medians, seconds per MB, a prediction."""

from __future__ import annotations

from nexmark.labs.restore_sizes import TASK_MB, Restarted, cells, predictions
from nexmark.model import Spread


def restarted(mb: float, restore_s: float | None, interruption_s: float = 5.0) -> Restarted:
    return Restarted("snapshot", "local", mb, restore_s, interruption_s, 0.5)


def test_a_line_is_found_with_twice_its_error() -> None:
    found = [restarted(0, 1.0), restarted(0, 1.2), restarted(20, 3.0), restarted(20, 3.2)]
    assert predictions(found, 1)[0][2:4] == ["0.1000 +- 0.0141", f"{1.1 + TASK_MB * 0.1:.0f}"]


def test_one_size_has_no_line() -> None:
    assert predictions([restarted(10, 1.0), restarted(10, 2.0)], 1)[0][2:4] == ["", ""]


def test_a_spread_is_the_median_between_the_lowest_and_the_highest() -> None:
    assert str(Spread.of([3.0, 1.0, 2.0])) == "2.00 [1.00, 3.00]"


def test_the_table_has_a_row_for_each_cell() -> None:
    rows = cells([restarted(64, 1.0), restarted(256, 4.0), restarted(64, 2.0)])
    assert [row[:4] for row in rows] == [
        ["snapshot", "local", "64", "1.50 [1.00, 2.00]"],
        ["snapshot", "local", "256", "4.00 [4.00, 4.00]"],
    ]


def test_what_an_engine_does_not_tell_is_not_predicted() -> None:
    found = [restarted(64, None, 5.0), restarted(256, None, 6.0)]
    assert cells(found)[0][3] == "not reported"
    assert predictions(found, 2)[0][2:4] == ["", ""]


def test_the_prediction_is_by_task_beside_the_text() -> None:
    first, *text = predictions([restarted(20, 2.0), restarted(40, 4.0)], 2)
    assert first[2:4] == ["0.1000", f"{TASK_MB * 0.1:.0f}"]
    assert [row[3] for row in text] == ["10", "1.5"]


def test_what_does_not_grow_beyond_its_error_is_not_predicted() -> None:
    found = [restarted(20, 1.0), restarted(20, 3.0), restarted(40, 1.1), restarted(40, 2.9)]
    assert predictions(found, 2)[0][3] == "no growth"
