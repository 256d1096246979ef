"""SQLAlchemy reaches the tables of an open DuckDB, and leaves nothing open behind it."""

from __future__ import annotations

from collections.abc import Iterator

import duckdb
import pytest
import sqlalchemy as sa
from duckdb import DuckDBPyConnection

from nexmark.expectations import duckdb_dialect
from nexmark.expectations.duckdb_dialect import shared


@pytest.fixture
def database() -> Iterator[DuckDBPyConnection]:
    with duckdb.connect() as connection:
        connection.execute("CREATE TABLE t AS SELECT 1::BIGINT AS b, 2::DECIMAL(23,3) AS a")
        connection.execute("CREATE VIEW v AS SELECT b FROM t")
        yield connection


def test_tables_views_and_types_are_those_of_duckdb(database: DuckDBPyConnection) -> None:
    with shared(database) as url:
        inspector = sa.inspect(sa.create_engine(url))
        columns = [
            (each["name"], each["type"].get_col_spec()) for each in inspector.get_columns("t")
        ]
        assert columns == [("b", "BIGINT"), ("a", "DECIMAL(23,3)")]
        assert sorted(inspector.get_table_names()) == ["t", "v"]
        assert [inspector.has_table(name) for name in ("t", "v", "w")] == [True, True, False]
        assert inspector.get_schema_names() == ["main"]


def test_rows_stay_after_the_connection_is_given_back(database: DuckDBPyConnection) -> None:
    """Great Expectations reads them then."""
    with shared(database) as url:
        with sa.create_engine(url).connect() as connection:
            rows = connection.execute(sa.text("SELECT b FROM t"))
        assert rows.fetchall() == [(1,)]


def test_two_databases_are_told_apart_and_closed_for_others(database: DuckDBPyConnection) -> None:
    with duckdb.connect() as other:
        with shared(database), shared(other) as url:
            engine = sa.create_engine(url)
            assert not sa.inspect(engine).has_table("t")
            (cursor,) = duckdb_dialect._open[engine.url.host or ""].cursors
        assert duckdb_dialect._open == {}
        with pytest.raises(duckdb.ConnectionException, match="closed"):
            cursor.execute("SELECT 1")
        assert other.execute("SELECT 1").fetchall() == [(1,)]
