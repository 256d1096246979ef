"""The routes of the pages: each renders a view model of ``nexmark.evidence`` with its template.

The only actions are to accept the figures of a query, and to withdraw an acceptance.
"""

from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

from fastapi import APIRouter, Depends, Form, HTTPException
from starlette.responses import FileResponse, RedirectResponse, Response

from nexmark.config import known_queries
from nexmark.evidence.alarms import acks_of, acks_page, together
from nexmark.evidence.build_comparison import (
    build_lines,
    build_named,
    builds_page,
    compare_builds,
)
from nexmark.evidence.gate_health import gate_health
from nexmark.evidence.night_evidence import SORTS, night_evidence
from nexmark.evidence.night_list import NOT_JUDGED, nights_page, overview
from nexmark.evidence.query_evidence import query_evidence
from nexmark.evidence.query_grid import query_grid
from nexmark.evidence.query_over_time import query_over_time
from nexmark.evidence.signoffs import alarm_file, evidence_file, signoff_page, signoffs_of
from nexmark.flames.flame_files import flames_of
from nexmark.model import query_name
from nexmark.night.run_directory import RunDirectory
from nexmark.report.charts import over_time_charts, query_charts, time_charts, verdicts_chart
from nexmark.report.rendering import part
from nexmark.report.table import report_text
from nexmark.store import history
from nexmark.store.accepting import parse_expiry
from nexmark.store.history import MeasuredBuild
from nexmark.store.place_history import Place
from nexmark.web.request_context import Context, RequestContext
from nexmark.web.wanted import AskedPlace, Wanted


def _query(query: str = "") -> str:
    return query_name(query)


QueryName = Annotated[str, Depends(_query)]
"""The query in an address, Q5 as q5; "" where the address has none."""

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

UNFINISHED = {
    True: "wait for its tasks; where none of them runs, see in Airflow which has failed",
    False: (
        "its run is over and no task goes on: see in Airflow which task failed and clear it, or "
        "leave it, and the next night is compared as if this one had not been"
    ),
    None: "Airflow has no such run any more: trigger the night again if its verdict is needed",
}
"""What to do about a night without a verdict, by whether its run goes on."""

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
    unfinished = ""
    if page.colour == NOT_JUDGED and context.copy is None:  # a copy is read later
        unfinished = UNFINISHED[context.access.is_running(dag, run)]
    return context.page(
        "night.html",
        "night",
        page=page,
        unfinished=unfinished,
        sort=sort,
        lines=sorted(page.lines, key=SORTS[sort]),
        text=report_text(page.report),
        evidence=context.offers(f"{_address(dag, run)}/evidence") and alarm_file(night) is not None,
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
def nights(context: Context, wanted: Wanted, page: int = 1) -> Response:
    """List the nights."""
    listed = nights_page(context.store, context.dags, page, wanted)
    return context.page("nights.html", "nights", page=listed)


@router.get("/queries")
def queries(
    context: Context, place: AskedPlace, since: str = "", day: str = "", sort: str = ""
) -> Response:
    """Show all queries over the last nights.

    Args:
        context: the context of the request.
        place: the engine, workload and cluster; by default where a night was measured last.
        since: the build since which changes are summed up, as ``chains_since`` takes it; "night"
            for the baseline of the last night, which sums up nothing; "day" for ``day``.
        day: a day; it counts if ``since`` is empty, too.
        sort: the order, one of ``GRID_SORTS``; by attention for any other.
    """
    beginning = day if day and since in ("", "day") else since
    beginning = "" if beginning == "night" else beginning
    page = query_grid(context.store, context.dags, place, beginning, sort)
    if page is None and any(place):
        raise HTTPException(404, f"no night of {_words(place)} is judged, or it is not for you")
    return context.page("queries.html", "queries", page=page)


@router.get("/query/{query}")
def over_time(context: Context, query: QueryName, place: AskedPlace, metric: str = "") -> Response:
    """Show a query over all nights.

    Args:
        context: the context of the request.
        query: the query, or the suite.
        place: the engine, workload and cluster; by default where it was measured last.
        metric: the metric; the metric that decides for any that is not known.
    """
    page = query_over_time(context.store, context.dags, query, place, metric)
    if page is None:
        where = f" of {_words(place)}" if any(place) else ""
        raise HTTPException(
            404, f"no night{where} has judged {query!r}, or it is not for you; see the queries"
        )
    charts = over_time_charts(page)
    return context.page("over_time.html", "queries", page=page, charts=charts)


@router.get("/night/{dag}/{run}/query/{query}")
def query(context: Context, dag: str, run: str, query: QueryName, done: str = "") -> Response:
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
def flames(context: Context, dag: str, run: str, query: QueryName, name: str) -> Response:
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
def night_file(context: Context, dag: str, run: str, query: QueryName) -> Response:
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
def builds(context: Context, wanted: Wanted) -> Response:
    """List the builds."""
    page = builds_page(context.store, context.dags, wanted)
    return context.page("builds.html", "builds", page=page)


@router.get("/compare")
def compare(context: Context, new: str = "", old: str = "") -> Response:
    """Compare two of the builds that the user may see.

    Args:
        context: the context of the request.
        new: the id of a build, or the begin of its id; "" to choose.
        old: the same of the build with which it is compared.
    """
    store, dags = context.store, context.dags
    builds = [build for build, _ in build_lines(store, dags)]
    page = None
    if new and old:
        page = compare_builds(store, dags, _build(context, new), _build(context, old))
        builds += [build for build in (page.new, page.old) if build not in builds]
    return context.page("compare.html", "compare", builds=builds, page=page)


def _build(context: RequestContext, text: str) -> MeasuredBuild:
    """Return the build with an id or with a unique begin of an id; 404 if there is none."""
    build = build_named(context.store, context.dags, text)
    if build is None:
        raise HTTPException(404, f"there is no build {text!r} here; the list of builds has all")
    return build


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


def _words(place: Place) -> str:
    return ", ".join(filter(None, place))


def query_of(task: str) -> str:
    """Return the query that a task is about, which is the name of its task group; "" for none."""
    group = task.partition(".")[0]
    return group if group in known_queries() else ""


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
MAX_QUERIES = 100
Text = Annotated[str, Form(max_length=MAX_TEXT_LENGTH)]


@router.get("/acks")
def acks(context: Context, wanted: Wanted, done: str = "") -> Response:
    """List the acceptances."""
    page = acks_page(context.store, context.dags, wanted)
    return context.page("acks.html", "acks", page=page, done=DONE.get(done))


@router.post("/night/{dag}/{run}/query/{query}/accept")
def accept(
    context: Context,
    dag: str,
    run: str,
    query: QueryName,
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
def withdraw(
    context: Context,
    number: int,
    token: Text,
    reason: Text = "",
    queries: Annotated[list[str] | None, Form(max_length=MAX_QUERIES)] = None,
) -> Response:
    """Withdraw an acceptance, in the name of the user.

    Args:
        context: the context of the request.
        number: the number of the acceptance.
        token: the token of the form.
        reason: why the acceptance is withdrawn.
        queries: the queries that are withdrawn of all that were accepted together with it; None
            for the acceptance alone.
    """
    context.check(token)
    acks = {ack.row.id: ack for ack in acks_of(context.store, context.dags)}
    if number not in acks:
        raise HTTPException(404, f"there is no acceptance {number}")
    numbers = [number]
    if queries is not None:
        groups = together(acks.values())
        group = next(group for group in groups if acks[number] in group.acks)
        numbers = [ack.row.id for ack in group.acks if ack.row.query in queries]
    if not numbers:
        raise HTTPException(400, "no query was chosen; choose what is to be withdrawn")
    context.store.withdraw_all(numbers, context.name, reason)
    return _to(context, "/acks?done=withdrawn")


def _address(dag: str, run: str, query: str = "") -> str:
    return f"/night/{part(dag)}/{part(run)}" + (f"/query/{part(query)}" if query else "")


def _to(context: RequestContext, address: str) -> Response:
    """Return a redirect to an address of ours; the browser requests it with GET."""
    return RedirectResponse(f"{context.request.scope.get('root_path', '')}{address}", 303)
