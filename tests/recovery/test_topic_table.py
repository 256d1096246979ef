"""The final table from the records of a topic, whatever a replayed batch has written again."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import duckdb

from nexmark.recovery.recovery_run import table_of


def made(tmp_path: Path, query: str, rows: list[dict[str, Any]]) -> tuple[int, list[Any]]:
    target = tmp_path / query
    repeated = table_of((json.dumps(row) for row in rows), query, target)
    with duckdb.connect() as database:
        found = database.execute(f"FROM '{target}/*.parquet' ORDER BY ALL").fetchall()
    assert [path.suffix for path in target.iterdir()] == [".parquet"]
    return repeated, found


def bid(bidder: int, price: int) -> dict[str, Any]:
    text = {"channel": "c", "url": "u", "extra": "e", "dateTime": "2015-07-15T00:00:00.000Z"}
    return {"auction": 1, "bidder": bidder, "price": price, **text}


def test_later_rows_of_a_key_win_and_a_row_that_came_again_is_counted(tmp_path: Path) -> None:
    rows = [bid(1, 12), bid(2, 7), bid(1, 10), bid(2, 7), bid(1, 10), bid(3, 1)]
    repeated, found = made(tmp_path, "q18", rows)
    assert repeated == 2
    assert [row[1:3] for row in found] == [(1, 10), (2, 7), (3, 1)]


def test_without_a_key_equal_rows_count_once(tmp_path: Path) -> None:
    first = {"bidder": 1, "bid_count": 2, "starttime": "2015-07-15T00:00:00.000Z"}
    first |= {"endtime": "2015-07-15T00:00:10.500Z"}
    repeated, found = made(tmp_path, "q11", [first, first | {"bidder": 5}, first])
    assert repeated == 1
    assert [row[0] for row in found] == [1, 5]
    assert str(found[0][3]) == "2015-07-15 00:00:10.500000"
