"""What every query means, in the cases where formulations go astray: bounds, ties, absences.

The formulations run over fixed tables, where they mean the same as over streams; that streams give
the same is shown in test_streaming.py and, with a reference that is not Spark, in tests/engines.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest

from nexmark_jobs.queries import QUERIES
from tests.queries.conftest import Evaluate, Rows
from tests.queries.event_builders import Event, at, auction, bid, person

pytestmark = pytest.mark.spark

URL = "https://www.nexmark.com/abc/def/ghi/item.htm?query=1"


def formulations(query: str) -> Any:
    """Run the test with every formulation of the query."""
    return pytest.mark.parametrize("formulation", [f.name for f in QUERIES[query].formulations])


def columns(query: str, rows: Rows, *names: str) -> Rows:
    places = [QUERIES[query].columns.index(name) for name in names]
    return sorted(tuple(row[place] for place in places) for row in rows)


def test_q0_projects_bids_only(evaluate: Evaluate) -> None:
    rows = evaluate("q0", "projection", [person(), auction(), bid(7, 1.5, bidder=8, extra="x")])
    assert rows == [(7, 8, 100, at(1.5), "x")]


def test_q1_is_exact(evaluate: Evaluate) -> None:
    rows = evaluate("q1", "projection", [bid(price=p) for p in (1, 333, 10**15 + 1)])
    assert columns("q1", rows, "price") == [
        (Decimal("0.908"),),
        (Decimal("302.364"),),
        (Decimal("908000000000000.908"),),
    ]


def test_q2_keeps_multiples_of_123(evaluate: Evaluate) -> None:
    assert evaluate("q2", "filter", [bid(122), bid(123, price=5), bid(124)]) == [(123, 5)]


def test_q3_joins_whichever_comes_first(evaluate: Evaluate) -> None:
    events = [
        auction(10, seller=1),
        person(1, name="early", city="Boise", state="ID"),
        auction(11, seller=1),
        auction(12, seller=1, category=11),
        person(2, name="elsewhere", state="WA"),
        auction(13, seller=2),
    ]
    assert evaluate("q3", "join", events) == [
        ("early", "Boise", "ID", 10),
        ("early", "Boise", "ID", 11),
    ]


VALIDITY = [
    pytest.param([5, 10, 15], [20, 30, 40], 40, id="both bounds are inclusive"),
    pytest.param([4.999, 10], [99, 30], 30, id="a bid before the opening does not count"),
    pytest.param([10, 15.001], [30, 99], 30, id="a bid after the end does not count"),
    pytest.param([4.999, 15.001], [99, 99], None, id="an auction without a valid bid has no row"),
]


@formulations("q4")
@pytest.mark.parametrize(("times", "prices", "final"), VALIDITY)
def test_q4_counts_valid_bids(
    evaluate: Evaluate, formulation: str, times: list[float], prices: list[int], final: int | None
) -> None:
    bids = [bid(1, t, price=p) for t, p in zip(times, prices, strict=True)]
    rows = evaluate("q4", formulation, [auction(1, 5, length=10), *bids])
    assert rows == ([] if final is None else [(10, final)])


@formulations("q4")
def test_q4_truncates_the_mean_of_each_category(evaluate: Evaluate, formulation: str) -> None:
    events = [auction(1), auction(2), auction(3, category=11), bid(1, 1, price=100)]
    events += [bid(2, 1, price=101), bid(2, 2, price=7), bid(3, 1, price=5), bid(9, 1)]
    assert evaluate("q4", formulation, events) == [(10, 100), (11, 5)]


@formulations("q5")
def test_q5_counts_in_every_window_of_a_bid(evaluate: Evaluate, formulation: str) -> None:
    rows = evaluate("q5", formulation, [bid(1, 2), bid(2, 3.999), bid(2, 3.999)])
    assert rows == [(2, 2, at(start), at(start + 10)) for start in (-6, -4, -2, 0, 2)]


@formulations("q5")
def test_q5_keeps_all_ties(evaluate: Evaluate, formulation: str) -> None:
    rows = evaluate("q5", formulation, [bid(1, 0), bid(2, 0), bid(3, 9), bid(3, 10)])
    assert sorted(rows) == sorted(
        [
            *((a, 1, at(s), at(s + 10)) for a in (1, 2) for s in (-8, -6, -4, -2)),
            *((a, 1, at(0), at(10)) for a in (1, 2, 3)),
            *((3, 2, at(s), at(s + 10)) for s in (2, 4, 6, 8)),
            (3, 1, at(10), at(20)),
        ]
    )


@formulations("q6")
def test_q6_takes_the_last_ten_sales(evaluate: Evaluate, formulation: str) -> None:
    """Of twelve sales the first two by time of the winning bid are left out; the mean is cut."""
    events: list[Event] = []
    for number in range(12):
        events += [auction(number, 0, length=60, seller=7), bid(number, number, price=10**number)]
    total = sum(10**number for number in range(2, 12))
    assert evaluate("q6", formulation, events) == [(7, total // 10)]


@formulations("q6")
def test_q6_orders_equal_times_by_auction(evaluate: Evaluate, formulation: str) -> None:
    events = [auction(number, length=60, seller=7) for number in range(11)]
    events += [bid(number, 5, price=1000 if number == 0 else 7) for number in range(11)]
    assert evaluate("q6", formulation, events) == [(7, 7)]


@formulations("q7")
def test_q7_keeps_all_ties_of_each_window(evaluate: Evaluate, formulation: str) -> None:
    events = [bid(1, 0, price=5), bid(2, 9.999, price=5), bid(3, 5, price=4), bid(4, 12, price=3)]
    rows = evaluate("q7", formulation, events)
    assert columns("q7", rows, "auction", "price") == [(1, 5), (2, 5), (4, 3)]


@formulations("q7")
@pytest.mark.parametrize(
    ("price", "expected"),
    [
        pytest.param(5, [1, 2, 2], id="an equal bid at the end matches both windows"),
        pytest.param(6, [1, 2], id="a higher bid at the end does not raise the earlier maximum"),
        pytest.param(4, [1, 2], id="a lower bid at the end matches its own window only"),
    ],
)
def test_q7_upper_bound_is_inclusive(
    evaluate: Evaluate, formulation: str, price: int, expected: list[int]
) -> None:
    rows = evaluate("q7", formulation, [bid(1, 3, price=5), bid(2, 10, price=price)])
    assert columns("q7", rows, "auction") == [(number,) for number in expected]


def test_q7_refuses_more_ties_than_it_keeps(evaluate: Evaluate) -> None:
    with pytest.raises(Exception, match="1000 or more bids of a window tie"):
        evaluate("q7", "max_by_k", [bid(1, 0, bidder=number) for number in range(1000)])


@formulations("q8")
def test_q8_matches_within_a_window(evaluate: Evaluate, formulation: str) -> None:
    events = [
        *(person(1, 9.999), auction(1, 0, seller=1), auction(2, 5, seller=1)),
        *(person(2, 9.999), auction(3, 10, seller=2)),
        *(person(3, 0), auction(4, 0, seller=4)),
        *(person(5, 20), auction(5, 29.999, seller=5)),
    ]
    rows = evaluate("q8", formulation, events)
    assert rows == [(1, "person 1", at(0)), (5, "person 5", at(20))]


@formulations("q9")
@pytest.mark.parametrize(("times", "prices", "final"), VALIDITY)
def test_q9_counts_valid_bids(
    evaluate: Evaluate, formulation: str, times: list[float], prices: list[int], final: int | None
) -> None:
    bids = [bid(1, t, price=p) for t, p in zip(times, prices, strict=True)]
    rows = evaluate("q9", formulation, [auction(1, 5, length=10), *bids])
    assert columns("q9", rows, "id", "price") == ([] if final is None else [(1, final)])


@formulations("q9")
@pytest.mark.parametrize(
    ("numbered", "expected"), [(True, ["earliest, first"]), (False, ["earliest, last"])]
)
def test_q9_breaks_ties_by_time_then_number(
    evaluate: Evaluate, formulation: str, numbered: bool, expected: list[str]
) -> None:
    """Without numbers any of the tied bids would do, but it is always the same."""
    events = [
        bid(1, 3, bidder=3, extra="later"),
        bid(1, 2, bidder=1, extra="earliest, first"),
        bid(1, 2, bidder=2, extra="earliest, last"),
        auction(1, extra="wide", seller=9),
    ]
    rows = evaluate("q9", formulation, events, numbered)
    assert columns("q9", rows, "bid_extra") == [(extra,) for extra in expected]
    assert columns("q9", rows, "extra", "seller", "auction") == [("wide", 9, 1)]


def test_q10_names_day_and_minute(evaluate: Evaluate) -> None:
    rows = evaluate("q10", "projection", [bid(time=86_399.999), bid(time=0)])
    assert columns("q10", rows, "dt", "hm") == [("2015-07-15", "00:00"), ("2015-07-15", "23:59")]


@pytest.mark.parametrize(
    ("times", "sessions"),
    [
        ([0, 9.999], [(2, 0, 19.999)]),
        ([0, 10], [(2, 0, 20)]),
        ([0, 10.001], [(1, 0, 10), (1, 10.001, 20.001)]),
    ],
)
def test_q11_gap(
    evaluate: Evaluate, times: list[float], sessions: list[tuple[int, float, float]]
) -> None:
    events = [bid(bidder=5, time=time) for time in times] + [bid(bidder=6, time=5)]
    rows = evaluate("q11", "session_window", events)
    expected = [(5, number, at(start), at(end)) for number, start, end in sessions]
    assert rows == [*expected, (6, 1, at(5), at(15))]


def test_q12_conserves_bids_in_windows_of_ten_seconds(evaluate: Evaluate) -> None:
    rows = evaluate("q12", "current_timestamp", [bid(bidder=b) for b in (1, 1, 2)])
    assert columns("q12", rows, "bidder", "bid_count") == [(1, 2), (2, 1)]
    for _, _, start, end in rows:
        assert end - start == timedelta(seconds=10)
        assert start.timestamp() % 10 == 0


def test_q13_looks_up_the_remainder(evaluate: Evaluate) -> None:
    rows = evaluate("q13", "broadcast_join", [bid(10_000), bid(29_999)])
    assert columns("q13", rows, "auction", "value") == [(10_000, "0"), (29_999, "9999")]


@pytest.mark.parametrize(
    ("query", "formulation"), [("q14", "builtin"), ("q14_python_udf", "python_udf")]
)
def test_q14_filters_and_classifies(evaluate: Evaluate, query: str, formulation: str) -> None:
    hours = {6: "night", 7: "other", 8: "day", 18: "day", 19: "other", 20: "night"}
    events = [bid(price=2_000_000, time=3600 * hour + 3599) for hour in hours]
    prices = (1_101_321, 1_101_322, 55_066_079, 55_066_080)
    events += [bid(price=price, extra="cCçcc", time=43_200) for price in prices]
    rows = evaluate(query, formulation, events)
    types = {when: kind for kind, when in columns(query, rows, "bidTimeType", "dateTime")}
    assert {h: types[at(3600 * h + 3599)] for h in hours} == {
        hour: f"{kind}Time" for hour, kind in hours.items()
    }
    assert columns(query, rows, "price", "c_counts")[0] == (Decimal("1000000.376"), 3)
    assert columns(query, rows, "price", "c_counts")[-1] == (Decimal("49999999.732"), 3)
    assert len(rows) == len(hours) + 2


STATISTICS = [
    bid(1, 0, bidder=1, price=9_999),
    bid(1, 1, bidder=1, price=10_000),
    bid(2, 2, bidder=1, price=999_999),
    bid(64, 61, bidder=22, price=1_000_000),
    bid(1, 90_000, bidder=1, price=5),
]


@formulations("q15")
def test_q15_counts_distinct_by_rank(evaluate: Evaluate, formulation: str) -> None:
    assert evaluate("q15", formulation, STATISTICS) == [
        ("2015-07-15", 4, 1, 2, 1, 2, 1, 1, 1, 3, 1, 2, 1),
        ("2015-07-16", 1, 1, 0, 0, 1, 1, 0, 0, 1, 1, 0, 0),
    ]


@formulations("q16")
def test_q16_counts_by_channel(evaluate: Evaluate, formulation: str) -> None:
    events = [*STATISTICS, bid(1, 59.999, bidder=1, price=1, channel="other")]
    assert evaluate("q16", formulation, events) == [
        ("Google", "2015-07-15", "00:01", 4, 1, 2, 1, 2, 1, 1, 1, 3, 1, 2, 1),
        ("Google", "2015-07-16", "01:00", 1, 1, 0, 0, 1, 1, 0, 0, 1, 1, 0, 0),
        ("other", "2015-07-15", "00:00", 1, 1, 0, 0, 1, 1, 0, 0, 1, 1, 0, 0),
    ]


def test_q17_ranks_and_truncates(evaluate: Evaluate) -> None:
    prices = (9_999, 10_000, 999_999, 1_000_000)
    events = [*(bid(1, 0, price=price) for price in prices), bid(1, 86_400, price=2)]
    assert evaluate("q17", "aggregate", events) == [
        (1, "2015-07-15", 4, 1, 2, 1, 9_999, 1_000_000, sum(prices) // 4, sum(prices)),
        (1, "2015-07-16", 1, 1, 0, 0, 2, 2, 2, 2),
    ]


@formulations("q18")
@pytest.mark.parametrize("numbered", [True, False])
def test_q18_keeps_the_last_bid(evaluate: Evaluate, formulation: str, numbered: bool) -> None:
    events = [
        bid(1, 5, bidder=1, price=1, url="late in time"),
        bid(1, 4, bidder=1, price=9, url="late in number"),
        bid(1, 4, bidder=2, price=8, url="tied, first"),
        bid(1, 4, bidder=2, price=9, url="tied, last"),
        bid(2, 1, bidder=2),
    ]
    rows = evaluate("q18", formulation, events, numbered)
    assert columns("q18", rows, "auction", "bidder", "url") == [
        (1, 1, "late in time"),
        (1, 2, "tied, last"),
        (2, 2, URL),
    ]


@formulations("q19")
def test_q19_ranks_ten(evaluate: Evaluate, formulation: str) -> None:
    events = [bid(1, number, bidder=number, price=number) for number in range(12)]
    rows = evaluate("q19", formulation, [*events, bid(2, price=7)])
    assert columns("q19", rows, "auction", "rank_number", "price") == [
        *((1, rank, 12 - rank) for rank in range(1, 11)),
        (2, 1, 7),
    ]


@formulations("q19")
def test_q19_ranks_equal_prices_by_event_number(evaluate: Evaluate, formulation: str) -> None:
    events = [bid(1, 2, bidder=3), bid(1, 1, bidder=1), bid(1, 1, bidder=2), bid(1, 0, price=1)]
    rows = evaluate("q19", formulation, events)
    assert columns("q19", rows, "rank_number", "bidder", "price") == [
        (1, 3, 100),
        (2, 1, 100),
        (3, 2, 100),
        (4, 1, 1),
    ]


@formulations("q20")
def test_q20_has_no_bound_in_time(evaluate: Evaluate, formulation: str) -> None:
    events = [
        bid(1, 0, extra="before"),
        auction(1, 5, length=1, extra="of the auction"),
        bid(1, 100, extra="after"),
        auction(2, category=11),
        bid(2),
        bid(3),
    ]
    rows = evaluate("q20", formulation, events)
    assert columns("q20", rows, "bid_extra", "auction_extra", "auction_dateTime") == [
        ("after", "of the auction", at(5)),
        ("before", "of the auction", at(5)),
    ]


Q21 = [
    ("Apple", URL, "0"),
    ("GOOGLE", URL, "1"),
    ("facebook", f"{URL}&channel_id=7", "2"),
    ("Baidu", URL, "3"),
    ("channel-1", f"{URL}&channel_id=-21&x=1", "-21"),
    ("channel-1", f"{URL}&channel_id=", None),
    ("channel-1", f"{URL}&channel_id=&channel_id=2", None),
    ("channel-1", "channel_id=5&channel_id=6", "5"),
    ("channel-1", f"{URL}&my_channel_id=6", None),
    ("channel-1", URL, None),
    ("channel-1", "", None),
]


@formulations("q21")
def test_q21_finds_the_channel(evaluate: Evaluate, formulation: str) -> None:
    events = [bid(number, channel=c, url=url) for number, (c, url, _) in enumerate(Q21)]
    rows = evaluate("q21", formulation, events)
    assert columns("q21", rows, "auction", "channel_id") == [
        (number, found) for number, (_, _, found) in enumerate(Q21) if found is not None
    ]


@formulations("q22")
def test_q22_splits_the_url(evaluate: Evaluate, formulation: str) -> None:
    rows = evaluate("q22", formulation, [bid(url=URL), bid(url="https://www.nexmark.com/a/b_")])
    assert columns("q22", rows, "dir1", "dir2", "dir3") == [("a", "b_", ""), ("abc", "def", "ghi")]


@formulations("q23")
def test_q23_multiplies_bids_by_auctions(evaluate: Evaluate, formulation: str) -> None:
    events = [
        bid(bidder=1, extra="early"),
        auction(1, seller=1, extra="x"),
        person(1, extra="p"),
        auction(2, seller=1, extra="y"),
        *(bid(bidder=2), person(2), auction(3, seller=3), bid(bidder=3)),
    ]
    rows = evaluate("q23", formulation, events)
    assert columns("q23", rows, "bid_extra", "person_id", "person_extra", "auction_extra") == [
        ("early", 1, "p", "x"),
        ("early", 1, "p", "y"),
    ]


@pytest.mark.parametrize("query", QUERIES)
def test_every_query_has_cases_and_formulations_that_can_be_told_apart(query: str) -> None:
    assert [name for name in globals() if name.startswith(f"test_{query.split('_')[0]}_")]
    names = [formulation.name for formulation in QUERIES[query].formulations]
    assert len(set(names)) == len(names)


def test_registry_covers_all_queries() -> None:
    wanted: Sequence[str] = [f"q{number}" for number in range(24)]
    assert [name for name in QUERIES if name != "q14_python_udf"] == wanted
