"""An output that a wrong engine would leave is never called right."""

from __future__ import annotations

from pathlib import Path

import pytest

from nexmark.expectations.checks import invariants, reference_check
from nexmark.expectations.contract import CONTRACTS, contract
from nexmark.expectations.tables import Events
from tests.expectations.checked import failed
from tests.expectations.wrong_engines import MUTATIONS, Mutation, right_sql

ALL = sorted(CONTRACTS)

LIKE_COLUMNS = [
    (query, left.name, right.name)
    for query, entry in CONTRACTS.items()
    for left, right in zip(entry.columns, entry.columns[1:], strict=False)
    if left.type == right.type
]
"""Pairs of neighbouring columns of one type, whose values an engine may confuse."""

# What an engine may do to any query's rows: a SELECT over the right rows ({a}: the first column),
# and the check that sees it.
DAMAGES: dict[str, tuple[str, str]] = {
    "drops a row": ("FROM right_rows OFFSET 1", "difference"),
    "doubles a row": ("FROM right_rows UNION ALL (FROM right_rows LIMIT 1)", "difference"),
    "doubles two rows": ("FROM right_rows UNION ALL (FROM right_rows LIMIT 2)", "difference"),
    "doubles all rows": ("FROM right_rows UNION ALL FROM right_rows", "difference"),
    "has a row three times": (
        "FROM right_rows UNION ALL (SELECT r.* FROM (FROM right_rows LIMIT 1) AS r, range(2))",
        "difference",
    ),
    "has no rows": ("FROM right_rows LIMIT 0", "row_count"),
    "has a NULL": (
        "SELECT * REPLACE (CASE WHEN row_number() OVER () > 1 THEN {a} END AS {a}) FROM right_rows",
        "difference",
    ),
    "misses a column": ("SELECT * EXCLUDE ({a}) FROM right_rows", "schema"),
    "has one column more": ("SELECT *, 1 AS n FROM right_rows", "schema"),
    "renames a column": ("SELECT * RENAME ({a} AS renamed) FROM right_rows", "schema"),
    "has columns in another order": ("SELECT * EXCLUDE ({a}), {a} FROM right_rows", "schema"),
    "has another type": ("SELECT * REPLACE ([{a}] AS {a}) FROM right_rows", "schema"),
}


@pytest.fixture
def datasets(recorded: Events, edge: Events) -> dict[str, Events]:
    return {"recorded": recorded, "edge": edge}


def failed_of(events: Events, query: str, sql: str, directory: Path) -> set[str]:
    """Write the rows of `sql` as the output of `query`; return what is wrong with them."""
    events.connection.execute(f"COPY ({sql}) TO '{directory}/part-0.parquet' (FORMAT parquet)")
    return failed(events, query, directory)


@pytest.mark.parametrize("data", ["recorded", "edge"])
@pytest.mark.parametrize("query", ALL)
def test_right_output_has_nothing_against_it(
    datasets: dict[str, Events], tmp_path: Path, query: str, data: str
) -> None:
    assert failed_of(datasets[data], query, right_sql(query), tmp_path) == set()


@pytest.mark.parametrize("mutation", MUTATIONS, ids=str)
def test_wrong_engine_is_caught(
    datasets: dict[str, Events], tmp_path: Path, mutation: Mutation
) -> None:
    found = failed_of(datasets[mutation.data], mutation.query, mutation.sql, tmp_path)
    assert set(mutation.caught_by) <= found
    assert "schema" not in found


@pytest.mark.parametrize("query", ALL)
def test_every_query_has_a_wrong_engine_and_every_invariant_catches_one(query: str) -> None:
    same = [m for m in MUTATIONS if contract(m.query).sql == contract(query).sql]
    assert query in {m.query for m in same}
    caught = {check for m in same for check in m.caught_by}
    needs_directories = {"partition_is_committed"}  # see test_output_files.py
    assert {check.name for check in invariants(query)} - needs_directories <= caught


@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize("query", ALL)
def test_damaged_rows_are_caught(edge: Events, tmp_path: Path, query: str, damage: str) -> None:
    template, check = DAMAGES[damage]
    damaged = template.format(a=CONTRACTS[query].names[0])
    sql = f"WITH right_rows AS ({right_sql(query)} ORDER BY ALL) {damaged}"
    assert check in failed_of(edge, query, sql, tmp_path)


@pytest.mark.parametrize(("query", "left", "right"), LIKE_COLUMNS)
def test_swapped_columns_are_caught(
    datasets: dict[str, Events], tmp_path: Path, query: str, left: str, right: str
) -> None:
    sql = f"SELECT * REPLACE ({right} AS {left}, {left} AS {right}) FROM ({right_sql(query)})"
    found = [failed_of(events, query, sql, tmp_path) for events in datasets.values()]
    assert set().union(*found) & {"difference", "window_is_aligned"}


@pytest.mark.parametrize(
    ("query", "tie", "other_tie", "wrong"),
    [
        ("q9", "bid.dateTime, bid.n", "bid.dateTime, bid.extra DESC", "bid.dateTime DESC"),
        ("q18", "dateTime DESC, n DESC", "dateTime DESC, price DESC", "dateTime"),
        ("q19", "DESC, n)", "DESC, channel DESC)", ", n)"),
    ],
)
def test_without_event_numbers_any_of_the_tied_bids_is_right(
    edge_without_numbers: Events, tmp_path: Path, query: str, tie: str, other_tie: str, wrong: str
) -> None:
    """Nothing says which one it is; but it must be a bid, and the rest must be right."""
    right = right_sql(query)
    assert tie in right

    def found(sql: str) -> set[str]:
        return failed_of(edge_without_numbers, query, sql, tmp_path)

    tied = right.replace(tie, other_tie)
    assert found(tied) == set()
    assert "difference" in found(right.replace(tie, wrong))
    invented = found(f"SELECT * REPLACE (1 AS bidder) FROM ({tied})")
    assert invented & {"row_is_a_bid", "bid_is_on_the_auction"}


def empty_reference_is_refused(events: Events, query: str) -> bool:
    events.connection.execute("CREATE OR REPLACE TABLE reference AS SELECT 1 AS a LIMIT 0")
    return bool(events.connection.execute(reference_check(contract(query)).sql).fetchall())


@pytest.mark.parametrize("query", sorted(set(ALL) - {"q23"}))
def test_empty_reference_is_refused_where_rows_are_due(recorded: Events, query: str) -> None:
    """On ten thousand events every query must show something, or the comparison proves nothing."""
    assert empty_reference_is_refused(recorded, query)
    recorded.connection.execute(f"CREATE OR REPLACE TABLE reference AS {right_sql(query)}")
    assert not recorded.connection.execute(reference_check(contract(query)).sql).fetchall()


def test_empty_q23_is_right_where_bidders_are_no_persons(recorded: Events, tmp_path: Path) -> None:
    """nexmark-flink adds the first person id twice to its bidders."""
    assert failed_of(recorded, "q23", right_sql("q23"), tmp_path) == set()
    assert recorded.connection.execute("FROM reference").fetchall() == []
    assert not empty_reference_is_refused(recorded, "q23")


def test_empty_reference_is_right_for_a_handful_of_events(edge: Events) -> None:
    assert not empty_reference_is_refused(edge, "q2")
    assert empty_reference_is_refused(edge, "q0")
