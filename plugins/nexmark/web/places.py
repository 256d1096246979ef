"""Where Airflow's tabs lead: from a DAG, a run or a task to the page of a night or a query."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter
from starlette.responses import RedirectResponse, Response

from nexmark.config import KNOWN_QUERIES
from nexmark.store import history
from nexmark.web.views.evidence import night_file
from nexmark.web.views.night import SORTS, night_page
from nexmark.web.visit import NotFound, Visit, Visiting
from nexmark.web.words import part

router = APIRouter()


@router.get("/")
def newest(visit: Visiting) -> Response:
    """Show the newest night."""
    found = history.nights(visit.store, visit.dags, 1)
    return _night_or_empty(visit, found)


@router.get("/dag/{dag}")
def of_dag(visit: Visiting, dag: str) -> Response:
    """Show the newest night of a DAG."""
    found = history.nights(visit.store, visit.dags & {dag}, 1)
    return _night_or_empty(visit, found, dag)


@router.get("/dag/{dag}/task/{task}")
def of_task(visit: Visiting, dag: str, task: str) -> Response:
    """Lead from a task to its query in the newest night of the DAG."""
    found = history.nights(visit.store, visit.dags & {dag}, 1)
    if not found:
        return _night_or_empty(visit, found, dag)
    return _to_task(visit, dag, found[0].run_id, task)


@router.get("/night/{dag}/{run}")
def night(visit: Visiting, dag: str, run: str, sort: str = "") -> Response:
    """Show a night."""
    return _night(visit, dag, run, sort)


@router.get("/night/{dag}/{run}/task/{task}")
def of_task_instance(visit: Visiting, dag: str, run: str, task: str) -> Response:
    """Lead from a task of a run to its query."""
    return _to_task(visit, dag, run, task)


def query_of(task: str) -> str | None:
    """Return the query that a task is about: it is the name of its task group."""
    group = task.partition(".")[0]
    return group if group in KNOWN_QUERIES else None


def _night(visit: Visit, dag: str, run: str, sort: str) -> Response:
    night = visit.night(dag, run)
    page = night_page(visit.store, night, sort if sort in SORTS else "attention")
    evidence = night_file(night) is not None
    return visit.page("night.html", "night", page=page, evidence=evidence)


def _night_or_empty(visit: Visit, found: Any, dag: str = "") -> Response:
    if found:
        sort = visit.request.query_params.get("sort", "")
        return _night(visit, found[0].dag_id, found[0].run_id, sort)
    return visit.page("empty.html", "night", dag=dag, others=len(visit.dags))


def _to_task(visit: Visit, dag: str, run: str, task: str) -> Response:
    night = visit.night(dag, run)
    query = query_of(task)
    root = visit.request.scope.get("root_path", "")
    address = f"{root}/night/{part(night.dag_id)}/{part(night.run_id)}"
    if query is None:
        return RedirectResponse(address, 303)
    if query not in night.queries:
        raise NotFound(f"{query} was not among the queries of {night.id}")
    return RedirectResponse(f"{address}/query/{part(query)}", 303)


__all__ = ["query_of", "router"]
