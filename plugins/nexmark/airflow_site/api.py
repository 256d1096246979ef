"""Airflow by its REST API: the server of our own, and one elsewhere that is asked for nights."""

import json
import os
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any, TypeAlias

from nexmark.config import BUILD_DAG_ID
from nexmark.errors import NexmarkError
from nexmark.terminal import show_line

UNAUTHORIZED, FORBIDDEN, NOT_FOUND, CONFLICT, BUSY = 401, 403, 404, 409, 503
#: The states of a DAG run that has ended.
ENDED = ("success", "failed")
_USER, _TIMEOUT_S = "admin", 60
_PAGE = 100
#: SQLite beside a scheduler: an API server that finds it locked says so, and nothing is changed.
_BUSY_TRIES, _BUSY_WAIT_S = 5, 1.0
TOKEN = "NEXMARK_AIRFLOW_TOKEN"
#: A server that restarts is asked again for so long.
_PATIENCE_S = 120
Body: TypeAlias = Mapping[str, Any] | None


class ApiError(NexmarkError):
    """Airflow refused a request; `status` is the HTTP status, None where no answer came."""

    def __init__(self, text: str, status: int | None = None) -> None:
        """`text` is one line with the URL of the server."""
        super().__init__(text)
        self.status = status


@dataclass
class AirflowApi:
    """The API server at `url`, as the user of `token`; `direct` does not ask through a proxy."""

    url: str
    token: str = field(repr=False)
    direct: bool = False

    def ask(self, path: str, body: Body = None, method: str | None = None) -> dict[str, Any]:
        """Return the answer to a GET of `/api/v2/<path>`, or where there is a `body` to a POST.

        Raises:
            ApiError: There was no answer, or a refusal.
        """
        return self._send(f"/api/v2/{path}", body, method)

    def every(self, path: str, key: str, **query: Any) -> Iterator[dict[str, Any]]:
        """Yield all of a list that the server gives in pages; ApiError as `ask`."""
        for offset in count(0, _PAGE):
            words = urllib.parse.urlencode({**query, "limit": _PAGE, "offset": offset}, doseq=True)
            answer = self.ask(f"{path}?{words}")
            yield from answer[key]
            if len(answer[key]) < _PAGE:
                return

    def _send(self, path: str, body: Body = None, method: str | None = None) -> dict[str, Any]:
        request = urllib.request.Request(
            f"{self.url}{path}",
            data=None if body is None else json.dumps(body).encode(),
            headers={"Authorization": f"Bearer {self.token}", "Content-Type": "application/json"},
            method=method,
        )
        proxies = urllib.request.ProxyHandler({} if self.direct else None)
        try:
            with urllib.request.build_opener(proxies).open(request, timeout=_TIMEOUT_S) as response:
                answer: dict[str, Any] = json.load(response)
        except urllib.error.HTTPError as error:
            raise ApiError(f"{self.url}: {error.code}: {_detail(error)}", error.code) from None
        except (OSError, ValueError) as error:
            reason = getattr(error, "reason", error)
            raise ApiError(f"{self.url}: no answer ({reason}); is it Airflow's?") from None
        return answer


@dataclass
class OwnAirflow(AirflowApi):
    """The private Airflow's API server: its password is in a file, its token is renewed."""

    passwords: Path = Path()

    def ask(self, path: str, body: Body = None, method: str | None = None) -> dict[str, Any]:
        """As of any server; a token that has expired and a database that is locked are no end."""
        for again in reversed(range(_BUSY_TRIES)):
            try:
                return super().ask(path, body, method)
            except ApiError as error:
                if not again or error.status not in (UNAUTHORIZED, FORBIDDEN, BUSY):
                    raise
                if error.status == BUSY:
                    time.sleep(_BUSY_WAIT_S)
                else:  # a token that is no good any more is forbidden
                    self.log_in()
        raise AssertionError("the last try returns or raises")

    def log_in(self) -> None:
        """Get a token; ApiError if the server gives none."""
        try:
            password = json.loads(self.passwords.read_text(encoding="utf-8"))[_USER]
        except (OSError, ValueError, KeyError):
            problem = f"{self.passwords}: the password of {_USER} is not there"
            raise ApiError(f"{problem}; remove the file and start Airflow again") from None
        self.token = ""
        answer = self._send("/auth/token", {"username": _USER, "password": password})
        self.token = str(answer["access_token"])


def quote(name: str) -> str:
    """Return a name as a part of a path."""
    return urllib.parse.quote(name, safe="")


def _detail(error: urllib.error.HTTPError) -> str:
    """Return the server's reason for a refusal, in one line."""
    try:
        said = json.load(error)["detail"]
    except (OSError, ValueError, KeyError, TypeError):
        said = error.reason
    text = said if isinstance(said, str) else json.dumps(said)
    return " ".join(text.split())[:300]


@dataclass
class RunningAirflow(AirflowApi):
    """An Airflow with the DAG `nexmark_build`, the results database and home of this process."""

    poll_s: float = 5.0

    def check(self) -> None:
        """NexmarkError where a night could not be run there."""
        if self.ask(f"dags/{BUILD_DAG_ID}")["is_paused"]:
            raise NexmarkError(f"{self.url}: {BUILD_DAG_ID} is paused; switch it on and try again")

    def night(self, params: Mapping[str, Any]) -> int:
        """Run a night of `nexmark_build` to its end; 0 if it is green, else 1."""
        body = {"logical_date": None, "conf": dict(params)}
        path = f"dags/{BUILD_DAG_ID}/dagRuns"
        name = urllib.parse.quote(str(self.ask(path, body)["dag_run_id"]))
        show_line(f"{self.url}/dags/{BUILD_DAG_ID}/runs/{name}")
        deadline = time.monotonic() + _PATIENCE_S
        while True:
            time.sleep(self.poll_s)
            try:
                state = self.ask(f"{path}/{name}")["state"]
            except NexmarkError:
                if time.monotonic() > deadline:
                    raise
                continue
            if state in ENDED:
                return int(state == "failed")
            deadline = time.monotonic() + _PATIENCE_S

    def ask(self, path: str, body: Body = None, method: str | None = None) -> dict[str, Any]:
        """As of any server; NexmarkError with the remedy for a bad token and a missing DAG."""
        try:
            return super().ask(path, body, method)
        except ApiError as error:
            if error.status in (UNAUTHORIZED, FORBIDDEN):
                said = f"refused ({error.status}); renew the token in {TOKEN}"
            elif error.status == NOT_FOUND:
                said = f"{BUILD_DAG_ID} is not there; see its import errors"
            else:
                raise
            raise NexmarkError(f"{self.url}: {said}") from None


def running_airflow(url: str) -> RunningAirflow:
    """Return the Airflow at a URL, with the token of the environment; NexmarkError without one."""
    if urllib.parse.urlsplit(url).scheme not in ("http", "https"):
        raise NexmarkError(f"airflow: {url!r} is not a URL; give it like http://127.0.0.1:8080")
    token = os.environ.get(TOKEN, "")
    if not token:
        remedy = f"get a token by POST {url.rstrip('/')}/auth/token"
        raise NexmarkError(f"airflow: {TOKEN} is not set; {remedy}")
    return RunningAirflow(url.rstrip("/"), token)
