"""The pages about builds, sign-offs and the gate, and the evidence of a sign-off."""

from __future__ import annotations

from collections.abc import Sequence

from fastapi import APIRouter
from starlette.responses import FileResponse, Response

from nexmark.store.models import Build
from nexmark.web.policies import ALONE
from nexmark.web.views.builds import BuildLine, build_lines, compare_page
from nexmark.web.views.gate import gate_page
from nexmark.web.views.signoffs import evidence_file, signoff_page, signoffs_of
from nexmark.web.visit import NotFound, Visit, Visiting

router = APIRouter()


@router.get("/builds")
def builds(visit: Visiting) -> Response:
    """List the builds."""
    lines = build_lines(visit.store, visit.dags)
    return visit.page("builds.html", "builds", lines=lines)


@router.get("/compare")
def compare(visit: Visiting, new: str = "", old: str = "") -> Response:
    """Compare two builds."""
    lines = build_lines(visit.store, visit.dags)
    page = None
    if new and old:
        both = _build(visit, lines, new), _build(visit, lines, old)
        page = compare_page(visit.store, visit.dags, *both)
    return visit.page("compare.html", "compare", lines=lines, page=page)


@router.get("/signoffs")
def signoffs(visit: Visiting) -> Response:
    """List the sign-offs."""
    found = signoffs_of(visit.store, visit.dags)
    return visit.page("signoffs.html", "signoffs", signoffs=found)


@router.get("/signoff/{dag}/{run}")
def signoff(visit: Visiting, dag: str, run: str) -> Response:
    """Show a sign-off."""
    page = signoff_page(visit.store, visit.night(dag, run))
    return visit.page("signoff.html", "signoffs", page=page)


@router.get("/signoff/{dag}/{run}/evidence/{bundle}")
def evidence(visit: Visiting, dag: str, run: str, bundle: str) -> Response:
    """Return the evidence of a sign-off as it was written."""
    found = evidence_file(visit.night(dag, run), bundle)
    if found is None:
        raise NotFound(f"there is no evidence {bundle!r} of {dag}/{run}")
    return FileResponse(found, media_type="text/html", headers={"Content-Security-Policy": ALONE})


@router.get("/gate")
def gate(visit: Visiting) -> Response:
    """Show how good the gate is."""
    return visit.page("gate.html", "gate", page=gate_page(visit.store, visit.dags))


def _build(visit: Visit, lines: Sequence[BuildLine], build: str) -> Build:
    """Return one of the builds that the visitor may see."""
    if build not in {line.build.id for line in lines}:
        raise NotFound(f"there is no build {build!r} here; the list of builds has all")
    return visit.store.build(build)


__all__ = ["router"]
