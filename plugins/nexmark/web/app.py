"""The FastAPI application that Airflow mounts at ``/nexmark``.

Every route asks the door for its user first. Pages are plain HTML; nothing in them may load
anything from elsewhere (Content-Security-Policy).
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from typing import Any

from fastapi import Depends, FastAPI, HTTPException, Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException as AnyHTTPException
from starlette.responses import Response

from nexmark.errors import NexmarkError
from nexmark.store import StoreError
from nexmark.web import acknowledging, assets, pages, places, results
from nexmark.web.auth import Door
from nexmark.web.database import Database
from nexmark.web.forms import ForgedForm
from nexmark.web.policies import PAGE
from nexmark.web.templating import render_error
from nexmark.web.visit import NotFound


def create_app(database: Database, door: Door) -> FastAPI:
    """Return the pages over a database, behind a door."""

    async def enter(request: Request, user: Any = Depends(door.user)) -> None:
        request.state.nexmark_user = user

    app = FastAPI(
        title="Nexmark",
        docs_url=None,
        redoc_url=None,
        openapi_url=None,
        dependencies=[Depends(enter)],
    )
    app.state.database, app.state.door = database, door
    for room in (places, pages, results, acknowledging, assets):
        app.include_router(room.router)
    app.middleware("http")(_with_headers)
    _handle(app)
    return app


async def _with_headers(
    request: Request, call_next: Callable[[Request], Awaitable[Response]]
) -> Response:
    started = time.perf_counter()
    response = await call_next(request)
    elapsed = 1000 * (time.perf_counter() - started)
    response.headers["Server-Timing"] = f"app;dur={elapsed:.1f}"
    response.headers.setdefault("Content-Security-Policy", PAGE)
    response.headers.setdefault("Cache-Control", "private, no-cache")
    response.headers["X-Content-Type-Options"] = "nosniff"
    response.headers["Referrer-Policy"] = "same-origin"
    return response


def _handle(app: FastAPI) -> None:
    """Let every error be a page with a sentence; none shows a stack trace."""

    def refused(request: Request, error: Any) -> Response:
        login = app.state.door.login_url() if error.status_code in (401, 403) else None
        return render_error(request, error.status_code, str(error.detail), login)

    def not_found(request: Request, error: Any) -> Response:
        return render_error(request, 404, str(error))

    def forged(request: Request, error: Any) -> Response:
        return render_error(request, 403, str(error))

    def broken(request: Request, error: Any) -> Response:
        app.state.database.forget()
        return render_error(request, 503, str(error))

    def wrong(request: Request, error: Any) -> Response:
        return render_error(request, 400, str(error))

    def malformed(request: Request, error: Any) -> Response:
        names = ", ".join(".".join(map(str, x["loc"][1:])) for x in error.errors())
        return render_error(request, 400, f"{names}: is missing or wrong; correct it")

    app.add_exception_handler(HTTPException, refused)
    app.add_exception_handler(AnyHTTPException, refused)
    app.add_exception_handler(RequestValidationError, malformed)
    app.add_exception_handler(NotFound, not_found)
    app.add_exception_handler(ForgedForm, forged)
    app.add_exception_handler(StoreError, broken)
    app.add_exception_handler(NexmarkError, wrong)


__all__ = ["create_app"]
