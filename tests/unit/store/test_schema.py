"""Opening the database: made, migrated, shared and refused."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import create_engine

from nexmark.store import Store, StoreError, open_store, schema
from nexmark.store.models import Base
from tests.unit.store.store_builder import night, repetition

MIGRATIONS = Path(schema.__file__).with_name("migrations")

WRITER = """
import sys
sys.path.insert(0, sys.argv[1])
from nexmark.store import open_store
from tests.unit.store.store_builder import night, repetition
number = int(sys.argv[3])
with open_store(sys.argv[2]) as store:
    store.record_night(night())
    for repeat in range(3):
        for query in ("q0", "q5"):
            store.record_repetition(repetition(night().run, query, number))
"""


def test_the_migrations_make_what_the_models_say(store: Store, url: str) -> None:
    with create_engine(url).connect() as connection:
        context = MigrationContext.configure(connection, opts={"render_as_batch": True})
        assert compare_metadata(context, Base.metadata) == []


def test_the_package_knows_its_newest_migration() -> None:
    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS))
    assert ScriptDirectory.from_config(config).get_current_head() == schema.SCHEMA


def test_what_was_recorded_is_there_after_a_restart(url: str) -> None:
    with open_store(url) as first:
        first.record_night(night())
    with open_store(url) as second:
        assert [x.id for x in second.nights()] == [night().run]


def test_many_processes_open_and_write_at_once(url: str) -> None:
    """None is turned away, none loses or doubles a row, the database is made once."""
    command = [sys.executable, "-c", WRITER, str(Path(__file__).parent), url]
    writers = [subprocess.Popen([*command, str(n)], stderr=subprocess.PIPE) for n in range(1, 4)]
    errors = [writer.communicate(timeout=60)[1] for writer in writers]
    assert [writer.returncode for writer in writers] == [0] * 3, errors
    with open_store(url) as store:
        rows = [(x.query, x.number) for x in store.repetitions(night().run)]
    assert rows == [(query, number) for query in ("q0", "q5") for number in range(1, 4)]


def test_threads_may_share_a_store(store: Store) -> None:
    store.record_night(night())
    with ThreadPoolExecutor(4) as pool:
        list(
            pool.map(
                lambda n: store.record_repetition(repetition(night().run, "q5", n)), range(1, 21)
            )
        )
    assert len(store.repetitions(night().run)) == 20


def test_readers_do_not_wait_for_a_writer(store: Store, url: str) -> None:
    store.record_night(night())
    writer = sqlite3.connect(url.removeprefix("sqlite:///"), isolation_level=None)
    writer.execute("BEGIN IMMEDIATE")
    assert [x.id for x in store.nights()] == [night().run]
    writer.close()


def test_a_transaction_that_fails_leaves_nothing(store: Store) -> None:
    store.record_night(night())
    broken = repetition(night().run, "q5", result={"plan": {"text": "t", "skeleton": "s"}})
    with pytest.raises(KeyError):
        store.record_repetition(broken)
    assert store.repetitions(night().run) == []
    store.record_repetition(repetition(night().run, "q5"))


class TestRefusals:
    def test_a_newer_schema(self, url: str) -> None:
        open_store(url).close()
        with sqlite3.connect(url.removeprefix("sqlite:///")) as connection:
            connection.execute("UPDATE alembic_version SET version_num = '0099'")
        with pytest.raises(StoreError, match=r"its schema 0099 is newer .* update the package"):
            open_store(url)

    def test_a_file_that_is_no_database(self, tmp_path: Path) -> None:
        (tmp_path / "results.db").write_text("not a database, but quite some text" * 99)
        with pytest.raises(StoreError, match="file is not a database"):
            open_store(f"sqlite:///{tmp_path / 'results.db'}")

    def test_a_directory_that_cannot_be_made(self, tmp_path: Path) -> None:
        (tmp_path / "file").write_text("")
        with pytest.raises(StoreError, match=r"Not a directory|File exists"):
            open_store(f"sqlite:///{tmp_path / 'file' / 'results.db'}")

    @pytest.mark.parametrize("url", ["results.db", "oracel://x/y", "://"])
    def test_a_url_that_is_none(self, url: str) -> None:
        with pytest.raises(StoreError, match="set NEXMARK_DB to a URL as sqlite:"):
            open_store(url)

    def test_a_database_that_went_away_is_one_line(self, store: Store, url: str) -> None:
        with sqlite3.connect(url.removeprefix("sqlite:///")) as connection:
            connection.execute("DROP TABLE sample_series")
        with pytest.raises(StoreError, match="no such table: sample_series") as caught:
            store.sample_series(1)
        assert "\n" not in str(caught.value)
