"""Several writers, killed writers, servers that come back, databases that are not there."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from sqlalchemy.exc import IntegrityError

from nexmark.store import Store, StoreError, connecting, open_store
from nexmark.store.connecting import connect, writing
from tests.unit.store.postgresql import Postgresql
from tests.unit.store.store_builder import night, record, repetition

RUN = night().run


def processes(what: str, url: str, count: int = 1) -> list[subprocess.Popen[str]]:
    """Processes that set about it at the same moment."""
    command = [sys.executable, "-m", "tests.unit.store.writers", what, url]
    pipes = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
    started = [
        subprocess.Popen([*command, str(n)], **pipes, text=True, cwd=Path(__file__).parents[3])
        for n in range(1, count + 1)
    ]
    for one in started:
        assert one.stdout is not None
        assert one.stdout.readline() == "ready\n"
    for one in started:
        assert one.stdin is not None
        one.stdin.write("go\n")
        one.stdin.flush()
    return started


class TestWriters:
    def test_many_processes_open_and_write_at_once(self, url: str) -> None:
        """None is turned away, none loses or doubles a row, the database is made once."""
        writers = processes("write", url, 3)
        errors = [writer.communicate(timeout=120)[1] for writer in writers]
        assert [writer.returncode for writer in writers] == [0] * 3, errors
        with open_store(url) as store:
            rows = store.repetitions(RUN)
            assert [len(store.sample_series(row.id)) for row in rows] == [1] * len(rows)
        assert [(x.query, x.number) for x in rows] == [("q0", 9), ("q5", 1), ("q5", 2), ("q5", 3)]

    def test_a_writer_killed_in_the_middle_leaves_nothing_half_and_nobody_waiting(
        self, store: Store, database: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        record(store, night(queries=["q0"]))
        (writer,) = processes("stop_halfway", database)
        try:
            assert writer.stdout is not None
            assert writer.stdout.readline() == "halfway\n"
            assert [x.query for x in store.repetitions(RUN)] == ["q0"]
        finally:
            writer.kill()
            writer.communicate()
        monkeypatch.setattr(connecting, "BUSY_TIMEOUT_S", 5)
        with open_store(database) as other:
            other.record_repetition(repetition(RUN, "q5", 2))
        assert [(x.query, x.number) for x in store.repetitions(RUN)] == [("q0", 1), ("q5", 2)]

    def test_readers_do_not_wait_for_a_writer(self, store: Store, database: str) -> None:
        store.record_night(night())
        with writing(connect(database)).begin() as writer:
            writer.exec_driver_sql("UPDATE night SET engine = 'x'")
            assert [x.engine for x in store.nights()] == ["spark-4.3.0"]

    def test_a_database_that_stays_locked_is_one_line(
        self, store: Store, database: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        store.record_night(night())
        monkeypatch.setattr(connecting, "BUSY_TIMEOUT_S", 0.2)
        with (
            writing(connect(database)).begin(),
            open_store(database) as other,
            pytest.raises(StoreError, match=r"database is locked|lock timeout") as caught,
        ):
            other.record_night(night(2))
        assert "\n" not in str(caught.value)
        store.record_night(night(2))


class TestServer:
    """What only a server can do: go away, come back, ask for a password."""

    def test_a_restarted_server_is_used_again(
        self, postgresql: Postgresql, empty_postgresql: str
    ) -> None:
        with postgresql.database(empty_postgresql) as url, open_store(url) as store:
            record(store, night(1))
            postgresql.stop("fast")
            with pytest.raises(StoreError, match=r"No such file or directory|refused|failed"):
                store.nights()
            postgresql.start()
            store.record_night(night(2))
            assert len(store.nights()) == 2

    def test_what_was_recorded_survives_a_crash_of_the_server(self, postgresql: Postgresql) -> None:
        with postgresql.database() as url:
            postgresql.stop("fast")
            postgresql.start(fsync="on", synchronous_commit="on", full_page_writes="on")
            with open_store(url) as store:
                record(store, night())
            postgresql.stop("immediate")
            postgresql.start()
            with open_store(url) as store:
                rows = [(x.query, x.status) for x in store.repetitions(RUN)]
        assert rows == [("q0", "ok"), ("q5", "ok")]

    @pytest.mark.parametrize("scheme", ["postgresql", "postgres", "postgresql+psycopg"])
    def test_one_setting_names_it(
        self, postgresql: Postgresql, empty_postgresql: str, scheme: str
    ) -> None:
        with (
            postgresql.database(empty_postgresql) as url,
            open_store(scheme + url.removeprefix("postgresql")) as store,
        ):
            assert store.nights() == []

    @pytest.mark.parametrize(
        "url",
        [
            "postgresql://ada:s3cr3t-word@127.0.0.1:9/results",
            "postgresql://ada@127.0.0.1:9/results?password=s3cr3t-word",
            "postgresql+psycopg7://ada:s3cr3t-word@127.0.0.1:9/results",
            "postgresql://ada:s3cr3t-word@127.0.0.1:nine/results",
            "postgresql://ada:s3cr3t-word@127.0.0.1:9/results?no_such_option=1",
        ],
    )
    def test_a_server_that_cannot_be_reached_is_one_line_without_the_password(
        self, url: str
    ) -> None:
        with pytest.raises(StoreError, match=r"(check|set) NEXMARK_DB") as caught:
            open_store(url)
        assert "\n" not in str(caught.value)
        assert "s3cr3t" not in str(caught.value)
        assert "127.0.0.1" in str(caught.value)


class TestRefusals:
    def test_a_newer_schema(self, url: str) -> None:
        open_store(url).close()
        with connect(url).begin() as connection:
            connection.exec_driver_sql("UPDATE nexmark_version SET version_num = '0099'")
        with pytest.raises(StoreError, match=r"its schema 0099 is newer .* update the package"):
            open_store(url)

    def test_a_database_that_went_away_is_one_line(self, url: str) -> None:
        with open_store(url) as store:
            with connect(url).begin() as connection:
                connection.exec_driver_sql("DROP TABLE sample_series")
            with pytest.raises(StoreError, match="sample_series") as caught:
                store.sample_series(1)
        assert "\n" not in str(caught.value)

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

    def test_foreign_keys_hold(self, store: Store, database: str) -> None:
        """Also in SQLite, and also after a migration, which does without them."""
        insert = (
            'INSERT INTO canary (id, night_id, host, "group", moment, metric, taken)'
            " VALUES (1, 'no', '', '', 'before', 'm', '2026-11-01 00:00:00+00')"
        )
        with (
            connect(database).connect() as connection,
            pytest.raises(IntegrityError, match=r"(?i)foreign key"),
        ):
            connection.exec_driver_sql(insert)


def test_a_letter_that_no_database_can_keep_is_one_line(store: Store) -> None:
    """Half of a pair of UTF-16, as JSON may have it: no traceback, and nothing half written."""
    store.record_night(night())
    with pytest.raises(StoreError, match=r"can't encode|surrogates not allowed") as caught:
        store.record_repetition(repetition(RUN, "q5", failed="\udce4"))
    assert "\n" not in str(caught.value)
    assert store.repetitions(RUN) == []
