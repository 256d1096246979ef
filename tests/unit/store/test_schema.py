"""Opening the database: made and migrated, on SQLite and PostgreSQL."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from alembic.operations import Operations
from sqlalchemy import Column, String, Text
from sqlalchemy.exc import SQLAlchemyError

from nexmark.store import Store, StoreError, connecting, migrations, open_store, versions
from nexmark.store.connecting import connect, make_file
from nexmark.store.table_base import Base
from tests.unit.store import earlier_schema
from tests.unit.store.store_builder import measurement, night, repetition

RELEASED = connecting.SCHEMA
"""The schema of the package, which a test may change."""
COMPARED = {"render_as_batch": True, "version_table": "nexmark_version"}


@pytest.fixture
def first(url: str) -> str:
    """The URL of a database that the first release has made."""
    execute(url)
    return url


def execute(url: str, *statements: str) -> None:
    """Make the schema of the first release, then execute statements."""
    engine = connect(url)
    make_file(engine)
    with engine.begin() as connection:
        earlier_schema.make(connection)
        for statement in statements:
            connection.exec_driver_sql(statement)
    engine.dispose()


@pytest.mark.parametrize("number", [versions.FIRST, *migrations.CHANGES])
def test_a_database_of_each_earlier_version_becomes_what_the_rows_say(
    url: str, number: str
) -> None:
    """What it had recorded is there. If a row of today has another column, a migration lacks."""
    of_build = "('sha-430', '4.3.0', 'pypi:4.3.0', '2026-11-21')"
    execute(url, f"INSERT INTO build (id, version, source, first_seen) VALUES {of_build}")
    engine = connect(url)
    with engine.begin() as connection:
        migrations.migrate(connection, versions.FIRST, number)
    with open_store(url) as store:
        build = store.build("sha-430")
        assert (build.source, build.revision) == ("pypi:4.3.0", None)
    with engine.connect() as connection:
        context = MigrationContext.configure(connection, opts=COMPARED)
        assert compare_metadata(context, Base.metadata) == []
    engine.dispose()


def test_a_new_database_is_what_the_rows_say(store: Store, database: str) -> None:
    with connect(database).connect() as connection:
        context = MigrationContext.configure(connection, opts=COMPARED)
        assert compare_metadata(context, Base.metadata) == []


def test_the_package_knows_its_newest_migration() -> None:
    assert max(migrations.CHANGES, default=versions.FIRST) == connecting.SCHEMA


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


def test_scheduled_nights_of_earlier_versions_are_known_as_scheduled(url: str) -> None:
    columns = "id, dag_id, run_id, engine, workload, cluster, build_id, jobs, shape, workload_spec"
    more = "cluster_spec, queries, repetitions, directory, started"
    values_of = (
        "'d/{0}', 'd', '{0}', 'e', 'w', 'c', 'b', 'j', 's', '{{}}', '{{}}', '[]', 1, '/d', "
        "'2026-11-01 04:00:00'"
    )
    runs = ("scheduled__2026-11-01", "scheduledXX", "manual__scheduled__1")
    execute(
        url,
        "INSERT INTO build (id, version, source, first_seen) "
        "VALUES ('b', '4.3.0', 'pypi:4.3.0', '2026-11-01 04:00:00')",
        *(
            f"INSERT INTO night ({columns}, {more}) VALUES ({values_of.format(run)})"
            for run in runs
        ),
    )
    with open_store(url) as store:
        known = {night.run_id: night.started_by for night in store.nights()}
    assert known == {runs[0]: "scheduled", runs[1]: None, runs[2]: None}


class TestMigration:
    """A later schema: what the first one held is still there, or nothing has changed."""

    NUMBER = f"{int(RELEASED) + 1:04}"

    @pytest.fixture
    def later(self, monkeypatch: pytest.MonkeyPatch) -> list[str]:
        """A package with one more change: a column, and the statements that the test appends."""
        more: list[str] = []

        def change(op: Operations) -> None:
            # SQLite replaces the table: rows that refer to it must not go with it.
            with op.batch_alter_table("night") as table:
                table.add_column(Column("moon", String(10), nullable=False, server_default="full"))
                table.alter_column("grade_reason", existing_type=Text, nullable=True)
            for statement in more:
                op.execute(statement)

        monkeypatch.setitem(migrations.CHANGES, self.NUMBER, change)
        monkeypatch.setattr(connecting, "SCHEMA", self.NUMBER)
        return more

    @pytest.fixture
    def recorded(self, first: str) -> str:
        with open_store(first) as store:
            store.record_night(night())
            store.record_repetition(repetition(night().run, "q5", measurement=measurement(9.5)))
        return first

    def test_rows_and_what_refers_to_them_stay(self, recorded: str, later: list[str]) -> None:
        for _ in range(2):
            with open_store(recorded) as store:
                assert [x.cpu_s_per_mevent for x in store.repetitions(night().run)] == [9.5]
        assert values(recorded, "SELECT moon FROM night") == ["full"]
        assert values(recorded, "SELECT version_num FROM nexmark_version") == [self.NUMBER]

    def test_a_change_that_fails_leaves_the_database_as_it_was(
        self, recorded: str, later: list[str], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        later.append("INSERT INTO nowhere VALUES (1)")
        with pytest.raises(StoreError, match="nowhere"):
            open_store(recorded)
        assert values(recorded, "SELECT version_num FROM nexmark_version") == [RELEASED]
        with pytest.raises(SQLAlchemyError, match="moon"):
            values(recorded, "SELECT moon FROM night")
        later.clear()
        open_store(recorded).close()
        assert values(recorded, "SELECT moon FROM night") == ["full"]


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE nexmark_version SET version_num = '0012'",
        "UPDATE nexmark_version SET version_num = '0001'",
        "DROP TABLE nexmark_version",
    ],
)
@pytest.mark.parametrize("create", [True, False])
def test_a_database_of_before_the_first_release_is_refused_in_one_line(
    url: str, statement: str, create: bool
) -> None:
    execute(url, statement)
    with pytest.raises(StoreError, match="made before the first release") as caught:
        open_store(url, create=create)
    assert "set NEXMARK_HOME to a new directory or NEXMARK_DB" in str(caught.value)
    assert "\n" not in str(caught.value)
    assert values(url, "SELECT count(*) FROM night") == ["0"], "it is as it was"


def values(url: str, query: str) -> list[str]:
    engine = connect(url)
    try:
        with engine.connect() as connection:
            return [str(row[0]) for row in connection.exec_driver_sql(query)]
    finally:
        engine.dispose()
