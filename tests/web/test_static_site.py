"""A site in a real browser, from the disk: no server, no other host, charts and links that work."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from nexmark.model import grouped
from tests.example_nights import SITE, example_home
from tests.web.accessibility import FAULTS, FOCUSED

if TYPE_CHECKING:
    from playwright.sync_api import Browser, ConsoleMessage, Page

pytestmark = pytest.mark.slow

LOOKS = {
    "laptop": {"viewport": {"width": 1280, "height": 800}, "color_scheme": "light"},
    "tablet-dark": {"viewport": {"width": 800, "height": 1000}, "color_scheme": "dark"},
}


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site of the sixty example nights."""
    with example_home(tmp_path_factory) as home:
        return home.parent / SITE


def one_of_each(files: Path) -> list[Path]:
    """The pages of the menu, and three pages of every other kind."""
    kinds = grouped(sorted(files.rglob("*.html")), lambda path: path.relative_to(files).parts[0])
    return [page for kind, pages in kinds.items() for page in pages[-3:]]


@pytest.fixture
def complaints() -> list[str]:
    return []


@pytest.fixture(params=LOOKS)
def page(
    chromium: Browser, complaints: list[str], request: pytest.FixtureRequest
) -> Iterator[Page]:
    """A page of a browser without network; what it complains about is kept."""
    context = chromium.new_context(offline=True, **LOOKS[request.param])

    def heard(message: ConsoleMessage) -> None:
        if message.type in ("error", "warning"):
            complaints.append(message.text)

    page = context.new_page()
    page.on("console", heard)
    yield page
    context.close()


def test_a_reader_gets_from_the_overview_to_the_charts_of_a_red_query(
    page: Page, files: Path, complaints: list[str]
) -> None:
    from playwright.sync_api import expect

    page.goto((files / "index.html").as_uri())
    assert "RED" in page.get_by_role("heading", level=1).inner_text()
    assert "Example" in page.get_by_role("note").inner_text()
    page.locator("table.map a.bad[title^='q5 REGRESSION']").first.click()
    page.wait_for_selector("html[data-drawn]")
    assert page.locator(".canvas svg").count() == page.locator("[data-chart]").count() > 4
    page.get_by_role("link", name="all queries of the night").click()
    page.locator("table.night").wait_for()
    page.get_by_role("link", name="night before").or_(
        page.get_by_text("the first night")
    ).wait_for()
    page.get_by_role("link", name="Nights", exact=True).click()
    expect(page.locator("tbody tr")).to_have_count(50)
    page.get_by_role("link", name="older").click()
    expect(page.locator("tbody tr")).to_have_count(11)  # with the sign-off
    page.get_by_role("link", name="Gate health", exact=True).click()
    page.wait_for_selector("html[data-drawn]")
    assert complaints == []  # what the Content-Security-Policy stops would be here


def test_every_page_has_its_style_and_fits_its_window(
    page: Page, files: Path, complaints: list[str]
) -> None:
    for path in one_of_each(files):
        page.goto(path.as_uri())
        assert page.evaluate("getComputedStyle(document.body).margin") == "0px", path
        wider = "document.documentElement.scrollWidth - window.innerWidth"
        assert page.evaluate(wider) <= 0, path
        for scheme in ("light", "dark"):
            page.emulate_media(color_scheme=scheme)
            assert page.evaluate(FAULTS) == [], f"{path}, {scheme}"
        for _ in range(4):  # past the link to the content, into the menu
            page.keyboard.press("Tab")
            assert page.evaluate(FOCUSED), f"{path}: no focus is seen"
    assert complaints == []
