"""Nights in an Airflow that runs already, by its REST API: for a scheduler of one's own."""

from __future__ import annotations

import os
import time
import urllib.parse
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from nexmark.airflow_site.api import FORBIDDEN, NOT_FOUND, UNAUTHORIZED, AirflowApi, ApiError
from nexmark.config import BUILD_DAG_ID
from nexmark.errors import NexmarkError
from nexmark.terminal import say

TOKEN = "NEXMARK_AIRFLOW_TOKEN"
#: A server that restarts is asked again for so long.
_PATIENCE_S = 120
_ENDED = ("success", "failed")


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
        name = str(self.ask(f"dags/{BUILD_DAG_ID}/dagRuns", body)["dag_run_id"])
        say(f"{self.url}/dags/{BUILD_DAG_ID}/runs/{urllib.parse.quote(name)}")
        path = f"dags/{BUILD_DAG_ID}/dagRuns/{urllib.parse.quote(name)}"
        deadline = time.monotonic() + _PATIENCE_S
        while True:
            time.sleep(self.poll_s)
            try:
                state = self.ask(path)["state"]
            except NexmarkError:
                if time.monotonic() > deadline:
                    raise
                continue
            if state in _ENDED:
                return int(state == "failed")
            deadline = time.monotonic() + _PATIENCE_S

    def ask(
        self, path: str, body: Mapping[str, Any] | None = None, method: str | None = None
    ) -> dict[str, Any]:
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
    """The Airflow at a URL, with the token of the environment; NexmarkError without one."""
    if urllib.parse.urlsplit(url).scheme not in ("http", "https"):
        raise NexmarkError(f"airflow: {url!r} is no URL; give it like http://127.0.0.1:8080")
    token = os.environ.get(TOKEN, "")
    if not token:
        raise NexmarkError(
            f"airflow: {TOKEN} is not set; get a token by POST {url.rstrip('/')}/auth/token"
        )
    return RunningAirflow(url.rstrip("/"), token)
