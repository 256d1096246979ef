"""A database that is not there, or that somebody else keeps: one line, and nothing is made."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from nexmark.cli.app import main
from nexmark.store import Store, StoreError, connecting, open_store
from nexmark.store.connecting import connect, writing
from tests.unit.store.store_builder import night, record
from tests.waiting import wait_for

RUN = night().run
READING = (
    ["acks"],
    ["history", "--query", "q5"],
    ["export", "--out", "out"],
    ["nights"],
    ["show", "--run", "x"],
    ["accept", "--run", "x", "--reason", "y"],
    ["withdraw", "--id", "1", "--reason", "y"],
)

KEEPS = {
    "all of it": "PRAGMA locking_mode=EXCLUSIVE; BEGIN EXCLUSIVE; UPDATE night SET engine='x';",
    "the right to write": "BEGIN IMMEDIATE;",
}
KEEPER = """
import fcntl, os, sqlite3, sys
connection = sqlite3.connect(sys.argv[1], isolation_level=None)
for statement in sys.argv[2].split(";"):
    connection.execute(statement)
if not sys.argv[2]:
    fcntl.flock(os.open(os.path.dirname(sys.argv[1]), os.O_RDONLY), fcntl.LOCK_EX)
print("kept", flush=True)
sys.stdin.read()
"""


@contextmanager
def keeper(url: str, statements: str) -> Iterator[int]:
    """Run another process that keeps an SQLite database; its id."""
    command = [sys.executable, "-c", KEEPER, url.removeprefix("sqlite:///"), statements]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen(command, text=True, **pipes) as process:  # type: ignore[call-overload]
        assert process.stdout.readline() == "kept\n"
        yield process.pid
        process.kill()


def _waits_for_a_lock(pid: int) -> bool:
    locks = map(str.split, Path("/proc/locks").read_text().splitlines())
    return any(words[1] == "->" and words[5] == str(pid) for words in locks)


class TestNotThere:
    @pytest.mark.parametrize("arguments", READING, ids=lambda x: x[0])
    def test_a_command_says_what_to_run_and_makes_nothing(
        self, arguments: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        url = f"sqlite:///{tmp_path / 'home' / 'results.db'}"
        assert main([*arguments, "--db", url]) == 2
        captured = capsys.readouterr()
        assert (captured.out, captured.err.count("\n")) == ("", 1)
        assert "there are no results yet; start a night with `nexmark run`" in captured.err
        assert list(tmp_path.iterdir()) == []

    def test_so_does_the_report(self, url: str, capsys: pytest.CaptureFixture[str]) -> None:
        """Also on a server, where the database is there and empty."""
        assert main(["report", "--run", "x", "--db", url]) == 2
        assert "there are no results yet" in capsys.readouterr().err
        with pytest.raises(StoreError, match="there are no results yet"):
            open_store(url, create=False)

    def test_an_empty_file_is_no_database(self, tmp_path: Path) -> None:
        (tmp_path / "results.db").touch()
        with pytest.raises(StoreError, match="there are no results yet"):
            open_store(f"sqlite:///{tmp_path / 'results.db'}", create=False)


class TestLocked:
    @pytest.fixture
    def file(self, empty_sqlite: Path, tmp_path: Path) -> str:
        path = tmp_path / "results.db"
        path.write_bytes(empty_sqlite.read_bytes())
        url = f"sqlite:///{path}"
        with open_store(url) as store:
            record(store, night())
        return url

    @pytest.mark.parametrize(
        ("statements", "arguments"),
        [
            (KEEPS["all of it"], ["acks"]),
            (KEEPS["the right to write"], ["accept", "--run", RUN, "--reason", "right"]),
            ("", ["nights"]),  # it is opening the database, and has stopped in the middle
        ],
    )
    def test_the_process_that_has_it_is_named_within_seconds(
        self,
        file: str,
        statements: str,
        arguments: list[str],
        capsys: pytest.CaptureFixture[str],
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        monkeypatch.setattr("nexmark.store.connecting.INTERACTIVE_TIMEOUT_S", 0.5)
        with keeper(file, statements) as process:
            begin = time.monotonic()
            assert main([*arguments, "--db", file]) == 2
            assert time.monotonic() - begin < 10
        error = capsys.readouterr().err
        assert error.count("\n") == 1
        assert f"database is locked by process {process} (" in error
        assert "-c" in error
        assert "disk space" not in error

    def test_a_process_that_only_waits_for_the_lock_is_not_named(self, file: str) -> None:
        with keeper(file, "") as process:
            waiting = [sys.executable, "-c", KEEPER, file.removeprefix("sqlite:///"), ""]
            with subprocess.Popen(waiting, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
                try:
                    wait_for(lambda: _waits_for_a_lock(other.pid))
                    with pytest.raises(StoreError) as refused:
                        open_store(file, patience_s=0.1)
                finally:
                    other.kill()
        assert f"locked by process {process} (" in str(refused.value)
        assert f"process {other.pid}" not in str(refused.value)

    def test_readers_need_not_wait_for_who_writes(self, file: str) -> None:
        with keeper(file, KEEPS["the right to write"]):
            assert main(["nights", "--db", file]) == 0

    def test_a_session_of_a_server_is_named(self, store: Store, database: str) -> None:
        store.record_night(night())
        with writing(connect(database)).begin() as writer:
            with (
                open_store(database, patience_s=0.1) as other,
                pytest.raises(StoreError, match=r"locked by (process|session) ") as found,
            ):
                other.record_night(night(2))
            if writer.dialect.name == "postgresql":
                pid = writer.exec_driver_sql("SELECT pg_backend_pid()").scalar()
                assert f"locked by session {pid} of " in str(found.value)
                assert "(nexmark, from this machine)" in str(found.value)
        assert "\n" not in str(found.value)


def test_a_night_waits_longer_than_a_person() -> None:
    assert connecting.INTERACTIVE_TIMEOUT_S < 5 < connecting.BUSY_TIMEOUT_S


@pytest.mark.parametrize("number", [2**31, 2**63, 10**30, 0, -(10**30)])
def test_an_id_that_no_acceptance_can_have_is_refused_in_one_line(
    database: str, number: int, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["withdraw", f"--id={number}", "--reason", "no", "--db", database]) == 2
    said = capsys.readouterr().err
    assert f"{str(number)!r} is not a whole number from 1 to 1000000000; correct it" in said
    assert said.count("\n") == 1


def test_an_acceptance_that_there_is_not_is_one_line(
    store: Store, database: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["withdraw", "--id=1000000000", "--reason", "no", "--db", database]) == 2
    assert capsys.readouterr().err == (
        "there is no acceptance 1000000000; `nexmark acks` lists them with their ids\n"
    )
