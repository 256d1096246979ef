"""That a form was sent from a page of ours, by the one who had it: no other site can.

Airflow's cookie is not sent with a form of another site (SameSite). Beside that, the origin of the
request has to be an address that this Airflow knows as its own, and the form carries a token that
was signed for its user.
"""

from __future__ import annotations

import socket
from collections.abc import Collection
from functools import cache
from urllib.parse import urlsplit

from itsdangerous import BadSignature, URLSafeTimedSerializer
from starlette.requests import Request

from nexmark.errors import NexmarkError

SALT = "nexmark-form"
HOURS = 12
"""A page that was left open for longer has to be loaded again."""
_PORTS = {"http": 80, "https": 443}
_LOOPBACK = frozenset({"127.0.0.1", "[::1]", "localhost"})


class ForgedForm(NexmarkError):
    """A form that does not come from a page of ours."""


def token(secret: str, user: str) -> str:
    """Return what the forms of a user carry."""
    return str(URLSafeTimedSerializer(secret, salt=SALT).dumps(user))


def check_form(
    request: Request, given: str, secret: str, user: str, origins: Collection[str]
) -> None:
    """Refuse a form that another site sent, or that is of another user, or is too old."""
    _check_origin(request, origins)
    try:
        owner = URLSafeTimedSerializer(secret, salt=SALT).loads(given, max_age=HOURS * 3600)
    except BadSignature:
        owner = None
    if owner != user:
        raise ForgedForm("this form is out of date; load the page again and repeat it")


def _check_origin(request: Request, origins: Collection[str]) -> None:
    """Refuse another origin; a browser tells it with every form, by one header or the other."""
    refused = ForgedForm(
        "this form was sent from another site; nothing was done (if it was not, Airflow does not "
        "know its own address: set AIRFLOW__API__BASE_URL)"
    )
    site = request.headers.get("sec-fetch-site")
    if site is not None and site != "same-origin":
        raise refused
    origin = request.headers.get("origin") or _origin_of(request.headers.get("referer", ""))
    if origin not in {*origins, *_of_this_server(request)}:
        raise refused


def _of_this_server(request: Request) -> set[str]:
    """Return the origins of the socket that was asked; the header Host is the sender's word."""
    host, port = request.scope.get("server") or ("", None)
    scheme = request.url.scheme
    place = "" if port in (None, _PORTS.get(scheme)) else f":{port}"
    names = {f"[{host}]" if ":" in host else host, *_machine()}
    if names & _LOOPBACK:
        names |= _LOOPBACK
    return {f"{scheme}://{name}{place}" for name in names if name}


@cache
def _machine() -> frozenset[str]:
    return frozenset({socket.gethostname(), socket.getfqdn()})


def _origin_of(url: str) -> str:
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}"
