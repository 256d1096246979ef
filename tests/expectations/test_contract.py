"""Which queries have a contract, when no row is right, and what is compared of each."""

from __future__ import annotations

from importlib import resources

import duckdb
import pytest

from nexmark.expectations.checks import reference_select, reference_sql
from nexmark.expectations.contract import (
    CONTRACTS,
    EXPERIMENT_CONTRACTS,
    Column,
    ExpectationsError,
    columns_of_text,
    contract,
)
from nexmark.expectations.tables import Events

SELECTIVE = {"q2", "q3", "q4", "q6", "q8", "q9", "q14", "q14_python_udf", "q20", "q23"}
"""Queries whose filter or join few bids may pass."""


def test_every_query_of_nexmark_has_one() -> None:
    names = {*(f"q{number}" for number in range(24)), "q14_python_udf"}
    assert {contract(name).query for name in names} == set(CONTRACTS) == names


def test_every_reference_belongs_to_a_query() -> None:
    folder = resources.files("nexmark.expectations") / "reference"
    known = {name: contract(name) for name in (*CONTRACTS, *EXPERIMENT_CONTRACTS)}
    assert {x.sql for x in known.values()} == {x.name for x in folder.iterdir()}
    assert {name: entry.query for name, entry in known.items()} == {name: name for name in known}
    assert CONTRACTS["q14_python_udf"].sql == CONTRACTS["q14"].sql == "q14.sql"
    assert CONTRACTS["q5"].sql == "q05.sql"


@pytest.mark.parametrize("query", EXPERIMENT_CONTRACTS)
def test_the_reference_of_an_experiment_gives_its_columns(edge: Events, query: str) -> None:
    described = edge.connection.sql(f"DESCRIBE {reference_select(query)}").fetchall()
    assert tuple(Column(name, kind) for name, kind, *_ in described) == contract(query).columns
    assert query in EXPERIMENT_CONTRACTS
    assert reference_sql(query)


@pytest.mark.parametrize(
    ("text", "columns"),
    [
        ("bigint: a", "a BIGINT"),
        ("text: a b; timestamp: c", "a VARCHAR, b VARCHAR, c TIMESTAMP"),
        ("decimal: price;bigint: a", "price DECIMAL(23,3), a BIGINT"),
    ],
)
def test_columns_are_read_from_text(text: str, columns: str) -> None:
    assert ", ".join(map(str, columns_of_text(text))) == columns


@pytest.mark.parametrize(
    ("query", "columns"),
    [
        ("q1", "auction BIGINT, bidder BIGINT, price DECIMAL(23,3), dateTime TIMESTAMP"),
        ("q10", "auction BIGINT, bidder BIGINT, price BIGINT, dateTime TIMESTAMP, extra VARCHAR"),
        ("q11", "bidder BIGINT, bid_count BIGINT, starttime TIMESTAMP, endtime TIMESTAMP"),
        ("q15", "day VARCHAR, total_bids BIGINT, rank1_bids BIGINT, rank2_bids BIGINT"),
        ("q16", "channel VARCHAR, day VARCHAR, minute VARCHAR, total_bids BIGINT"),
        ("q23", "bidder BIGINT, price BIGINT, channel VARCHAR, url VARCHAR, bid_extra VARCHAR"),
    ],
)
def test_columns_have_the_types_of_the_design(query: str, columns: str) -> None:
    assert ", ".join(map(str, contract(query).columns)).startswith(columns)


def test_statistics_are_by_kind_and_rank() -> None:
    kinds, ranks = ("bids", "bidders", "auctions"), ("total", "rank1", "rank2", "rank3")
    assert contract("q15").names == ("day", *(f"{r}_{k}" for k in kinds for r in ranks))


@pytest.mark.parametrize(
    ("bids", "known_bidders", "may_be_empty"),
    [
        (0, True, {*CONTRACTS, *EXPERIMENT_CONTRACTS}),
        (1, True, SELECTIVE),
        (4_999, True, SELECTIVE),
        (5_000, True, set()),
        (5_000, False, {"q23"}),
    ],
)
def test_no_row_is_right_only_where_too_few_events_can_pass(
    bids: int, known_bidders: bool, may_be_empty: set[str]
) -> None:
    with duckdb.connect() as connection:
        connection.execute(f"CREATE TABLE bid AS SELECT range AS bidder FROM range({bids})")
        persons = bids if known_bidders else 0
        connection.execute(f"CREATE TABLE person AS SELECT range AS id FROM range({persons})")
        known = {**CONTRACTS, **EXPERIMENT_CONTRACTS}
        said = {
            sql: connection.execute(sql).fetchall()[0][0]
            for sql in {entry.may_be_empty for entry in known.values()}
        }
    assert {name for name in known if said[contract(name).may_be_empty]} == may_be_empty


def test_columns_that_a_tie_can_change_are_not_compared_without_event_numbers() -> None:
    entries = {query: contract(query) for query in CONTRACTS}
    tied = {
        query: {*entry.names} - {*entry.tie_free}
        for query, entry in entries.items()
        if entry.tie_free
    }
    assert tied == {
        "q9": {"bidder", "bid_extra"},
        "q18": {"price", "channel", "url", "extra"},
        "q19": {"bidder", "channel", "url", "dateTime", "extra"},
    }
    assert all({*entry.tie_free} <= {*entry.names} for entry in entries.values())


def test_only_sessions_of_processing_time_are_folded_by_bidder() -> None:
    folded = {query: entry for query, entry in CONTRACTS.items() if entry.fold}
    assert set(folded) == {"q12"}
    assert [column.name for column in folded["q12"].reference_columns] == ["bidder", "bid_count"]
    assert CONTRACTS["q11"].reference_columns == CONTRACTS["q11"].columns


def test_an_unknown_query_is_refused_with_the_known_ones() -> None:
    with pytest.raises(ExpectationsError, match=r"unknown query 'q24': use one of q0, q1, .*q23$"):
        contract("q24")
