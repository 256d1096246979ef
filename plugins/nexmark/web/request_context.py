"""The context of a request: its user, what this user may see, the store, and the page."""

from collections.abc import Collection, Iterator
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from datetime import datetime
from functools import cache, cached_property
from typing import Annotated, Any

from fastapi import Depends, HTTPException
from markupsafe import Markup
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from nexmark.config import ACCEPT_DAG_ID, EXPERIMENT_DAG_ID, OTHER_DAGS
from nexmark.evidence.experiment_evidence import ExperimentEvidence, experiments_of
from nexmark.report.rendering import environment, part, place_address
from nexmark.store import Store, UnknownNight, history
from nexmark.store.history import AnyNight
from nexmark.store.place_history import Place
from nexmark.store.table_rows import BrokerBenchRow, NightRow
from nexmark.web import assets
from nexmark.web.auth import AirflowAccess, User, check_form, form_token

MENU = (
    ("overview", "/", "Overview"),
    ("night", "/newest", "Night"),
    ("queries", "/queries", "Queries"),
    ("nights", "/nights", "Nights"),
    ("builds", "/builds", "Builds"),
    ("compare", "/compare", "Compare"),
    ("signoffs", "/signoffs", "Sign-off"),
    ("experiments", "/experiments", "Experiments"),
    ("gate", "/gate", "Gate health"),
    ("kafka", "/kafka", "Kafka"),
    ("acks", "/acks", "Acks"),
)
TITLES = {
    400: "That cannot be done",
    401: "Please log in",
    403: "Not allowed",
    404: "Nothing here",
    503: "A database cannot be read",
}


@dataclass(frozen=True)
class StaticCopy:
    """A copy of the pages as files.

    ``written`` is the moment when it is written, ``addresses`` are the pages and files that it has.
    """

    written: datetime
    addresses: Collection[str]


@dataclass
class RequestContext:
    """What a route needs to answer a request.

    Attributes:
        request: the request.
        user: the user, as Airflow's auth manager has it.
        access: what users may see and do.
        opened: closes after the response what was opened for it.
    """

    request: Request
    user: User
    access: AirflowAccess
    opened: ExitStack

    @cached_property
    def store(self) -> Store:
        """The results database; a page (GET) reads all of it in one transaction."""
        store: Store = self.request.app.state.database.store()
        if self.request.method != "GET":
            return store
        return self.opened.enter_context(store.at_one_moment())

    @cached_property
    def dags(self) -> frozenset[str]:
        """The DAGs with nights whose runs the user may read."""
        return self.access.readable(self.user, history.dag_ids(self.store))

    @cached_property
    def name(self) -> str:
        """The user's name."""
        return self.access.name(self.user)

    @cached_property
    def may_accept(self) -> bool:
        """Whether the user may accept figures."""
        return self.access.may_accept(self.user)

    def night(self, dag: str, run: str, query: str = "") -> NightRow:
        """Return a night that the user may see; 404 for any other, or one without ``query``."""
        name, night = f"{dag}/{run}", None
        if dag in self.dags:
            with suppress(UnknownNight):
                night = self.store.night(name)
        if night is None:
            raise HTTPException(
                404,
                f"there is no night {name!r}: its preflight has not passed (yet), or it is not "
                "for you to see; the list of nights has all others",
            )
        if query and query not in night.queries:
            raise HTTPException(404, f"{query!r} was not among the queries of {night.id}")
        return night

    def experiments(self, run: str | None = None) -> list[ExperimentEvidence]:
        """Return all experiments, or the one of ``run``; none if the user may not see them."""
        may_see = self.access.readable(self.user, {EXPERIMENT_DAG_ID})
        return experiments_of(self.store, run) if may_see else []

    def broker_benches(self) -> list[BrokerBenchRow]:
        """Return the newest figures of each Kafka; none if the user may read no DAG of ours."""
        ours = {*OTHER_DAGS, *history.dag_ids(self.store)}
        return self.store.broker_benches() if self.access.readable(self.user, ours) else []

    @property
    def copy(self) -> StaticCopy | None:
        """The static copy of the pages that is being written; None if a person asks for a page."""
        copy: StaticCopy | None = self.request.app.state.copy
        return copy

    def offers(self, address: str) -> bool:
        """Return whether a page may have a link to the address: a static copy lacks some."""
        return self.copy is None or address in self.copy.addresses

    def token(self) -> str:
        """Return the signed token for a form of this user."""
        return form_token(self.access.secret(), self.name)

    def check(self, given: str) -> None:
        """Raise ForgedForm if ``given`` is not this user's token; 403 if they may not accept."""
        check_form(self.request, given, self.access.secret(), self.name, self.access.origins())
        if not self.may_accept:
            why = f"to accept, you need the permission to trigger the DAG {ACCEPT_DAG_ID}"
            raise HTTPException(403, why)

    def page(self, template: str, section: str, **content: Any) -> Response:
        """Render a page of the template; ``section`` is its entry in the menu."""
        content |= {"section": section, "visitor": self.name, "may_accept": self.may_accept}
        token = self.token if self.may_accept else None
        return render(self.request, template, **content, token=token)


def _context(request: Request) -> Iterator[RequestContext]:
    """Yield the context of a user whom ``web_app.create_app`` has let in; 401 for anybody else."""
    user = getattr(request.state, "nexmark_user", None)
    if user is None:
        raise HTTPException(401, "Not authenticated")
    with ExitStack() as opened:
        yield RequestContext(request, user, request.app.state.access, opened)


Context = Annotated[RequestContext, Depends(_context)]  # the dependency of a route


def render(request: Request, template: str, status: int = 200, **content: Any) -> HTMLResponse:
    """Render a page.

    Args:
        request: the request that the page answers.
        template: the name of the template.
        status: the HTTP status.
        content: the variables of the template.
    """
    root = request.scope.get("root_path", "")

    @cache
    def night_url(run: str, *more: str) -> Markup:
        dag, _, run_id = run.partition("/")
        return Markup("/".join([f"{root}/night", part(dag), part(run_id), *map(part, more)]))

    def place_url(place: Place | AnyNight, query: str = "", **more: str) -> str:
        return f"{root}{place_address(place, query, **more)}"

    def asset(name: str) -> str:
        return f"{root}/assets/{name}?v={assets.version(name)}"

    copy: StaticCopy | None = request.app.state.copy
    menu = [entry for entry in MENU if copy is None or entry[1] in copy.addresses]
    of_site = {"layout": "base.html", "alone": False, "menu": menu, "root": root, "copy": copy}
    page = environment().get_template(template)
    urls = {"night_url": night_url, "place_url": place_url, "asset": asset}
    text = page.render(**of_site, **urls, **content)
    return HTMLResponse(text, status_code=status)


def render_error(
    request: Request, status: int, sentence: str, login: str | None = None
) -> HTMLResponse:
    """Render a page that says what is wrong.

    Args:
        request: the request that failed.
        status: the HTTP status.
        sentence: what is wrong, and what to do about it.
        login: the address of the login page, for a user who is not logged in.
    """
    title = TITLES.get(status, "That did not work")
    content = {"title": title, "sentence": sentence, "login": login, "section": ""}
    return render(request, "error.html", status, **content, visitor="")
