"""The pages about nights and queries."""

from __future__ import annotations

from fastapi import APIRouter
from starlette.responses import FileResponse, Response

from nexmark.web.policies import ALONE, SCRIPTED
from nexmark.web.views.evidence import alarm_file, night_file
from nexmark.web.views.flames import flame_file
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
    evidence = alarm_file(night, query) is not None
    return visit.page("query.html", "night", page=page, done=DONE.get(done), evidence=evidence)


@router.get("/night/{dag}/{run}/query/{query}/flames/{name}")
def flames(visit: Visiting, dag: str, run: str, query: str, name: str) -> Response:
    """Return a flame graph as it was drawn, with its script that zooms and searches."""
    found = flame_file(visit.night(dag, run), query, name)
    if found is None:
        raise NotFound(f"there is no flame graph {name!r} of {query!r} in {dag}/{run}")
    return FileResponse(
        found, media_type="image/svg+xml", headers={"Content-Security-Policy": SCRIPTED}
    )


@router.get("/night/{dag}/{run}/evidence")
def night_evidence(visit: Visiting, dag: str, run: str) -> Response:
    """Return the evidence of a night as it was written."""
    found = night_file(visit.night(dag, run))
    if found is None:
        raise NotFound(f"there is no evidence of {dag}/{run}")
    return FileResponse(found, media_type="text/html", headers={"Content-Security-Policy": ALONE})


@router.get("/night/{dag}/{run}/query/{query}/evidence")
def alarm_evidence(visit: Visiting, dag: str, run: str, query: str) -> Response:
    """Return the evidence of an alarm as it was written."""
    found = alarm_file(visit.night(dag, run), query)
    if found is None:
        raise NotFound(f"there is no evidence of {query!r} in {dag}/{run}: it did not alarm")
    return FileResponse(found, media_type="text/html", headers={"Content-Security-Policy": ALONE})


__all__ = ["DONE", "router"]
