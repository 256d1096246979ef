"""The FastAPI application that Airflow mounts at ``/nexmark``.

Every route asks the door for its user first, also for what is not there. Pages are plain HTML;
nothing in them may load anything from elsewhere (Content-Security-Policy).
"""

import time
from collections.abc import Awaitable, Callable
from threading import Lock
from typing import Any

from fastapi import Depends, FastAPI, HTTPException, Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException as AnyHTTPException
from starlette.responses import Response

from nexmark.config import paths
from nexmark.errors import NexmarkError
from nexmark.store import Refused, Store, StoreError, UnknownNight, open_store
from nexmark.store.connecting import BRIEF_S
from nexmark.web import assets, pages
from nexmark.web.auth import Door, ForgedForm
from nexmark.web.visit import render_error

PAGE = (
    "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self' data:; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'self'"
)
"""The Content-Security-Policy of our pages: nothing from elsewhere."""

_METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")

_STATUS: dict[type[NexmarkError], int] = {
    **{UnknownNight: 404, ForgedForm: 403, Refused: 400},
    StoreError: 503,
}
"""Of errors, the more special ones first; any other is 400."""


class Database:
    """The results database of this process: opened when first needed, and again after an error."""

    def __init__(self, url: str | None = None) -> None:
        """Take a URL in place of the configured one; nothing is opened yet."""
        self._url = url
        self._store: Store | None = None
        self._lock = Lock()

    def store(self) -> Store:
        """Return the store; StoreError where it cannot be opened."""
        with self._lock:
            if self._store is None:
                url = self._url or paths.database_url()
                self._store = open_store(url, patience_s=BRIEF_S)
            return self._store

    def forget(self) -> None:
        """Drop the open store after the database failed; the next use opens it again."""
        with self._lock:
            if self._store is not None:
                self._store.close()
            self._store = None


def create_app(database: Database, door: Door) -> FastAPI:
    """Return the pages over a database, behind a door."""

    async def enter(request: Request, user: Any = Depends(door.user)) -> None:
        request.state.nexmark_user = user

    app = FastAPI(openapi_url=None, dependencies=[Depends(enter)], redirect_slashes=False)
    app.state.database, app.state.door = database, door
    for room in (pages, assets):
        app.include_router(room.router)
    app.api_route("/{path:path}", methods=list(_METHODS))(_nothing_here)
    app.middleware("http")(_with_headers)
    _handle(app)
    return app


def _nothing_here(path: str) -> Response:
    """Answer for unknown addresses, behind the door as well: nobody learns which pages exist."""
    raise HTTPException(404, "Not Found")


async def _with_headers(
    request: Request, call_next: Callable[[Request], Awaitable[Response]]
) -> Response:
    started = time.perf_counter()
    response = await call_next(request)
    elapsed = 1000 * (time.perf_counter() - started)
    if _known(request):
        response.headers["Server-Timing"] = f"app;dur={elapsed:.1f}"
    response.headers.setdefault("Content-Security-Policy", PAGE)
    response.headers.setdefault("Cache-Control", "private, no-cache")
    response.headers["X-Content-Type-Options"] = "nosniff"
    response.headers["Referrer-Policy"] = "same-origin"
    return response


def _known(request: Request) -> bool:
    """Tell whether the door has let this visitor in."""
    return getattr(request.state, "nexmark_user", None) is not None


def _handle(app: FastAPI) -> None:
    """Let every error be a page with a sentence; none shows a stack trace."""

    def page(request: Request, status: int, sentence: str) -> Response:
        if status not in (401, 403):
            if _known(request):
                return render_error(request, status, sentence)
            status, sentence = 401, "Not authenticated"
        return render_error(request, status, sentence, app.state.door.login_url())

    @app.exception_handler(AnyHTTPException)
    def refused(request: Request, error: AnyHTTPException) -> Response:
        return page(request, error.status_code, str(error.detail))

    @app.exception_handler(RequestValidationError)
    def malformed(request: Request, error: RequestValidationError) -> Response:
        names = ", ".join(".".join(map(str, x["loc"][1:])) for x in error.errors())
        return page(request, 400, f"{names}: is missing or wrong; correct it")

    @app.exception_handler(NexmarkError)
    def wrong(request: Request, error: NexmarkError) -> Response:
        status = next((x for kind, x in _STATUS.items() if isinstance(error, kind)), 400)
        if status == 503:
            app.state.database.forget()
        return render_error(request, status, str(error))
