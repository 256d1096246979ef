"""A real Airflow with nights in its results database, and a real browser."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import yaml

from bench.chromium import FLAGS, find_chromium
from nexmark.engines import Build
from nexmark.store import open_store
from tests.airflow_site import Airflow, airflow_of
from tests.site import DAG_ID, ENGINE, Site, make_site
from tests.unit.web import web_nights

if TYPE_CHECKING:
    from playwright.sync_api import Browser, BrowserContext, Page

USERS = "admin:admin,vera:viewer"
#: What an attacker would like a browser to run.
SCRIPT = "<script>window.hacked=1</script><img src=x onerror='window.hacked=1'>"


@dataclass(frozen=True)
class Ui:
    """Airflow's address, and the nights in its results database."""

    airflow: Airflow
    address: str
    nights: tuple[str, ...]
    passwords: dict[str, str]

    @property
    def newest(self) -> str:
        return self.nights[-1]

    @property
    def run_id(self) -> str:
        return self.newest.partition("/")[2]


@pytest.fixture(scope="package")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("web")


@pytest.fixture(scope="package")
def site(home: Path, tmp_path_factory: pytest.TempPathFactory) -> Site:
    build = Build("c430", "4.3.0", "pypi:4.3.0", tmp_path_factory.mktemp("spark"))
    made = make_site(home, home / "conf", build, shares=False)
    engines = made.conf / "engines.yaml"
    content = yaml.safe_load(engines.read_text())
    content["engines"][ENGINE]["schedule"] = "0 22 * * *"
    engines.write_text(yaml.safe_dump(content))
    return made


@pytest.fixture(scope="package")
def nights(site: Site) -> tuple[str, ...]:
    """Quiet nights, one with every verdict, whose texts were written by an attacker."""
    url = f"sqlite:///{site.home / 'results.db'}"
    with open_store(url) as store:
        runs = [web_nights.record(store, number) for number in range(1, 9)]
        runs.append(web_nights.record(store, 9, web_nights.ALL_VALUES, reason=SCRIPT))
    return tuple(runs)


@pytest.fixture(scope="package")
def ui(site: Site, nights: tuple[str, ...], home: Path) -> Iterator[Ui]:
    logs = home / "component-logs"
    logs.mkdir()
    users = {"AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_USERS": USERS}
    with airflow_of(
        site, logs, DAG_ID, components=("api-server", "dag-processor"), **users
    ) as airflow:
        dag, _, run = nights[-1].partition("/")
        body = {"dag_run_id": run, "logical_date": None}
        airflow.ask(f"/api/v2/dags/{dag}/dagRuns", body)
        passwords = Path(airflow.environment["AIRFLOW_HOME"]) / "passwords.json"
        address = f"http://127.0.0.1:{airflow.port}"
        yield Ui(airflow, address, nights, json.loads(passwords.read_text()))


@pytest.fixture(scope="package")
def chromium() -> Iterator[Browser]:
    executable = find_chromium()
    if executable is None:
        pytest.skip("Chromium is not installed (Debian: apt-get install chromium)")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=executable, args=list(FLAGS))
        yield browser
        browser.close()


@pytest.fixture(scope="package")
def artifacts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where screenshots go: $NEXMARK_SCREENSHOTS, or a temporary directory."""
    kept = os.environ.get("NEXMARK_SCREENSHOTS")
    directory = Path(kept) if kept else tmp_path_factory.mktemp("screenshots")
    directory.mkdir(parents=True, exist_ok=True)
    return directory


def log_in(context: BrowserContext, ui: Ui, user: str) -> Page:
    """Log in as a person does."""
    page = context.new_page()
    page.goto(ui.address)
    page.locator("input[name=username]").fill(user)
    page.locator("input[name=password]").fill(ui.passwords[user])
    page.locator("button[type=submit]").click()
    page.wait_for_url(lambda url: "/auth/" not in url)
    return page


@pytest.fixture(scope="package")
def admin(chromium: Browser, ui: Ui) -> Iterator[BrowserContext]:
    context = chromium.new_context(viewport={"width": 1440, "height": 900})
    log_in(context, ui, "admin").close()
    yield context
    context.close()


@pytest.fixture
def page(admin: BrowserContext) -> Iterator[Page]:
    opened = admin.new_page()
    yield opened
    opened.close()
