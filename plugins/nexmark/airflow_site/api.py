"""Ask an Airflow by its REST API: our private one, or one elsewhere that runs nights for us."""

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
#: Tries, and seconds between them: an API server refuses a request while a scheduler locks the
#: SQLite database, and then has changed nothing.
_BUSY_TRIES, _BUSY_WAIT_S = 5, 1.0
TOKEN = "NEXMARK_AIRFLOW_TOKEN"
#: Seconds in which a server that does not answer is asked again: it may be restarting.
_PATIENCE_S = 120
Body: TypeAlias = Mapping[str, Any] | None


class ApiError(NexmarkError):
    """A request that Airflow refused or did not answer.

    `status` is the HTTP status; None without an answer.
    """

    def __init__(self, text: str, status: int | None = None) -> None:
        """Make the error from `text`, one line with the URL of the server."""
        super().__init__(text)
        self.status = status


@dataclass
class AirflowApi:
    """The API server at `url`, asked as the user of `token`.

    `direct` leaves out the proxy that the environment may name.
    """

    url: str
    token: str = field(repr=False)
    direct: bool = False

    def ask(self, path: str, body: Body = None, method: str | None = None) -> dict[str, Any]:
        """Return the answer to a request for `/api/v2/<path>`.

        The request is a GET, or a POST if there is a `body`; `method` names another one.

        Raises:
            ApiError: There was no answer, or a refusal.
        """
        return self._send(f"/api/v2/{path}", body, method)

    def every(self, path: str, key: str, **query: Any) -> Iterator[dict[str, Any]]:
        """Yield all entries of a list that the server returns page by page.

        `key` is the name of the list in each answer, `query` the parameters of the URL. ApiError as
        in `ask`.
        """
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
    """The API server of the private Airflow; the file `passwords` has the password of its user."""

    passwords: Path = Path()

    def ask(self, path: str, body: Body = None, method: str | None = None) -> dict[str, Any]:
        """Return the answer; ask again if the token has expired or the database is locked.

        A token that has expired is renewed first.
        """
        for again in reversed(range(_BUSY_TRIES)):
            try:
                return super().ask(path, body, method)
            except ApiError as error:
                if not again or error.status not in (UNAUTHORIZED, FORBIDDEN, BUSY):
                    raise
                if error.status == BUSY:
                    time.sleep(_BUSY_WAIT_S)
                else:  # Airflow answers a token that has expired with one of the two
                    self.log_in()
        raise AssertionError("the last try returns or raises")

    def log_in(self) -> None:
        """Get a token with the password; ApiError if the server gives none."""
        try:
            password = json.loads(self.passwords.read_text(encoding="utf-8"))[_USER]
        except (OSError, ValueError, KeyError):
            problem = f"{self.passwords}: the password of {_USER} is not there"
            raise ApiError(f"{problem}; remove the file and start Airflow again") from None
        self.token = ""
        answer = self._send("/auth/token", {"username": _USER, "password": password})
        self.token = str(answer["access_token"])


def quote(name: str) -> str:
    """Return a name as a part of the path of a URL."""
    return urllib.parse.quote(name, safe="")


def _detail(error: urllib.error.HTTPError) -> str:
    """Return the server's reason for a refusal, in one line."""
    try:
        detail = json.load(error)["detail"]
    except (OSError, ValueError, KeyError, TypeError):
        detail = error.reason
    text = detail if isinstance(detail, str) else json.dumps(detail)
    return " ".join(text.split())[:300]


@dataclass
class RunningAirflow(AirflowApi):
    """An Airflow elsewhere, which has the DAG `nexmark_build` and uses the same results and home.

    `poll_s` is the time between two looks at a run, in seconds.
    """

    poll_s: float = 5.0

    def check(self) -> None:
        """Raise NexmarkError if this Airflow cannot run a night."""
        if self.ask(f"dags/{BUILD_DAG_ID}")["is_paused"]:
            raise NexmarkError(f"{self.url}: {BUILD_DAG_ID} is paused; switch it on and try again")

    def night(self, params: Mapping[str, Any]) -> int:
        """Run a night of `nexmark_build` with these params; return 0 if it is green, else 1."""
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
        """Return the answer; NexmarkError with the remedy for a bad token or a missing DAG."""
        try:
            return super().ask(path, body, method)
        except ApiError as error:
            if error.status in (UNAUTHORIZED, FORBIDDEN):
                problem = f"refused ({error.status}); renew the token in {TOKEN}"
            elif error.status == NOT_FOUND:
                problem = f"{BUILD_DAG_ID} is not there; see its import errors"
            else:
                raise
            raise NexmarkError(f"{self.url}: {problem}") from None


def running_airflow(url: str) -> RunningAirflow:
    """Return the Airflow at a URL, with the token of the environment; NexmarkError without one."""
    if urllib.parse.urlsplit(url).scheme not in ("http", "https"):
        raise NexmarkError(f"airflow: {url!r} is not a URL; give it like http://127.0.0.1:8080")
    token = os.environ.get(TOKEN, "")
    if not token:
        remedy = f"get a token by POST {url.rstrip('/')}/auth/token"
        raise NexmarkError(f"airflow: {TOKEN} is not set; {remedy}")
    return RunningAirflow(url.rstrip("/"), token)
