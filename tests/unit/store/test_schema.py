"""Opening the database: made and migrated, on SQLite and PostgreSQL."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from sqlalchemy.exc import SQLAlchemyError

from nexmark.store import Store, StoreError, connecting, open_store
from nexmark.store.connecting import connect, make_file
from nexmark.store.table_base import Base
from tests.unit.store import earlier_schema
from tests.unit.store.store_builder import night, repetition

FIRST_SCHEMA = (
    "INSERT INTO build VALUES ('sha', '4.3.0', 'pypi', '2026-11-01 00:00:00+00')",
    "INSERT INTO night VALUES ('d/1', 'd', '1', 'e', 'w', 'c', 'sha', 'jobs', 'shape', '{}', '{}',"
    " '[\"q5\"]', 1, 'runs/1', '2026-11-01 00:00:00+00')",
    "INSERT INTO repetition (id, night_id, query, arm, number, status, recorded, cpu_s_per_mevent)"
    " VALUES (7, 'd/1', 'q5', 'candidate', 1, 'ok', '2026-11-01 00:00:00+00', 9.5)",
    "INSERT INTO sample_series (id, repetition_id, host, path, interval_s, readings, series)"
    " VALUES (1, 7, 'nexmark02', 'samples', 1.0, 0, '')",
    "INSERT INTO verdict (night_id, query, metric, gate_version, value, reason, bound, repetitions,"
    " judged, id) VALUES ('d/1', 'q5', 'm', 1, 'OK', 'r', 1.15, 1, '2026-11-01 00:00:00+00', 1)",
    "INSERT INTO acceptance VALUES (1, 'e', 'w', 'c', 'q5', 'd/1', 'ada', 'right',"
    " '2026-11-02 00:00:00+00')",
)
"""Rows as the first schema had them."""
COMPARED = {"render_as_batch": True, "version_table": "nexmark_version"}


@pytest.mark.parametrize("revision", earlier_schema.REVISIONS)
def test_a_database_of_every_earlier_revision_becomes_what_the_rows_say(
    url: str, revision: str
) -> None:
    engine = connect(url)
    make_file(engine)
    with engine.connect() as connection:
        earlier_schema.make(connection, revision)
        connection.commit()
    open_store(url).close()
    with engine.connect() as connection:
        context = MigrationContext.configure(connection, opts=COMPARED)
        assert compare_metadata(context, Base.metadata) == []
    engine.dispose()


def test_a_new_database_is_what_the_rows_say(store: Store, database: str) -> None:
    with connect(database).connect() as connection:
        context = MigrationContext.configure(connection, opts=COMPARED)
        assert compare_metadata(context, Base.metadata) == []


def test_the_package_knows_its_newest_migration() -> None:
    assert earlier_schema.REVISIONS[-1] == connecting.SCHEMA


def test_what_was_recorded_is_there_after_a_restart(url: str) -> None:
    with open_store(url) as first:
        first.record_night(night())
    with open_store(url) as second:
        assert [x.id for x in second.nights()] == [night().run]


def test_threads_may_share_a_store(store: Store) -> None:
    store.record_night(night())
    with ThreadPoolExecutor(4) as pool:
        list(
            pool.map(
                lambda n: store.record_repetition(repetition(night().run, "q5", n)), range(1, 21)
            )
        )
    assert len(store.repetitions(night().run)) == 20


def test_a_transaction_that_fails_leaves_nothing(store: Store) -> None:
    store.record_night(night())
    broken = repetition(night().run, "q5", result={"plan": {"text": "t", "skeleton": "s"}})
    with pytest.raises(KeyError):
        store.record_repetition(broken)
    assert store.repetitions(night().run) == []
    store.record_repetition(repetition(night().run, "q5"))


class TestMigration:
    """What the first schema held is there in the second, and means the same."""

    @pytest.fixture
    def migrated(self, url: str) -> Iterator[Store]:
        engine = connect(url)
        make_file(engine)
        with engine.connect() as connection:
            earlier_schema.make(connection, "0001")
            for statement in FIRST_SCHEMA:
                connection.exec_driver_sql(statement)
            connection.commit()
        engine.dispose()
        with open_store(url) as store:
            yield store

    def test_a_night_is_one_of_bounds(self, migrated: Store) -> None:
        night = migrated.night("d/1")
        assert (night.mode, night.baselines, night.grade) == ("bounds", None, None)
        assert night.candidate_conf is None

    def test_repetitions_keep_their_samples(self, migrated: Store) -> None:
        (row,) = migrated.repetitions("d/1")
        assert (row.stage, row.number, row.position, row.cpu_s_per_mevent) == (1, 1, None, 9.5)
        assert [x.host for x in migrated.sample_series(row.id)] == ["nexmark02"]

    def test_a_verdict_keeps_its_bound_and_decides(self, migrated: Store) -> None:
        (row,) = migrated.verdicts("d/1")
        assert (row.mode, row.decides, row.bound, row.value) == ("bounds", True, 1.15, "OK")
        assert (row.drift_slower, row.drift_faster, row.lo, row.baseline_build) == (
            0,
            0,
            None,
            None,
        )

    def test_an_acceptance_is_of_the_build_of_its_night_and_never_expires(
        self, migrated: Store
    ) -> None:
        row = migrated.accepted("e", "w", "c", datetime(2030, 1, 1, tzinfo=UTC))["q5"]
        assert (row.build_id, row.metric, row.expires) == ("sha", "cpu_s_per_mevent", None)
        assert row.accepted == datetime(2026, 11, 2, tzinfo=UTC)

    def test_acceptances_are_still_only_ever_added(self, migrated: Store, url: str) -> None:
        for change in ("UPDATE acceptance SET who='eve'", "DELETE FROM acceptance"):
            with connect(url).connect() as connection, pytest.raises(SQLAlchemyError, match="only"):
                connection.exec_driver_sql(change)

    def test_a_second_stage_has_its_own_numbers(self, migrated: Store) -> None:
        migrated.record_night(night())
        for stage in (1, 2):
            migrated.record_repetition(repetition(night().run, "q5", stage=stage))
        assert [x.stage for x in migrated.repetitions(night().run)] == [1, 2]


def test_a_migration_that_fails_leaves_the_database_as_it_was(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = connect(url)
    make_file(engine)
    with engine.connect() as connection:
        earlier_schema.make(connection, "0001")
        for statement in FIRST_SCHEMA:
            connection.exec_driver_sql(statement)
        connection.exec_driver_sql("CREATE TABLE self_test (in_the_way INTEGER)")
        connection.commit()
    with pytest.raises(StoreError, match="self_test"):
        open_store(url)
    with engine.begin() as connection:
        connection.exec_driver_sql("DROP TABLE self_test")
        assert connection.exec_driver_sql("SELECT number FROM repetition").scalar() == 1
        assert connection.exec_driver_sql("SELECT version_num FROM alembic_version").scalar() == (
            "0001"
        )
    open_store(url).close()
