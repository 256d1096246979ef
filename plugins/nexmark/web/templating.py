"""Jinja2, with everything escaped, and the addresses of our own pages."""

from __future__ import annotations

from functools import cache
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from starlette.requests import Request
from starlette.responses import HTMLResponse

from nexmark.web import assets
from nexmark.web.verdicts import legend, look
from nexmark.web.words import FILTERS, part

MENU = (
    ("night", "/", "Night"),
    ("nights", "/nights", "Nights"),
    ("builds", "/builds", "Builds"),
    ("compare", "/compare", "Compare"),
    ("signoffs", "/signoffs", "Sign-off"),
    ("gate", "/gate", "Gate health"),
    ("acks", "/acks", "Acks"),
)
TITLES = {
    400: "That cannot be done",
    401: "Please log in",
    403: "Not allowed",
    404: "Nothing here",
    503: "The results database cannot be read",
}


@cache
def environment() -> Environment:
    """Return the templates, compiled once."""
    made = Environment(
        loader=PackageLoader("nexmark.web", "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
    )
    made.filters.update(FILTERS)
    made.globals.update(menu=MENU, legend=legend, look=look)
    return made


def render(request: Request, template: str, status: int = 200, **content: Any) -> HTMLResponse:
    """Return a page."""
    root = request.scope.get("root_path", "")

    def night_url(run: str, *more: str) -> str:
        dag, _, run_id = run.partition("/")
        return "/".join([f"{root}/night", part(dag), part(run_id), *map(part, more)])

    text = (
        environment()
        .get_template(template)
        .render(
            root=root,
            night_url=night_url,
            asset=lambda name: f"{root}/assets/{name}?v={assets.version(name)}",
            **content,
        )
    )
    return HTMLResponse(text, status_code=status)


def render_error(
    request: Request, status: int, sentence: str, login: str | None = None
) -> HTMLResponse:
    """Return a page that says what is wrong in a sentence."""
    title = TITLES.get(status, "That did not work")
    content = {"title": title, "sentence": sentence, "login": login, "section": ""}
    return render(request, "error.html", status, **content, visitor="")


__all__ = ["environment", "render", "render_error"]
