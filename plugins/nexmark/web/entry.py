"""Where Airflow enters: the pages are made when the first of them is asked for.

The plugin is imported by every component of Airflow, and only the API server shows pages.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

PREFIX = "/nexmark"

Message = MutableMapping[str, Any]
App = Callable[
    [Message, Callable[[], Awaitable[Message]], Callable[[Message], Awaitable[None]]],
    Awaitable[None],
]


class EntryPoint:
    """An ASGI application that becomes that of ``nexmark.web.app`` with the first request."""

    def __init__(self) -> None:
        """Nothing is loaded yet."""
        self._app: App | None = None
        self._lock: asyncio.Lock | None = None

    async def __call__(
        self,
        scope: Message,
        receive: Callable[[], Awaitable[Message]],
        send: Callable[[Message], Awaitable[None]],
    ) -> None:
        """Answer one request."""
        if self._app is None:
            if self._lock is None:
                self._lock = asyncio.Lock()
            async with self._lock:
                if self._app is None:
                    self._app = await asyncio.to_thread(_make)
        await self._app(scope, receive, send)


def base_path() -> str:
    """The path that Airflow is served below, without a slash at its end: "" where it has none."""
    from urllib.parse import urlsplit

    from airflow.configuration import conf

    return urlsplit(conf.get("api", "base_url", fallback="") or "").path.rstrip("/")


def _make() -> App:
    from nexmark.web.app import create_app
    from nexmark.web.auth import AirflowDoor
    from nexmark.web.database import Database

    return create_app(Database(), AirflowDoor())


__all__ = ["PREFIX", "EntryPoint", "base_path"]
