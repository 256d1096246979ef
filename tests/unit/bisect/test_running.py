"""Nights in a running Airflow: begun, waited for, and told in one line where that cannot be.

In place of Airflow a server that speaks as it does; the real one is in tests/story.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

import pytest

from nexmark.airflow_site.api import TOKEN, RunningAirflow, running_airflow
from nexmark.errors import NexmarkError

NAME = "manual__2026-11-21T01:02:03+00:00"


class Server(HTTPServer):
    """Answers in turn with what `states` says, the last of it for ever."""

    states: list[str]
    paused = False
    status = 200
    asked: list[tuple[str, Any]]


class Handler(BaseHTTPRequestHandler):
    server: Server

    def do_GET(self) -> None:
        self.server.asked.append((self.path, None))
        states = self.server.states
        state = states.pop(0) if len(states) > 1 else states[0]
        self._say({"is_paused": self.server.paused, "state": state})

    def do_POST(self) -> None:
        length = int(self.headers["Content-Length"])
        self.server.asked.append((self.path, json.loads(self.rfile.read(length))))
        self._say({"dag_run_id": NAME})

    def _say(self, content: dict[str, Any]) -> None:
        refused = self.headers["Authorization"] != "Bearer right"
        self.send_response(401 if refused else self.server.status)
        self.end_headers()
        self.wfile.write(json.dumps({**content, "detail": "such a\nproblem"}).encode())

    def log_message(self, *_: object) -> None:
        """Nothing."""


@pytest.fixture
def server() -> Iterator[Server]:
    made = Server(("127.0.0.1", 0), Handler)
    made.states, made.asked = ["running", "success"], []
    thread = threading.Thread(target=made.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield made
    made.shutdown()
    thread.join()
    made.server_close()


def airflow(server: Server, token: str = "right") -> RunningAirflow:
    return RunningAirflow(f"http://127.0.0.1:{server.server_port}", token, poll_s=0.01)


@pytest.mark.parametrize(("state", "code"), [("success", 0), ("failed", 1)])
def test_a_night_is_begun_and_waited_for(server: Server, state: str, code: int) -> None:
    server.states = ["queued", "running", state]
    assert airflow(server).night({"build": "pypi:4.3.0"}) == code
    (path, body), *polled = server.asked
    assert path == "/api/v2/dags/nexmark_build/dagRuns"
    assert body == {"logical_date": None, "conf": {"build": "pypi:4.3.0"}}
    assert len(polled) == 3
    assert polled[0][0].endswith("/dagRuns/manual__2026-11-21T01%3A02%3A03%2B00%3A00")


def test_a_dag_that_is_paused_is_reported_before_a_night_waits_for_ever(server: Server) -> None:
    airflow(server).check()
    server.paused = True
    with pytest.raises(NexmarkError, match="nexmark_build is paused; switch it on"):
        airflow(server).check()


@pytest.mark.parametrize(
    ("status", "said"),
    [(404, "nexmark_build is not there"), (409, "409: such a problem"), (500, "500: such a")],
)
def test_what_airflow_refuses_is_one_line(server: Server, status: int, said: str) -> None:
    server.status = status
    with pytest.raises(NexmarkError, match=said) as told:
        airflow(server).night({})
    assert "\n" not in str(told.value)


def test_a_token_that_is_not_accepted_is_reported_and_not_shown(server: Server) -> None:
    with pytest.raises(NexmarkError, match=f"refused .401.; renew the token in {TOKEN}") as told:
        airflow(server, "wrong").check()
    assert "wrong" not in str(told.value)
    assert "wrong" not in repr(airflow(server, "wrong"))


def test_nobody_there_is_one_line() -> None:
    with pytest.raises(NexmarkError, match=r"http://127.0.0.1:1: no answer \(.*refused"):
        RunningAirflow("http://127.0.0.1:1", "x").check()


def test_url_and_token_are_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(TOKEN, raising=False)
    with pytest.raises(NexmarkError, match="'localhost:8080' is not a URL; give it like http://"):
        running_airflow("localhost:8080")
    with pytest.raises(
        NexmarkError, match=f"{TOKEN} is not set; get a token by POST http://x/auth"
    ):
        running_airflow("http://x/")
    monkeypatch.setenv(TOKEN, "t")
    assert running_airflow("http://x/").url == "http://x"
