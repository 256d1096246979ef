"""Where Airflow enters: the pages are made when the first of them is asked for.

The plugin is imported by every component of Airflow, and only the API server shows pages.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Receive, Scope, Send

PREFIX = "/nexmark"


class EntryPoint:
    """An ASGI application that loads ``web.web_app`` with the first request and hands over."""

    def __init__(self) -> None:
        """Nothing is loaded yet."""
        self._app: ASGIApp | None = None
        self._lock = asyncio.Lock()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if self._app is None:
            async with self._lock:
                if self._app is None:
                    self._app = await asyncio.to_thread(_make)
        await self._app(scope, receive, send)


def _make() -> ASGIApp:
    from nexmark.web.auth import Door
    from nexmark.web.web_app import Database, create_app

    return create_app(Database(), Door())
