"""One request by one person: what they may see, looked up in the store, and the page of it."""

from collections.abc import Iterator
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Annotated, Any

from fastapi import Depends, HTTPException
from markupsafe import Markup
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from nexmark.config import ACCEPT_DAG_ID, EXPERIMENT_DAG_ID, OTHER_DAGS
from nexmark.evidence.experiment_evidence import ExperimentEvidence, experiments_of
from nexmark.report.rendering import environment, part
from nexmark.store import Store, UnknownNight, history
from nexmark.store.table_rows import BrokerBenchRow, NightRow
from nexmark.web import assets
from nexmark.web.auth import Door, User, check_form, form_token

MENU = (
    ("overview", "/", "Overview"),
    ("night", "/newest", "Night"),
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
    503: "The results database cannot be read",
}


@dataclass
class Visit:
    """The tools of a route; what it has ``opened`` is closed after it."""

    request: Request
    user: User
    door: Door
    opened: ExitStack

    @cached_property
    def store(self) -> Store:
        """The results database; for a page as it is at one moment, in one transaction."""
        found: Store = self.request.app.state.database.store()
        if self.request.method != "GET":
            return found
        return self.opened.enter_context(found.at_one_moment())

    @cached_property
    def dags(self) -> frozenset[str]:
        """The DAGs with nights whose runs the visitor may read."""
        return self.door.readable(self.user, history.dag_ids(self.store))

    @cached_property
    def name(self) -> str:
        """The visitor's name."""
        return self.door.name(self.user)

    @cached_property
    def may_accept(self) -> bool:
        """Whether the visitor may accept figures."""
        return self.door.may_accept(self.user)

    def night(self, dag: str, run: str, query: str = "") -> NightRow:
        """Return a night (with a query) that the visitor may see; 404 for any other."""
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
        """Return the measured experiments, or the one of ``run``; none for who may not see them."""
        may_see = self.door.readable(self.user, {EXPERIMENT_DAG_ID})
        return experiments_of(self.store, run) if may_see else []

    def broker_benches(self) -> list[BrokerBenchRow]:
        """Return the newest figures of each Kafka; none for who may read no DAG of ours."""
        ours = {*OTHER_DAGS, *history.dag_ids(self.store)}
        return self.store.broker_benches() if self.door.readable(self.user, ours) else []

    def token(self) -> str:
        """Return what a form of this visitor carries."""
        return form_token(self.door.secret(), self.name)

    def check(self, given: str) -> None:
        """Refuse a form that is not from a page of this visitor, and who may not accept."""
        check_form(self.request, given, self.door.secret(), self.name, self.door.origins())
        if not self.may_accept:
            why = f"to accept takes the permission to trigger the DAG {ACCEPT_DAG_ID}"
            raise HTTPException(403, why)

    def page(self, template: str, section: str, **content: Any) -> Response:
        """Return a page; ``section`` is the entry of the menu that it belongs to."""
        content |= {"section": section, "visitor": self.name, "may_accept": self.may_accept}
        token = self.token if self.may_accept else None
        return render(self.request, template, **content, token=token)


def _visit(request: Request) -> Iterator[Visit]:
    """Give the visit of who was let in (``app.create_app``); nobody else has one."""
    user = getattr(request.state, "nexmark_user", None)
    if user is None:
        raise HTTPException(401, "Not authenticated")
    with ExitStack() as opened:
        yield Visit(request, user, request.app.state.door, opened)


Visiting = Annotated[Visit, Depends(_visit)]  # the dependency of a route


def render(request: Request, template: str, status: int = 200, **content: Any) -> HTMLResponse:
    """Return a page."""
    root = request.scope.get("root_path", "")

    @cache
    def night_url(run: str, *more: str) -> Markup:
        dag, _, run_id = run.partition("/")
        return Markup("/".join([f"{root}/night", part(dag), part(run_id), *map(part, more)]))

    def asset(name: str) -> str:
        return f"{root}/assets/{name}?v={assets.version(name)}"

    own = {"layout": "base.html", "alone": False, "menu": MENU, "root": root}
    page = environment().get_template(template)
    text = page.render(**own, night_url=night_url, asset=asset, **content)
    return HTMLResponse(text, status_code=status)


def render_error(
    request: Request, status: int, sentence: str, login: str | None = None
) -> HTMLResponse:
    """Return a page that says what is wrong in a sentence."""
    title = TITLES.get(status, "That did not work")
    content = {"title": title, "sentence": sentence, "login": login, "section": ""}
    return render(request, "error.html", status, **content, visitor="")
