"""Asks the application of the pages without a socket, as a reader who may see every night."""

import asyncio
from collections.abc import Collection, Mapping
from typing import Any
from urllib.parse import unquote

from nexmark.store import Store
from nexmark.web.auth import AirflowAccess, NextRun, User
from nexmark.web.entry import PREFIX
from nexmark.web.request_context import StaticCopy
from nexmark.web.web_app import Database, create_app

_OK = 200


class ReaderAccess(AirflowAccess):
    """Anybody: may read every night, and change nothing. No Airflow is asked."""

    @property
    def user(self) -> Any:
        """Return a dependency of FastAPI that gives everybody the same name."""

        async def user() -> str:
            return ""

        return user

    def name(self, user: User) -> str:
        """Return no name: a site does not know its readers."""
        return ""

    def readable(self, user: User, dags: Collection[str]) -> frozenset[str]:
        """Return all DAGs."""
        return frozenset(dags)

    def next_runs(self, dags: Collection[str]) -> Mapping[str, NextRun]:
        """Return no run: what is planned may change before the site is read."""
        return {}

    def may_accept(self, user: User) -> bool:
        """Return False: a site has no forms."""
        return False

    def login_url(self) -> str:
        """Return no address: a site has no login."""
        return ""


class OpenedDatabase(Database):
    """A results database that is open already, and whose opener closes it."""

    def __init__(self, opened: Store) -> None:
        """Keep the open database."""
        super().__init__()
        self._opened = opened

    def store(self) -> Store:
        """Return the open database."""
        return self._opened

    def forget(self) -> None:
        """Keep it open: the next page may be readable."""


class Pages:
    """The pages of the server; a context manager, within which they can be asked for."""

    def __init__(self, store: Store, copy: StaticCopy) -> None:
        """Make the application of the pages, for this copy of them."""
        self._app = create_app(OpenedDatabase(store), ReaderAccess(), copy)
        self._runner = asyncio.Runner()

    def __enter__(self) -> "Pages":
        """Start the event loop."""
        self._runner.__enter__()
        return self

    def __exit__(self, *error: object) -> None:
        """End the event loop."""
        self._runner.close()

    def get(self, address: str) -> tuple[int, bytes]:
        """Return the status and the content at an address, as the server answers it."""
        return self._runner.run(_get(self._app, address))

    def text(self, address: str) -> str:
        """Return the content at an address; LookupError if the server has none."""
        status, content = self.get(address)
        if status != _OK:
            raise LookupError(f"the server answers {status}")
        return content.decode()


async def _get(app: Any, address: str) -> tuple[int, bytes]:
    """Return the status and the body of an ASGI application's answer."""
    path, _, query = address.partition("?")
    scope: dict[str, Any] = {
        "type": "http",
        "asgi": {"version": "3.0", "spec_version": "2.4"},
        "http_version": "1.1",
        "method": "GET",
        "scheme": "http",
        "path": unquote(f"{PREFIX}{path}"),
        "raw_path": f"{PREFIX}{path}".encode(),
        "root_path": PREFIX,
        "query_string": query.encode(),
        "headers": [],
        "client": None,
        "server": None,
    }
    status, body, answered = 0, bytearray(), asyncio.Event()
    requests = [{"type": "http.request", "body": b"", "more_body": False}]

    async def receive() -> Mapping[str, object]:
        if requests:
            return requests.pop()
        await answered.wait()
        return {"type": "http.disconnect"}

    async def send(message: Mapping[str, Any]) -> None:
        nonlocal status
        if message["type"] == "http.response.start":
            status = message["status"]
        elif message["type"] == "http.response.body":
            body.extend(message.get("body", b""))
            if not message.get("more_body"):
                answered.set()

    await app(scope, receive, send)
    return status, bytes(body)
