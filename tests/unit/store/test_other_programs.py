"""A database that another program has tables in: none of them is changed, or taken for ours."""

from __future__ import annotations

import pytest
from sqlalchemy import inspect

from nexmark.store import StoreError, open_store
from nexmark.store.connecting import SCHEMA, connect, make_file
from nexmark.store.table_base import Base
from tests.unit.store.postgresql import Postgresql
from tests.unit.store.store_builder import night

THEIRS = "CREATE TABLE alembic_version (version_num VARCHAR(32) NOT NULL PRIMARY KEY)"
#: Of another program: as Airflow has them, as a newer package of ours would have, and as ours.
NUMBERS = ("e42d9fcd10d9", "0099", SCHEMA, "0003")


def execute(url: str, *statements: str) -> None:
    engine = connect(url)
    make_file(engine)
    with engine.begin() as connection:
        for statement in statements:
            connection.exec_driver_sql(statement)
    engine.dispose()


def values(url: str, query: str) -> list[str]:
    engine = connect(url)
    with engine.begin() as connection:
        found = [str(row[0]) for row in connection.exec_driver_sql(query)]
    engine.dispose()
    return found


def tables(url: str) -> set[str]:
    engine = connect(url)
    with engine.connect() as connection:
        found = set(inspect(connection).get_table_names())
    engine.dispose()
    return found


@pytest.mark.parametrize("number", NUMBERS)
def test_the_version_table_of_another_program_is_left_alone(url: str, number: str) -> None:
    execute(url, THEIRS, f"INSERT INTO alembic_version VALUES ('{number}')")
    for _ in range(2):
        with open_store(url) as store:
            store.record_night(night())
    assert values(url, "SELECT version_num FROM alembic_version") == [number]
    assert values(url, "SELECT version_num FROM nexmark_version") == [SCHEMA]


def test_it_is_no_database_of_ours(url: str) -> None:
    """So a command that only reads makes nothing in it."""
    execute(url, THEIRS, f"INSERT INTO alembic_version VALUES ('{SCHEMA}')")
    with pytest.raises(StoreError, match="there are no results yet"):
        open_store(url, create=False)
    assert tables(url) == {"alembic_version"}


def test_another_program_can_make_its_version_table_beside_ours(url: str) -> None:
    open_store(url).close()
    execute(url, THEIRS, "INSERT INTO alembic_version VALUES ('ffff')")
    with open_store(url) as store:
        assert store.nights() == []
    assert values(url, "SELECT version_num FROM alembic_version") == ["ffff"]


@pytest.mark.parametrize("name", ["build", "night", "experiment", "nexmark_version"])
def test_a_table_with_the_name_of_one_of_ours_is_one_line(url: str, name: str) -> None:
    """It is not adopted: rows would go where another program reads, or columns would be missing."""
    execute(url, f"CREATE TABLE {name} (id INTEGER, theirs INTEGER)")
    with pytest.raises(StoreError, match=f"table {name} of another program") as found:
        open_store(url)
    assert "\n" not in str(found.value)
    assert tables(url) == {name}


def test_several_are_named_together_and_a_view_counts(url: str) -> None:
    execute(url, "CREATE TABLE part (x INTEGER)", "CREATE VIEW plan AS SELECT * FROM part")
    with pytest.raises(StoreError, match="tables part, plan of another program"):
        open_store(url)


def test_another_schema_of_the_same_database_is_ours_to_have(postgresql: Postgresql) -> None:
    """A search path decides where the tables go; those elsewhere are no concern of ours."""
    with postgresql.database() as url:
        execute(url, "CREATE TABLE public.build (x INTEGER)", "CREATE SCHEMA ours")
        path = "&options=-csearch_path%3Dours,public"
        with open_store(url + path) as store:
            store.record_night(night())
        assert {x.name for x in Base.metadata.sorted_tables} < tables(url + path)
        assert values(url, "SELECT count(*) FROM public.build") == ["0"]
