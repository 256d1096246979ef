"""The order that the names of nights tell, by their dates or their numbers."""

from __future__ import annotations

import pytest

from nexmark.verdict.named_dates import other_order


@pytest.mark.parametrize(
    "names",
    [
        pytest.param(("2.1.2026", "10.12.2025"), id="two nights are enough"),
        pytest.param(("2.1.2026", "a trial", "10.12.2025"), id="a name without a date between"),
        pytest.param(("2026-02-30", "2026-02-28"), id="a day that no calendar has is a number"),
        pytest.param(("run-10", "run-9"), id="numbers"),
        pytest.param(("2026-01-01T10:00", "2026-01-01T09:00"), id="times of one day"),
    ],
)
def test_two_nights_that_their_names_put_the_other_way_round_are_found(
    names: tuple[str, ...],
) -> None:
    assert other_order(names) == (names[0], names[-1])


@pytest.mark.parametrize(
    "names",
    [
        pytest.param(("3/4/2026", "5/3/2026"), id="4 March, 3 May, or 3 April, 5 March"),
        pytest.param(("2026-01-01 first", "2026-01-01 second"), id="the same day"),
        pytest.param(("2026-01-01", "2026-01-01 00:30"), id="without a time a day begins"),
        pytest.param(("10.1.00", "2.2.00"), id="the year 2000"),
        pytest.param(("run-9", "run-10", "run-010"), id="numbers, with zeros in front"),
        pytest.param(("mine-2", "yours-1"), id="names that differ in more than their numbers"),
        pytest.param(("2026-02-01",), id="one night"),
        pytest.param((), id="no night"),
    ],
)
def test_names_in_order_or_without_one_say_nothing(names: tuple[str, ...]) -> None:
    assert other_order(names) is None
