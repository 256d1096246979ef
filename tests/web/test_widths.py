"""What fits a window, in a real browser: the map of the first page, and the menu."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import TYPE_CHECKING

import pytest
from fastapi.testclient import TestClient

from bench import web_nights as bench_nights
from nexmark.store import Store, open_store
from nexmark.web.web_app import Database, create_app
from tests.unit.store.store_builder import STARTED
from tests.unit.web import web_nights
from tests.unit.web.conftest import TestAccess

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page, Route

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore::DeprecationWarning")]

ENGINES = 5


def one_engine(store: Store) -> None:
    bench_nights.fill(store, 60, [f"q{number}" for number in range(24)], 1)


def five_engines(store: Store) -> None:
    for engine in range(ENGINES):
        for number in range(1, 11):
            web_nights.record(
                store,
                number,
                dag_id=f"nexmark_spark_4_3_{engine}",
                engine=f"spark-4.3.{engine}",
                run_id=f"r{number}",
                started=STARTED + timedelta(days=number, hours=engine),
            )


@pytest.fixture(scope="module", params=[one_engine, five_engines])
def pages(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> TestClient:
    """What answers for the pages over many nights."""
    fill: Callable[[Store], None] = request.param
    url = f"sqlite:///{tmp_path_factory.mktemp('widths') / 'results.db'}"
    with open_store(url) as store:
        fill(store)
    return TestClient(create_app(Database(url), TestAccess()), headers={"x-user": "ada"})


@pytest.fixture(params=[1280, 800])
def seen(request: pytest.FixtureRequest, chromium: Browser, pages: TestClient) -> Iterator[Page]:
    """The first page in a window of a width."""

    def answer(route: Route) -> None:
        path = route.request.url.partition("//pages.test")[2]
        found = pages.get(path)
        route.fulfill(
            status=found.status_code,
            content_type=found.headers.get("content-type", ""),
            body=found.content,
        )

    page = chromium.new_page(viewport={"width": request.param, "height": 800})
    page.route("**/*", answer)
    page.goto("http://pages.test/")
    yield page
    page.close()


def width(page: Page, selector: str, name: str) -> int:
    return int(page.locator(selector).first.evaluate(f"element => element.{name}"))


def test_the_newest_night_of_every_engine_is_seen(seen: Page) -> None:
    """Its verdict on each query, whatever the width; in a wide window, all of the map."""
    frame = ".scroll:has(table.map)"
    if width(seen, "body", "clientWidth") > 1200:
        assert width(seen, frame, "scrollWidth") <= width(seen, frame, "clientWidth")
    assert width(seen, frame, "scrollLeft") == 0
    engines = seen.locator(".answer tbody th").count()
    heads = seen.locator("table.map th.newest").all()
    assert len(heads) == engines
    for row in seen.locator("table.map tbody tr").all():
        for place, head in enumerate(heads):
            cell, above = row.locator("td").nth(place), head.bounding_box()
            box = cell.bounding_box()
            assert box is not None
            assert above is not None
            assert box["x"] == above["x"]
            assert box["x"] + box["width"] <= width(seen, "body", "clientWidth")
            assert re.fullmatch(r"[A-Z ]+\n\S [+−][\d.]+ %", cell.inner_text())


def test_the_nights_of_every_engine_begin_with_the_newest(seen: Page) -> None:
    dates = [text[-5:] for text in seen.locator("table.map th.day a").all_inner_texts()]
    per_engine = len(dates) // seen.locator("table.map th.newest").count()
    for first in range(0, len(dates), per_engine):
        of_engine = dates[first : first + per_engine]
        assert of_engine == sorted(of_engine, reverse=True)


def test_no_entry_of_the_menu_is_cut_off(seen: Page) -> None:
    """Every entry is there, and in one row."""
    right = width(seen, "body", "clientWidth")
    tops = set()
    for entry in seen.locator("header.top a").all():
        box = entry.bounding_box()
        assert box is not None
        assert 0 <= box["x"] <= box["x"] + box["width"] <= right, entry.inner_text()
        tops.add(box["y"])
    assert len(tops) == 1
