"""The private Airflow: where its state is, and that nobody goes to it but by its API."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from nexmark.airflow_site import api as airflow_api
from nexmark.airflow_site.airflow_home import airflow_environment, own_airflow
from nexmark.airflow_site.api import BUSY, FORBIDDEN, UNAUTHORIZED, ApiError, OwnAirflow
from nexmark.config import load
from nexmark.errors import NexmarkError

ROOT = Path(__file__).parents[2]
CONN = "AIRFLOW__DATABASE__SQL_ALCHEMY_CONN"
_TABLES = "task_instance|dag_run|backfill|backfill_dag_run|dag|job|xcom|connection"
_SQL = re.compile(
    rf"(?i)\b(update|from|into|join)\s+({_TABLES})\s+(set|where|[a-z]\b|on\b|left\b|[\"'])"
)


def test_a_task_waits_for_a_server_that_is_busy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By the client of the installed Airflow, with whose own 5 seconds a task failed unbegun."""
    monkeypatch.setenv("NEXMARK_HOME", str(tmp_path))
    program = "from airflow.sdk.api.client import API_TIMEOUT; print(API_TIMEOUT)"
    client = subprocess.run(
        [sys.executable, "-c", program],
        env=airflow_environment(load()),
        capture_output=True,
        text=True,
        check=True,
    )
    assert client.stdout.splitlines()[-1] == "60.0"


class TestDatabase:
    @pytest.fixture(autouse=True)
    def home(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("NEXMARK_HOME", str(tmp_path))
        monkeypatch.delenv("NEXMARK_AIRFLOW_DB", raising=False)

    def test_is_a_file_under_home(self, tmp_path: Path) -> None:
        assert airflow_environment(load())[CONN] == f"sqlite:///{tmp_path}/airflow/airflow.db"

    def test_of_another_airflow_is_left_alone(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """It would be migrated, and its DAGs would be gone."""
        monkeypatch.setenv(CONN, "postgresql://production/airflow")
        monkeypatch.setenv(f"{CONN}_ASYNC", "postgresql+asyncpg://production/airflow")
        environment = airflow_environment(load())
        assert environment[CONN].startswith("sqlite:///")
        assert f"{CONN}_ASYNC" not in environment

    @pytest.mark.parametrize("scheme", ["postgresql", "postgresql+psycopg", "postgresql+psycopg2"])
    def test_may_be_postgresql(self, scheme: str, monkeypatch: pytest.MonkeyPatch) -> None:
        """By the one driver that is installed, in both of Airflow's engines."""
        monkeypatch.setenv("NEXMARK_AIRFLOW_DB", f"{scheme}://me@db.example/airflow")
        environment = airflow_environment(load())
        assert environment[CONN] == "postgresql+psycopg://me@db.example/airflow"
        assert environment[f"{CONN}_ASYNC"] == environment[CONN]

    def test_may_be_behind_a_pgbouncer(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Airflow reads there what its driver is given: no prepared statement."""
        monkeypatch.setenv("NEXMARK_AIRFLOW_DB", "postgresql://me@db.example/airflow")
        environment = airflow_environment(load())
        arguments = "AIRFLOW__DATABASE__SQL_ALCHEMY_CONNECT_ARGS"
        for name in (arguments, f"{arguments}_ASYNC"):
            module, _, attribute = environment[name].rpartition(".")
            assert getattr(import_module(module), attribute) == {"prepare_threshold": None}

    @pytest.mark.parametrize("url", ["db.example/airflow", "mysql://me:secret@db/airflow"])
    def test_of_another_kind_is_refused(self, url: str, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("NEXMARK_AIRFLOW_DB", url)
        with pytest.raises(NexmarkError, match=r"NEXMARK_AIRFLOW_DB: .*; write it like") as told:
            airflow_environment(load())
        assert "secret" not in str(told.value)


def test_no_statement_of_ours_names_a_table_of_airflow() -> None:
    files = [path for folder in ("plugins", "dags", "tests") for path in (ROOT / folder).rglob("*")]
    kinds = (".py", ".sql")
    texts = {x: x.read_text("utf-8") for x in files if x.suffix in kinds and x != Path(__file__)}
    found = {path.name: m[0] for path, text in texts.items() if (m := _SQL.search(text))}
    assert found == {}
    assert _SQL.search("UPDATE task_instance SET state = 'failed'")
    assert _SQL.search("FROM backfill_dag_run b LEFT JOIN dag_run r ON r.id = b.dag_run_id")


class Server(HTTPServer):
    """Airflow's API server in its moods: `refusals` are given first, one to each request."""

    refusals: list[int]
    asked: list[str]


class Handler(BaseHTTPRequestHandler):
    server: Server

    def do_GET(self) -> None:
        self.server.asked.append(self.path)
        status = self.server.refusals.pop(0) if self.server.refusals else 200
        if status == 200 and self.headers["Authorization"] != "Bearer new":
            status = FORBIDDEN if "expired" in self.headers["Authorization"] else UNAUTHORIZED
        self._say(status, {"detail": [{"msg": "such a\nproblem"}], "items": list(range(100))})

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        good = body == {"username": "admin", "password": "p"}
        self._say(201 if good else UNAUTHORIZED, {"access_token": "new", "detail": "no"})

    def _say(self, status: int, content: dict[str, Any]) -> None:
        self.send_response(status)
        self.end_headers()
        self.wfile.write(json.dumps(content).encode())

    def log_message(self, *_: object) -> None:
        """Nothing."""


@pytest.fixture
def server() -> Iterator[Server]:
    made = Server(("127.0.0.1", 0), Handler)
    made.refusals, made.asked = [], []
    thread = threading.Thread(target=made.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield made
    made.shutdown()
    thread.join()
    made.server_close()


class TestOwnAirflow:
    @pytest.fixture
    def api(self, server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> OwnAirflow:
        monkeypatch.setenv("NEXMARK_HOME", str(tmp_path))
        monkeypatch.setenv("http_proxy", "http://127.0.0.1:1")  # it is asked directly
        monkeypatch.setattr(airflow_api, "_BUSY_WAIT_S", 0.01)
        (tmp_path / "airflow").mkdir()
        (tmp_path / "airflow" / "passwords.json").write_text('{"admin": "p"}')
        return own_airflow(server.server_port)

    def test_a_token_is_got_and_got_again(self, api: OwnAirflow) -> None:
        """A backfill goes on for longer than a token lives."""
        api.ask("x")
        api.token = "expired"
        assert api.ask("x")["items"]
        assert api.token == "new"
        assert "new" not in repr(api)

    def test_a_database_that_is_locked_is_asked_again(
        self, api: OwnAirflow, server: Server
    ) -> None:
        """SQLite beside a scheduler: Airflow answers 503 and has done nothing."""
        api.log_in()
        server.refusals = [BUSY, BUSY]
        assert api.ask("x")["items"]
        assert len(server.asked) == 3

    def test_in_the_end_a_refusal_is_one(self, api: OwnAirflow, server: Server) -> None:
        api.log_in()
        server.refusals = [BUSY] * 9
        with pytest.raises(ApiError, match="503: ") as told:
            api.ask("x")
        assert told.value.status == BUSY
        assert "\n" not in str(told.value)

    def test_a_refusal_of_another_kind_is_one_at_once(
        self, api: OwnAirflow, server: Server
    ) -> None:
        api.log_in()
        server.refusals = [409]
        with pytest.raises(ApiError, match=r"409: .*such a"):
            api.ask("x")
        assert len(server.asked) == 1

    def test_a_password_that_is_not_there_is_reported(
        self, api: OwnAirflow, tmp_path: Path
    ) -> None:
        (tmp_path / "airflow" / "passwords.json").write_text("{}")
        with pytest.raises(ApiError, match="the password of admin is not there; remove the file"):
            api.ask("x")

    def test_a_list_is_read_to_its_end(
        self, api: OwnAirflow, server: Server, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        api.log_in()
        found = api.every("x", "items", state=("queued", "running"))
        assert [next(found) for _ in range(250)][-1] == 49
        assert server.asked == [
            f"/api/v2/x?state=queued&state=running&limit=100&offset={offset}"
            for offset in (0, 100, 200)
        ]

    def test_is_where_it_said_that_it_listens(self, api: OwnAirflow, tmp_path: Path) -> None:
        """`nexmark ui` may have been given another port than the command that looks for it."""
        (tmp_path / "airflow" / "address.txt").write_text("http://127.0.0.1:8123")
        assert own_airflow(8080).url == "http://127.0.0.1:8123"
