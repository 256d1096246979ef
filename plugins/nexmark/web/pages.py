"""The pages: each renders a model of ``nexmark.evidence`` by its template.

One thing can be done here: accept the figures of a query, or take that back.
"""

from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

from fastapi import APIRouter, Form, HTTPException
from starlette.responses import FileResponse, RedirectResponse, Response

from nexmark.config import KNOWN_QUERIES
from nexmark.evidence.alarms import acks_of
from nexmark.evidence.build_comparison import build_lines, compare_builds
from nexmark.evidence.gate_health import gate_health
from nexmark.evidence.night_evidence import SORTS, night_evidence
from nexmark.evidence.night_list import nights_page, overview
from nexmark.evidence.query_evidence import query_evidence
from nexmark.evidence.signoffs import alarm_file, evidence_file, signoff_page, signoffs_of
from nexmark.flames.flame_files import flames_of
from nexmark.night.run_directory import RunDirectory
from nexmark.report.charts import query_charts, time_charts, verdicts_chart
from nexmark.report.rendering import part
from nexmark.report.table import report_text
from nexmark.store import history
from nexmark.store.accepting import parse_expiry
from nexmark.web.visit import Visit, Visiting

ALONE = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; sandbox"
"""The Content-Security-Policy for files to be read by themselves: no script, no origin."""

SCRIPTED = (
    "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; "
    "sandbox allow-scripts"
)
"""For drawings with a script of their own: it has no origin, and asks nobody."""

DONE = {
    "accepted": (
        "Accepted. Its figures are the baseline from now on; clear the task `judge` of the night, "
        "and it is judged with that."
    ),
    "withdrawn": "Withdrawn. The acceptance before it counts again.",
}
"""The messages after a form; no other text in an address is shown."""

router = APIRouter()


@router.get("/")
def first(visit: Visiting) -> Response:
    """Show all engines at a glance."""
    page = overview(visit.store, visit.dags)
    runs = visit.door.next_runs({one.line.night.dag_id for one in page.engines})
    return visit.page("overview.html", "overview", page=page, runs=runs)


@router.get("/newest")
@router.get("/dag/{dag}")
@router.get("/dag/{dag}/task/{task}")
def newest(visit: Visiting, dag: str = "", task: str = "", sort: str = "") -> Response:
    """Show the newest night, of all or of a DAG, or lead from a task to its query in it."""
    found = history.nights(visit.store, visit.dags & {dag} if dag else visit.dags, 1)
    if not found:
        return visit.page("empty.html", "night", dag=dag, others=len(visit.dags))
    show, last = (of_task, task) if task else (night, sort)
    return show(visit, found[0].dag_id, found[0].run_id, last)


@router.get("/night/{dag}/{run}")
def night(visit: Visiting, dag: str, run: str, sort: str = "") -> Response:
    """Show a night."""
    night = visit.night(dag, run)
    page = night_evidence(visit.store, night, deep=False)
    sort = sort if sort in SORTS else "attention"
    return visit.page(
        "night.html",
        "night",
        page=page,
        sort=sort,
        lines=sorted(page.lines, key=SORTS[sort]),
        text=report_text(page.report),
        evidence=alarm_file(night) is not None,
    )


@router.get("/night/{dag}/{run}/task/{task}")
def of_task(visit: Visiting, dag: str, run: str, task: str) -> Response:
    """Lead from a task of a run to its query."""
    query = query_of(task)
    visit.night(dag, run, query)
    return _to(visit, _address(dag, run, query))


@router.get("/nights")
def nights(visit: Visiting, page: int = 1) -> Response:
    """List the nights."""
    return visit.page("nights.html", "nights", page=nights_page(visit.store, visit.dags, page))


@router.get("/night/{dag}/{run}/query/{query}")
def query(visit: Visiting, dag: str, run: str, query: str, done: str = "") -> Response:
    """Show a query of a night."""
    night = visit.night(dag, run, query)
    page = query_evidence(visit.store, night, query)
    return visit.page(
        "query.html",
        "night",
        page=page,
        charts=query_charts(page),
        over_time=time_charts(page),
        done=DONE.get(done),
        evidence=alarm_file(night, query) is not None,
    )


@router.get("/night/{dag}/{run}/query/{query}/flames/{name}")
def flames(visit: Visiting, dag: str, run: str, query: str, name: str) -> Response:
    """Return a flame graph as it was drawn, with its script that zooms and searches."""
    graphs = flames_of(RunDirectory(Path(visit.night(dag, run).directory)).flames, query)
    found = graphs.files.get(name) if graphs else None
    if found is not None and (found.suffix != ".svg" or not found.is_file()):
        found = None
    what = f"flame graph {name!r} of {query!r} in {dag}/{run}"
    return _file(found, what, SCRIPTED, "image/svg+xml")


@router.get("/night/{dag}/{run}/evidence")
@router.get("/night/{dag}/{run}/query/{query}/evidence")
def night_file(visit: Visiting, dag: str, run: str, query: str = "") -> Response:
    """Return the evidence of a night, or of an alarm in it, as it was written."""
    what = f"{query!r} in {dag}/{run}: it did not alarm" if query else f"{dag}/{run}"
    return _file(alarm_file(visit.night(dag, run), query), f"evidence of {what}")


@router.get("/builds")
def builds(visit: Visiting) -> Response:
    """List the builds."""
    return visit.page("builds.html", "builds", lines=build_lines(visit.store, visit.dags))


@router.get("/compare")
def compare(visit: Visiting, new: str = "", old: str = "") -> Response:
    """Compare two of the builds that the visitor may see."""
    lines = build_lines(visit.store, visit.dags)
    page = None
    if new and old:
        known = {build.id: build for build, _ in lines}
        for build in (new, old):
            if build not in known:
                what = f"there is no build {build!r} here; the list of builds has all"
                raise HTTPException(404, what)
        page = compare_builds(visit.store, visit.dags, known[new], known[old])
    return visit.page("compare.html", "compare", lines=lines, page=page)


@router.get("/signoffs")
def signoffs(visit: Visiting) -> Response:
    """List the sign-offs."""
    return visit.page("signoffs.html", "signoffs", signoffs=signoffs_of(visit.store, visit.dags))


@router.get("/signoff/{dag}/{run}")
def signoff(visit: Visiting, dag: str, run: str) -> Response:
    """Show a sign-off."""
    one, bundles = signoff_page(visit.store, visit.night(dag, run))
    return visit.page("signoff.html", "signoffs", one=one, bundles=bundles)


@router.get("/signoff/{dag}/{run}/evidence/{bundle}")
def signoff_file(visit: Visiting, dag: str, run: str, bundle: str) -> Response:
    """Return the evidence of a sign-off as it was written."""
    found = evidence_file(visit.night(dag, run), bundle)
    return _file(found, f"evidence {bundle!r} of {dag}/{run}")


@router.get("/experiments")
def experiments(visit: Visiting) -> Response:
    """List the experiments."""
    return visit.page("experiments.html", "experiments", experiments=visit.experiments())


@router.get("/experiment/{run}")
def experiment(visit: Visiting, run: str) -> Response:
    """Show a measured experiment."""
    found = visit.experiments(run)
    if not found:
        raise HTTPException(404, f"there is no experiment {run!r}; the list has all")
    return visit.page("experiment.html", "experiments", page=found[0])


@router.get("/gate")
def gate(visit: Visiting) -> Response:
    """Show how good the gate is."""
    page = gate_health(visit.store, visit.dags)
    return visit.page("gate.html", "gate", page=page, chart=verdicts_chart(page))


@router.get("/kafka")
def kafka(visit: Visiting) -> Response:
    """Show what the brokers can do."""
    return visit.page("kafka.html", "kafka", found=visit.broker_benches())


def query_of(task: str) -> str:
    """Return the query that a task is about, "" for none: it is the name of its task group."""
    group = task.partition(".")[0]
    return group if group in KNOWN_QUERIES else ""


def _file(path: Path | None, what: str, policy: str = ALONE, kind: str = "text/html") -> Response:
    if path is None:
        raise HTTPException(404, f"there is no {what}")
    return FileResponse(path, media_type=kind, headers={"Content-Security-Policy": policy})


MOST = 2000  # characters of a reason
LINK = 1000
Text = Annotated[str, Form(max_length=MOST)]


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
    visit.check(token)
    night = visit.night(dag, run, query)
    until = parse_expiry(expires, datetime.now(UTC))
    visit.store.accept(night.id, visit.name, reason, [query], expires=until, link=link)
    return _to(visit, f"{_address(dag, run, query)}?done=accepted#acks")


@router.post("/acks/{number}/withdraw")
def withdraw(visit: Visiting, number: int, token: Text, reason: Text = "") -> Response:
    """Take an acceptance back, in the name of the visitor."""
    visit.check(token)
    if number not in {ack.row.id for ack in acks_of(visit.store, visit.dags)}:
        raise HTTPException(404, f"there is no acceptance {number}")
    visit.store.withdraw(number, visit.name, reason)
    return _to(visit, "/acks?done=withdrawn")


def _address(dag: str, run: str, query: str = "") -> str:
    return f"/night/{part(dag)}/{part(run)}" + (f"/query/{part(query)}" if query else "")


def _to(visit: Visit, place: str) -> Response:
    return RedirectResponse(f"{visit.request.scope.get('root_path', '')}{place}", 303)
