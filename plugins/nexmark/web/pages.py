"""The routes of the pages: each renders a view model of ``nexmark.evidence`` with its template.

The only actions are to accept the figures of a query, and to withdraw an acceptance.
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
from nexmark.web.request_context import Context, RequestContext

ISOLATED = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; sandbox"
"""The Content-Security-Policy of stored files: they run no script and have no origin."""

SCRIPTED = (
    "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; "
    "sandbox allow-scripts"
)
"""The same for drawings with a script: it has no origin, and can load nothing."""

DONE = {
    "accepted": (
        "Accepted. Its figures are the baseline from now on; clear the task `judge` of the night, "
        "and it is judged with that."
    ),
    "withdrawn": "Withdrawn. The acceptance before it counts again.",
}
"""The messages after a form. An address names one by its key: it cannot show another text."""

router = APIRouter()


@router.get("/")
def first(context: Context) -> Response:
    """Show all engines at a glance."""
    page = overview(context.store, context.dags)
    runs = context.access.next_runs({one.line.night.dag_id for one in page.engines})
    return context.page("overview.html", "overview", page=page, runs=runs)


@router.get("/newest")
@router.get("/dag/{dag}")
@router.get("/dag/{dag}/task/{task}")
def newest(context: Context, dag: str = "", task: str = "", sort: str = "") -> Response:
    """Show the newest night of all DAGs or of one DAG, or redirect to a query of that night.

    Args:
        context: the context of the request.
        dag: the DAG; "" for all that the user may read.
        task: a task, whose query to show; "" for the night.
        sort: the order of the queries on the page of the night.
    """
    nights = history.nights(context.store, context.dags & {dag} if dag else context.dags, 1)
    if not nights:
        return context.page("empty.html", "night", dag=dag, others=len(context.dags))
    show, last = (of_task, task) if task else (night, sort)
    return show(context, nights[0].dag_id, nights[0].run_id, last)


@router.get("/night/{dag}/{run}")
def night(context: Context, dag: str, run: str, sort: str = "") -> Response:
    """Show a night.

    Args:
        context: the context of the request.
        dag: the DAG of the night.
        run: the DAG run of the night.
        sort: the order of its queries, one of ``SORTS``; by attention for any other.
    """
    night = context.night(dag, run)
    page = night_evidence(context.store, night, deep=False)
    sort = sort if sort in SORTS else "attention"
    return context.page(
        "night.html",
        "night",
        page=page,
        sort=sort,
        lines=sorted(page.lines, key=SORTS[sort]),
        text=report_text(page.report),
        evidence=alarm_file(night) is not None,
    )


@router.get("/night/{dag}/{run}/task/{task}")
def of_task(context: Context, dag: str, run: str, task: str) -> Response:
    """Redirect from a task of a run to its query.

    Args:
        context: the context of the request.
        dag: the DAG of the night.
        run: the DAG run of the night.
        task: the id of the task.
    """
    query = query_of(task)
    context.night(dag, run, query)
    return _to(context, _address(dag, run, query))


@router.get("/nights")
def nights(context: Context, page: int = 1) -> Response:
    """List the nights."""
    return context.page(
        "nights.html", "nights", page=nights_page(context.store, context.dags, page)
    )


@router.get("/night/{dag}/{run}/query/{query}")
def query(context: Context, dag: str, run: str, query: str, done: str = "") -> Response:
    """Show a query of a night.

    Args:
        context: the context of the request.
        dag: the DAG of the night.
        run: the DAG run of the night.
        query: the query.
        done: the key of the message to show, one of ``DONE``; "" for none.
    """
    night = context.night(dag, run, query)
    page = query_evidence(context.store, night, query)
    return context.page(
        "query.html",
        "night",
        page=page,
        charts=query_charts(page),
        over_time=time_charts(page),
        done=DONE.get(done),
        evidence=alarm_file(night, query) is not None,
    )


@router.get("/night/{dag}/{run}/query/{query}/flames/{name}")
def flames(context: Context, dag: str, run: str, query: str, name: str) -> Response:
    """Return a flame graph as the night has drawn it; its script zooms and searches.

    Args:
        context: the context of the request.
        dag: the DAG of the night.
        run: the DAG run of the night.
        query: the query.
        name: which graph: baseline, candidate or difference.
    """
    graphs = flames_of(RunDirectory(Path(context.night(dag, run).directory)).flames, query)
    file = graphs.files.get(name) if graphs else None
    if file is not None and (file.suffix != ".svg" or not file.is_file()):
        file = None
    what = f"flame graph {name!r} of {query!r} in {dag}/{run}"
    return _file(file, what, SCRIPTED, "image/svg+xml")


@router.get("/night/{dag}/{run}/evidence")
@router.get("/night/{dag}/{run}/query/{query}/evidence")
def night_file(context: Context, dag: str, run: str, query: str = "") -> Response:
    """Return the evidence file of a night, or of an alarm in it, as the night has written it.

    Args:
        context: the context of the request.
        dag: the DAG of the night.
        run: the DAG run of the night.
        query: the query that alarmed; "" for the file of the night.
    """
    what = f"{query!r} in {dag}/{run}: it did not alarm" if query else f"{dag}/{run}"
    return _file(alarm_file(context.night(dag, run), query), f"evidence of {what}")


@router.get("/builds")
def builds(context: Context) -> Response:
    """List the builds."""
    return context.page("builds.html", "builds", lines=build_lines(context.store, context.dags))


@router.get("/compare")
def compare(context: Context, new: str = "", old: str = "") -> Response:
    """Compare two of the builds that the user may see."""
    lines = build_lines(context.store, context.dags)
    page = None
    if new and old:
        known = {build.id: build for build, _ in lines}
        for build in (new, old):
            if build not in known:
                what = f"there is no build {build!r} here; the list of builds has all"
                raise HTTPException(404, what)
        page = compare_builds(context.store, context.dags, known[new], known[old])
    return context.page("compare.html", "compare", lines=lines, page=page)


@router.get("/signoffs")
def signoffs(context: Context) -> Response:
    """List the sign-offs."""
    return context.page(
        "signoffs.html", "signoffs", signoffs=signoffs_of(context.store, context.dags)
    )


@router.get("/signoff/{dag}/{run}")
def signoff(context: Context, dag: str, run: str) -> Response:
    """Show a sign-off."""
    one, bundles = signoff_page(context.store, context.night(dag, run))
    return context.page("signoff.html", "signoffs", one=one, bundles=bundles)


@router.get("/signoff/{dag}/{run}/evidence/{bundle}")
def signoff_file(context: Context, dag: str, run: str, bundle: str) -> Response:
    """Return an evidence file of a sign-off, as the sign-off has written it.

    Args:
        context: the context of the request.
        dag: the DAG of the sign-off.
        run: the DAG run of the sign-off.
        bundle: the name of the file.
    """
    file = evidence_file(context.night(dag, run), bundle)
    return _file(file, f"evidence {bundle!r} of {dag}/{run}")


@router.get("/experiments")
def experiments(context: Context) -> Response:
    """List the experiments."""
    return context.page("experiments.html", "experiments", experiments=context.experiments())


@router.get("/experiment/{run}")
def experiment(context: Context, run: str) -> Response:
    """Show a measured experiment."""
    measured = context.experiments(run)
    if not measured:
        raise HTTPException(404, f"there is no experiment {run!r}; the list has all")
    return context.page("experiment.html", "experiments", page=measured[0])


@router.get("/gate")
def gate(context: Context) -> Response:
    """Show how often the gate is right: its self-tests, and its verdicts over time."""
    page = gate_health(context.store, context.dags)
    return context.page("gate.html", "gate", page=page, chart=verdicts_chart(page))


@router.get("/kafka")
def kafka(context: Context) -> Response:
    """Show the newest benchmark of each Kafka."""
    return context.page("kafka.html", "kafka", benchmarks=context.broker_benches())


def query_of(task: str) -> str:
    """Return the query that a task is about, which is the name of its task group; "" for none."""
    group = task.partition(".")[0]
    return group if group in KNOWN_QUERIES else ""


def _file(
    path: Path | None, what: str, policy: str = ISOLATED, kind: str = "text/html"
) -> Response:
    """Return a stored file; 404 if there is none.

    Args:
        path: the path of the file; None if there is none.
        what: the file in words, for the error.
        policy: its Content-Security-Policy.
        kind: its media type.
    """
    if path is None:
        raise HTTPException(404, f"there is no {what}")
    return FileResponse(path, media_type=kind, headers={"Content-Security-Policy": policy})


MAX_TEXT_LENGTH = 2000
MAX_LINK_LENGTH = 1000
Text = Annotated[str, Form(max_length=MAX_TEXT_LENGTH)]


@router.get("/acks")
def acks(context: Context, done: str = "") -> Response:
    """List the acceptances."""
    accepted = acks_of(context.store, context.dags)
    return context.page("acks.html", "acks", acks=accepted, done=DONE.get(done))


@router.post("/night/{dag}/{run}/query/{query}/accept")
def accept(
    context: Context,
    dag: str,
    run: str,
    query: str,
    token: Text,
    reason: Text = "",
    expires: Text = "",
    link: Annotated[str, Form(max_length=MAX_LINK_LENGTH)] = "",
) -> Response:
    """Accept the figures of a query in a night, in the name of the user.

    Args:
        context: the context of the request.
        dag: the DAG of the night.
        run: the DAG run of the night.
        query: the query.
        token: the token of the form.
        reason: why the figures are accepted.
        expires: a date (2027-01-31), or days from now (30d); "" for never.
        link: an address that explains the change.
    """
    context.check(token)
    night = context.night(dag, run, query)
    until = parse_expiry(expires, datetime.now(UTC))
    context.store.accept(night.id, context.name, reason, [query], expires=until, link=link)
    return _to(context, f"{_address(dag, run, query)}?done=accepted#acks")


@router.post("/acks/{number}/withdraw")
def withdraw(context: Context, number: int, token: Text, reason: Text = "") -> Response:
    """Withdraw an acceptance, in the name of the user.

    Args:
        context: the context of the request.
        number: the number of the acceptance.
        token: the token of the form.
        reason: why the acceptance is withdrawn.
    """
    context.check(token)
    if number not in {ack.row.id for ack in acks_of(context.store, context.dags)}:
        raise HTTPException(404, f"there is no acceptance {number}")
    context.store.withdraw(number, context.name, reason)
    return _to(context, "/acks?done=withdrawn")


def _address(dag: str, run: str, query: str = "") -> str:
    return f"/night/{part(dag)}/{part(run)}" + (f"/query/{part(query)}" if query else "")


def _to(context: RequestContext, address: str) -> Response:
    """Return a redirect to an address of ours; the browser requests it with GET."""
    return RedirectResponse(f"{context.request.scope.get('root_path', '')}{address}", 303)
