"""The entry point for Airflow, which imports the pages with the first request.

Every component of Airflow imports the plugin, but only the API server shows pages.
"""

from __future__ import annotations

import asyncio
import gc
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Receive, Scope, Send

PREFIX = "/nexmark"


class EntryPoint:
    """An ASGI application that passes requests on to ``web.web_app``, imported with the first."""

    def __init__(self) -> None:
        """Make an entry point that has imported nothing yet."""
        self._app: ASGIApp | None = None
        self._lock = asyncio.Lock()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on to the pages."""
        if self._app is None:
            async with self._lock:
                if self._app is None:
                    self._app = await asyncio.to_thread(_make)
        await self._app(scope, receive, send)


def _make() -> ASGIApp:
    from nexmark.web.auth import AirflowAccess
    from nexmark.web.web_app import Database, create_app

    app = create_app(Database(), AirflowAccess())
    keep_loaded()
    return app


def keep_loaded() -> None:
    """Take what is loaded by now out of garbage collection, as Airflow's executors do.

    A server keeps its modules and settings until it ends. Pages make many small objects, so that
    garbage is collected while they are made; to look through all modules took a third of the time.
    """
    gc.collect()
    gc.freeze()
