"""That a form was sent from a page of ours, by the one who had it: no other site can.

Airflow's cookie is not sent with a form of another site (SameSite). Beside that, the origin of the
request has to be this one, and the form carries a token that was signed for its user.
"""

from __future__ import annotations

from collections.abc import Collection
from urllib.parse import urlsplit

from itsdangerous import BadSignature, URLSafeTimedSerializer
from starlette.requests import Request

from nexmark.errors import NexmarkError

SALT = "nexmark-form"
HOURS = 12
"""A page that was left open for longer has to be loaded again."""


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
    refused = ForgedForm("this form was sent from another site; nothing was done")
    site = request.headers.get("sec-fetch-site")
    if site is not None and site != "same-origin":
        raise refused
    origin = request.headers.get("origin") or _origin_of(request.headers.get("referer", ""))
    own = {f"{request.url.scheme}://{request.headers.get('host', '')}", *origins}
    if origin not in own:
        raise refused


def _origin_of(url: str) -> str:
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}"


__all__ = ["ForgedForm", "check_form", "token"]
