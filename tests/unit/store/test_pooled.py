"""Behind PgBouncer, in transaction mode: a session of the server is another client's soon after."""

from __future__ import annotations

from collections.abc import Iterator

import psycopg
import pytest
from sqlalchemy import Engine, text

from nexmark.store import Store, StoreError, open_store
from nexmark.store.connecting import connect, snapshot, writing
from tests.unit.store.postgresql import Postgresql
from tests.unit.store.store_builder import night, record

RUN = night().run
#: What another client would notice: a setting, a lock, a statement, a table, a channel.
LEFT = {
    "settings": "SELECT name || '=' || setting FROM pg_settings WHERE source = 'session'"
    " AND name NOT IN ('application_name', 'client_encoding', 'DateStyle', 'TimeZone',"
    " 'standard_conforming_strings')",  # PgBouncer sets these for each client
    "locks": "SELECT objid::text FROM pg_locks WHERE locktype = 'advisory'",
    "statements": "SELECT name FROM pg_prepared_statements",
    "tables": "SELECT nspname FROM pg_namespace WHERE nspname LIKE 'pg_temp%'",
    "channels": "SELECT pg_listening_channels()",
}


@pytest.fixture
def pooled(postgresql: Postgresql, bouncer: str) -> Iterator[str]:
    with postgresql.database() as url:
        yield url + bouncer


def use(store: Store) -> None:
    """More transactions, of more connections, than any statement stays unprepared."""
    for number in range(1, 9):
        record(store, night(number))
    assert [x.query for x in store.repetitions(RUN)] == ["q0", "q5"]


def test_many_nights_are_recorded_by_clients_that_share_the_sessions(pooled: str) -> None:
    with open_store(pooled) as first, open_store(pooled) as second:
        for store in (first, second, first, second):
            use(store)
        assert len(first.nights()) == 8


def test_nothing_is_left_in_a_session(pooled: str) -> None:
    with open_store(pooled) as store:
        use(store)
        found = {}
        for what, query in LEFT.items():
            with psycopg.connect(pooled, prepare_threshold=None) as other:
                found[what] = [str(row[0]) for _ in range(4) for row in other.execute(query)]
                other.rollback()
    assert found == {what: [] for what in LEFT}


@pytest.mark.parametrize("through", ["", "a pool"])
def test_a_writer_waits_for_a_writer_no_longer_than_it_may(
    postgresql: Postgresql, request: pytest.FixtureRequest, through: str
) -> None:
    end = request.getfixturevalue("bouncer") if through else ""
    with postgresql.database() as url:
        open_store(url).close()
        with (
            writing(connect(url + end)).begin(),
            open_store(url + end, patience_s=0.2) as other,
            pytest.raises(StoreError, match="database is locked by session"),
        ):
            other.record_night(night())


SETTINGS = (
    "SELECT current_setting('DateStyle'), current_setting('TimeZone'),"
    " current_setting('client_encoding'), current_setting('transaction_isolation'),"
    " current_setting('lock_timeout')"
)


@pytest.mark.parametrize("through", ["", "a pool"])
@pytest.mark.parametrize(
    "setting",
    [
        "DateStyle = 'German'",
        "DateStyle = 'SQL, DMY'",
        "TimeZone = 'Pacific/Chatham'",
        "client_encoding = 'LATIN1'",
        "default_transaction_isolation = 'serializable'",
        "bytea_output = 'escape'",
        "IntervalStyle = 'sql_standard'",
    ],
)
def test_what_a_database_prefers_changes_nothing(
    postgresql: Postgresql, request: pytest.FixtureRequest, setting: str, through: str
) -> None:
    """Moments and letters are read as they were written."""
    end = request.getfixturevalue("bouncer") if through else ""
    with postgresql.database() as url:
        name = url.partition("@/")[2].partition("?")[0]
        postgresql.execute(f"ALTER DATABASE {name} SET {setting}")
        with open_store(url + end) as store:
            for number in (1, 2):
                record(store, night(number, engine="spärk-→"))
            assert [x.engine for x in store.nights()] == ["spärk-→"] * 2
            assert [x.started for x in store.nights()] == [night(2).started, night(1).started]
        engine = connect(url + end)
        assert settings(engine) == ["ISO, MDY", "UTC", "UTF8", "read committed", "30s"]
        assert settings(snapshot(engine))[3] == "repeatable read"
        engine.dispose()


def settings(engine: Engine) -> list[str]:
    with engine.begin() as connection:
        return list(connection.execute(text(SETTINGS)).one())


@pytest.mark.parametrize("encoding", ["SQL_ASCII", "LATIN1", "EUC_JP"])
@pytest.mark.parametrize("create", [True, False])
def test_a_database_that_cannot_keep_every_letter_is_refused_when_it_is_opened(
    postgresql: Postgresql, encoding: str, create: bool
) -> None:
    with (
        postgresql.database(encoding=encoding) as url,
        pytest.raises(StoreError, match=f"its encoding is {encoding}, .*ENCODING 'UTF8'") as found,
    ):
        open_store(url, create=create)
    assert "\n" not in str(found.value)
