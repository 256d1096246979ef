"""The FastAPI application that Airflow mounts at ``/nexmark``.

Every route, also the route of unknown addresses, first asks Airflow for the user. Pages are plain
HTML. They may load nothing from other sites (Content-Security-Policy).
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
from nexmark.store.connecting import INTERACTIVE_TIMEOUT_S
from nexmark.web import assets, pages
from nexmark.web.auth import AirflowAccess, AirflowUnreadable, ForgedForm
from nexmark.web.request_context import StaticCopy, render_error

PAGE = (
    "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self' data:; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'self'"
)
"""The Content-Security-Policy of our pages: they load nothing from other sites."""

_METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")

_STATUS: dict[type[NexmarkError], int] = {
    **{UnknownNight: 404, ForgedForm: 403, Refused: 400},
    **{StoreError: 503, AirflowUnreadable: 503},
}
"""The HTTP status of an error, subclasses before their classes; 400 for any other error."""


class Database:
    """The results database of this process; opened at its first use, and again after an error."""

    def __init__(self, url: str | None = None) -> None:
        """Keep the URL (default: the configured one) without opening the database."""
        self._url = url
        self._store: Store | None = None
        self._lock = Lock()

    def store(self) -> Store:
        """Return the store; StoreError if it cannot be opened."""
        with self._lock:
            if self._store is None:
                url = self._url or paths.database_url()
                self._store = open_store(url, patience_s=INTERACTIVE_TIMEOUT_S)
            return self._store

    def forget(self) -> None:
        """Close the store after the database failed; the next use opens it again."""
        with self._lock:
            if self._store is not None:
                self._store.close()
            self._store = None


def create_app(
    database: Database, access: AirflowAccess, copy: StaticCopy | None = None
) -> FastAPI:
    """Return the application that shows the database to the users whom ``access`` lets in.

    ``copy`` is the static copy for which it makes pages; None if it serves them.
    """

    async def enter(request: Request, user: Any = Depends(access.user)) -> None:
        request.state.nexmark_user = user

    app = FastAPI(openapi_url=None, dependencies=[Depends(enter)], redirect_slashes=False)
    app.state.database, app.state.access, app.state.copy = database, access, copy
    for room in (pages, assets):
        app.include_router(room.router)
    app.api_route("/{path:path}", methods=list(_METHODS))(_nothing_here)
    app.middleware("http")(_with_headers)
    _handle(app)
    return app


def _nothing_here(path: str) -> Response:
    """Answer 404 to a user; anybody else got 401 before, and so cannot find out what exists."""
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
    """Return whether the request has a user."""
    return getattr(request.state, "nexmark_user", None) is not None


def _handle(app: FastAPI) -> None:
    """Show every error as a page with a sentence, never with a stack trace."""

    def page(request: Request, status: int, sentence: str) -> Response:
        if status not in (401, 403):
            if _known(request):
                return render_error(request, status, sentence)
            status, sentence = 401, "Not authenticated"
        return render_error(request, status, sentence, app.state.access.login_url())

    @app.exception_handler(AnyHTTPException)
    def refused(request: Request, error: AnyHTTPException) -> Response:
        return page(request, error.status_code, str(error.detail))

    @app.exception_handler(RequestValidationError)
    def malformed(request: Request, error: RequestValidationError) -> Response:
        names = ", ".join(".".join(map(str, problem["loc"][1:])) for problem in error.errors())
        return page(request, 400, f"{names}: is missing or wrong; correct it")

    @app.exception_handler(NexmarkError)
    def wrong(request: Request, error: NexmarkError) -> Response:
        status = next((code for kind, code in _STATUS.items() if isinstance(error, kind)), 400)
        if status == 503:
            app.state.database.forget()
        return render_error(request, status, str(error))
