"""The pages about nights and queries."""

from __future__ import annotations

from fastapi import APIRouter
from starlette.responses import Response

from nexmark.web.views.nights import nights_page
from nexmark.web.views.query import query_page
from nexmark.web.visit import NotFound, Visiting

DONE = {
    "accepted": (
        "Accepted. Its figures are the baseline from now on; clear the task `judge` of the night, "
        "and it is judged with that."
    ),
    "withdrawn": "Withdrawn. The acceptance before it counts again.",
}
"""What is said after a form; nothing else that comes with an address is shown."""


router = APIRouter()


@router.get("/nights")
def nights(visit: Visiting, page: int = 1) -> Response:
    """List the nights."""
    return visit.page("nights.html", "nights", page=nights_page(visit.store, visit.dags, page))


@router.get("/night/{dag}/{run}/query/{query}")
def query(
    visit: Visiting,
    dag: str,
    run: str,
    query: str,
    done: str = "",
) -> Response:
    """Show a query of a night."""
    night = visit.night(dag, run)
    if query not in night.queries:
        raise NotFound(f"{query!r} was not among the queries of {night.id}")
    page = query_page(visit.store, night, query)
    return visit.page("query.html", "night", page=page, done=DONE.get(done))


__all__ = ["DONE", "router"]
