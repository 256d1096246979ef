"""The one thing that can be done here: accept the figures of a query, or take that back."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated

from fastapi import APIRouter, Form, HTTPException
from starlette.responses import RedirectResponse, Response

from nexmark.config import ACCEPT_DAG_ID
from nexmark.evidence.alarms import acks_of
from nexmark.report.rendering import part
from nexmark.store.accepting import parse_expiry
from nexmark.web.pages import DONE
from nexmark.web.visit import Visit, Visiting

MOST = 2000
"""Characters of a reason."""
LINK = 1000
Text = Annotated[str, Form(max_length=MOST)]

router = APIRouter()


@router.get("/acks")
def acks(visit: Visiting, done: str = "") -> Response:
    """List what was accepted."""
    found = acks_of(visit.store, visit.dags)
    return visit.page("acks.html", "acks", acks=found, done=DONE.get(done))


@router.post("/night/{dag}/{run}/query/{query}/accept")
def accept(
    visit: Visiting,
    dag: str,
    run: str,
    query: str,
    token: Text,
    reason: Text = "",
    expires: Text = "",
    link: Annotated[str, Form(max_length=LINK)] = "",
) -> Response:
    """Accept the figures of a query in a night, in the name of the visitor."""
    _check(visit, token)
    night = visit.night(dag, run)
    if query not in night.queries:
        raise HTTPException(404, f"{query!r} was not among the queries of {night.id}")
    until = parse_expiry(expires, datetime.now(UTC))
    visit.store.accept(
        night.id, visit.name, reason, [query], expires=until, link=link.strip() or None
    )
    place = f"/night/{part(dag)}/{part(run)}/query/{part(query)}?done=accepted#acks"
    return _to(visit, place)


@router.post("/acks/{number}/withdraw")
def withdraw(visit: Visiting, number: int, token: Text, reason: Text = "") -> Response:
    """Take an acceptance back, in the name of the visitor."""
    _check(visit, token)
    if number not in {ack.row.id for ack in acks_of(visit.store, visit.dags)}:
        raise HTTPException(404, f"there is no acceptance {number}")
    visit.store.withdraw(number, visit.name, reason)
    return _to(visit, "/acks?done=withdrawn")


def _check(visit: Visit, token: str) -> None:
    """Refuse who may not accept, and a form that is not from a page of theirs."""
    visit.check(token)
    if not visit.may_accept:
        raise HTTPException(
            403, f"to accept takes the permission to trigger the DAG {ACCEPT_DAG_ID}"
        )


def _to(visit: Visit, place: str) -> Response:
    return RedirectResponse(f"{visit.request.scope.get('root_path', '')}{place}", 303)
