"""Nights in an Airflow that runs already, by its REST API: for a scheduler of one's own."""

from __future__ import annotations

import json
import os
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from nexmark.command import say
from nexmark.config import BUILD_DAG_ID
from nexmark.errors import NexmarkError

TOKEN = "NEXMARK_AIRFLOW_TOKEN"
_TIMEOUT_S = 30
#: A server that restarts is asked again for so long.
_PATIENCE_S = 120
_ENDED = ("success", "failed")


@dataclass(frozen=True)
class RunningAirflow:
    """An Airflow with the DAG `nexmark_build`, the results database and home of this process."""

    url: str
    token: str = field(repr=False)
    poll_s: float = 5.0

    def check(self) -> None:
        """NexmarkError where a night could not be run there."""
        if self._ask(f"dags/{BUILD_DAG_ID}")["is_paused"]:
            raise NexmarkError(f"{self.url}: {BUILD_DAG_ID} is paused; switch it on and try again")

    def night(self, params: Mapping[str, Any]) -> int:
        """Run a night of `nexmark_build` to its end; 0 if it is green, else 1."""
        body = {"logical_date": None, "conf": dict(params)}
        name = str(self._ask(f"dags/{BUILD_DAG_ID}/dagRuns", body)["dag_run_id"])
        say(f"{self.url}/dags/{BUILD_DAG_ID}/runs/{urllib.parse.quote(name)}")
        path = f"dags/{BUILD_DAG_ID}/dagRuns/{urllib.parse.quote(name)}"
        deadline = time.monotonic() + _PATIENCE_S
        while True:
            time.sleep(self.poll_s)
            try:
                state = self._ask(path)["state"]
            except NexmarkError:
                if time.monotonic() > deadline:
                    raise
                continue
            if state in _ENDED:
                return int(state == "failed")
            deadline = time.monotonic() + _PATIENCE_S

    def _ask(self, path: str, body: Mapping[str, Any] | None = None) -> dict[str, Any]:
        request = urllib.request.Request(
            f"{self.url}/api/v2/{path}",
            data=None if body is None else json.dumps(body).encode(),
            headers={"Authorization": f"Bearer {self.token}", "Content-Type": "application/json"},
        )
        try:
            with urllib.request.urlopen(request, timeout=_TIMEOUT_S) as response:
                found: dict[str, Any] = json.load(response)
        except urllib.error.HTTPError as error:
            raise NexmarkError(f"{self.url}: {_words(error)}") from None
        except (OSError, ValueError) as error:
            reason = getattr(error, "reason", error)
            raise NexmarkError(f"{self.url}: no answer ({reason}); is it Airflow's?") from None
        return found


def running_airflow(url: str) -> RunningAirflow:
    """The Airflow at a URL, with the token of the environment; NexmarkError without one."""
    if urllib.parse.urlsplit(url).scheme not in ("http", "https"):
        raise NexmarkError(f"airflow: {url!r} is no URL; give it like http://127.0.0.1:8080")
    token = os.environ.get(TOKEN, "")
    if not token:
        raise NexmarkError(
            f"airflow: {TOKEN} is not set; get a token by POST {url.rstrip('/')}/auth/token"
        )
    return RunningAirflow(url.rstrip("/"), token)


def _words(error: urllib.error.HTTPError) -> str:
    if error.code in (401, 403):
        return f"refused ({error.code}); renew the token in {TOKEN}"
    if error.code == 404:
        return f"{BUILD_DAG_ID} is not there; see its import errors"
    try:
        detail = str(json.load(error)["detail"])
    except (OSError, ValueError, KeyError, TypeError):
        detail = str(error.reason)
    return f"{error.code}: {' '.join(detail.split())[:300]}"


__all__ = ["RunningAirflow", "running_airflow"]
