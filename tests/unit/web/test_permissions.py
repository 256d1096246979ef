"""Every route asks Airflow for a permission: who may read no DAG learns nothing from any page."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import httpx
import pytest
from fastapi.routing import APIRoute
from fastapi.testclient import TestClient

from nexmark.config import SIGNOFF_DAG_ID
from nexmark.experiments.experiment_rows import records_of
from nexmark.flames.flame_files import write_flames
from nexmark.flames.tree import Profile
from nexmark.labs.broker_benchmark import BenchRow
from nexmark.labs.broker_tables import broker_figures
from nexmark.model import Spread
from nexmark.night.run_directory import RunDirectory
from nexmark.report.rendering import part
from nexmark.store import Store, open_store
from nexmark.web import auth
from nexmark.web.web_app import Database, create_app
from tests.unit.store.store_builder import DAG
from tests.unit.web import web_nights
from tests.unit.web.conftest import TestAccess
from tests.unit.web.test_experiment_pages import RESULT

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")

RUN, SIGNED, EXPERIMENT = "manual__1", "signed__1", "experiment__1"
SIGNOFF = f"/signoff/{SIGNOFF_DAG_ID}/{SIGNED}"
PUBLIC = {
    "/assets/{name}": "style and scripts of the package, the same for everybody",
    "/{path:path}": "there is nothing for anybody",
}
"""The routes that ask for no more than a login, and why."""
ADDRESSES = {
    "/dag/{dag}": f"/dag/{DAG}",
    "/dag/{dag}/task/{task}": f"/dag/{DAG}/task/q5.record",
    "/compare": f"/compare?new={web_nights.NEW.id}&old={web_nights.OLD.id}",
    "/signoff/{dag}/{run}": SIGNOFF,
    "/signoff/{dag}/{run}/evidence/{bundle}": f"{SIGNOFF}/evidence/signoff",
}
"""The addresses of routes that are not made of `VALUES`."""
VALUES = {
    **{"dag": DAG, "run": RUN, "query": "q5", "task": "q5.record", "number": "1"},
    **{"name": "difference", "path:path": "nothing"},
}


def routes() -> list[tuple[str, str]]:
    """Every method and path of the application."""
    app = create_app(Database("sqlite://"), TestAccess())
    found = [route for route in app.routes if isinstance(route, APIRoute)]
    assert {route.path for route in found} >= {*PUBLIC, *ADDRESSES}
    return [(method, route.path) for route in found for method in sorted(route.methods)]


def fill(store: Store, home: Path) -> None:
    """Record something for every page to show."""
    run = web_nights.record(store, run_id=RUN, directory=home / "night")
    web_nights.record(store, 2, run_id=SIGNED, dag_id=SIGNOFF_DAG_ID, directory=home / "signed")
    store.accept(run, "bob", "first", ["q0"])
    store.record_experiment(EXPERIMENT, records_of(RESULT))
    rows = [BenchRow("K1", Spread.of([1.0]), 9.5, 1.5, 2.5)]
    told = broker_figures(rows, is_shared=True) | {"records": 2000, "runs": 3}
    store.record_broker_bench("kafka1:9092", told)
    profile = Profile({("main", "work"): 3}, 1.0)
    write_flames(RunDirectory(home / "night").flames, "q5", profile, profile, "steady")
    for place in ("night/report", "night/report/alarms/q5", "signed/signoff"):
        (home / place).mkdir(parents=True)
        (home / place / "evidence.html").write_text("evidence")


@pytest.fixture(scope="module")
def filled(empty_database: Path, tmp_path_factory: pytest.TempPathFactory) -> str:
    """A database that has something for every page."""
    home = tmp_path_factory.mktemp("home")
    database = f"sqlite:///{shutil.copy(empty_database, home / 'results.db')}"
    with open_store(database) as store:
        fill(store, home)
    return database


@pytest.fixture
def pages(filled: str, empty_database: Path) -> dict[str, TestClient]:
    """The pages over that database, and over an empty one."""
    found = {"full": filled, "empty": f"sqlite:///{empty_database}"}
    headers = {"x-user": "ada", "origin": "http://testserver"}
    return {
        name: TestClient(create_app(Database(url), TestAccess()), headers=headers)
        for name, url in found.items()
    }


def may_read(pages: dict[str, TestClient], dags: bool) -> None:
    for client in pages.values():
        client.app.state.access.dags = lambda dag: dags  # type: ignore[attr-defined]


def answer(client: TestClient, method: str, path: str) -> tuple[int, str, str | None]:
    """What one is told: all but the time it took."""
    address = ADDRESSES.get(path) or re.sub(r"{([\w:]+)}", lambda m: part(VALUES[m[1]]), path)
    address = address.replace(part(RUN), EXPERIMENT) if path == "/experiment/{run}" else address
    token = auth.form_token("secret of the tests", "ada")
    form = {"token": token, "reason": "it is right"} if method == "POST" else None
    response: httpx.Response = client.request(method, address, data=form, follow_redirects=False)
    assert response.status_code < 500
    text = re.sub(r'name="token" value="[^"]*"', "", response.text)
    return response.status_code, text, response.headers.get("location")


@pytest.mark.parametrize(("method", "path"), routes())
def test_who_may_read_no_dag_learns_nothing(
    method: str, path: str, pages: dict[str, TestClient]
) -> None:
    """Every answer is the one over an empty database, for which there is nothing to see."""
    may_read(pages, dags=False)
    full, empty = (answer(client, method, path) for client in pages.values())
    assert full == empty


@pytest.mark.parametrize(
    ("method", "path"), [(method, path) for method, path in routes() if path not in PUBLIC]
)
def test_who_may_read_the_dags_sees_what_is_there(
    method: str, path: str, pages: dict[str, TestClient]
) -> None:
    """So that the test above cannot pass because there is nothing."""
    full, empty = (answer(client, method, path) for client in pages.values())
    assert full != empty
    assert full[0] in (200, 303)


def test_a_permission_for_any_dag_of_ours_shows_the_brokers(
    store: Store, browser: TestClient, access: TestAccess, tmp_path: Path
) -> None:
    """Also where no night was recorded yet."""
    store.record_broker_bench(
        "kafka1:9092", broker_figures([], is_shared=True) | {"records": 1, "runs": 1}
    )
    for dags, seen in ((lambda dag: dag == SIGNOFF_DAG_ID, True), (lambda dag: False, False)):
        access.dags = dags
        assert ("kafka1:9092" in browser.get("/kafka").text) == seen
