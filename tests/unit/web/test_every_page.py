"""Every page, with no night and with many, of five engines: it answers, and all can read it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from html.parser import HTMLParser

import pytest
from fastapi.testclient import TestClient

from bench import web_nights
from nexmark.store import open_store
from nexmark.web.web_app import Database, create_app
from tests.unit.web.conftest import TestAccess
from tests.unit.web.pages import EVERYWHERE, at

ENGINES = 5
QUERIES = ["q0", "q5"]
VOID = {"input", "br", "meta", "link", "hr", "img", "rect", "line", "circle", "path", "use"}
NAMED_BY_TEXT = {"button", "summary", "th", "h1", "h2", "h3", "option", "title"}
WORDS_OF_CODE = re.compile(r"\b(None(?!:)|nan|inf|Undefined|Mapping)\b|\{\{|\{%|<[A-Z]\w+ ")
Attributes = dict[str, str | None]


@dataclass
class Element:
    tag: str
    attributes: Attributes
    line: int
    text: str = ""
    labels: list[Element] = field(default_factory=list)

    @property
    def name(self) -> str:
        """What a screen reader says."""
        given = [self.attributes.get(key) or "" for key in ("aria-label", "title", "alt")]
        return " ".join([*given, self.text, *(label.text for label in self.labels)]).strip()


class Page(HTMLParser):
    """The elements of a page, each with all the text within it."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[Element] = []
        self.spoken: list[str] = []
        self._open: list[Element] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        element = Element(tag, dict(attrs), self.getpos()[0])
        self.elements.append(element)
        element.labels = [one for one in self._open if one.tag == "label"]
        if tag not in VOID:
            self._open.append(element)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append(Element(tag, dict(attrs), self.getpos()[0]))

    def handle_endtag(self, tag: str) -> None:
        while self._open and self._open.pop().tag != tag:
            pass

    def handle_data(self, data: str) -> None:
        tags = {one.tag for one in self._open}
        hidden = any(one.attributes.get("aria-hidden") == "true" for one in self._open)
        if tags & {"script", "style", "pre", "code"} or hidden:
            return
        self.spoken.append(data)
        for one in self._open:
            one.text += data

    def of(self, *tags: str) -> Iterator[Element]:
        return (one for one in self.elements if one.tag in tags)


@pytest.fixture(scope="module", params=[0, 1, 60, 400])
def nights(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> tuple[TestClient, str]:
    """What answers for the pages of a number of nights, and the newest night."""
    url = f"sqlite:///{tmp_path_factory.mktemp('every-page') / 'results.db'}"
    run = ""
    with open_store(url) as store:
        if request.param:
            run = web_nights.fill(store, request.param, QUERIES, 1, ENGINES)
    client = TestClient(create_app(Database(url), TestAccess()), headers={"x-user": "ada"})
    return client, run


def every_page(run: str) -> Iterator[str]:
    yield from EVERYWHERE
    yield from ("/nights?red=1&search=4.3", "/nights?page=3", "/acks?by=ada", "/builds?red=1")
    if run:
        yield from (at(run), at(run) + "?sort=cpu", at(run, "query", "q5"), at(run, "query", "q0"))
        yield from ("/query/q5", "/query/suite", "/query/q0?metric=wall_s")
        yield from ("/queries?since=first&sort=since", "/queries?engine=spark-4.3.0&sort=change")
        yield f"/compare?new=00{'b' * 14}&old=00{'b' * 14}"


def problems_of(page: Page) -> Iterator[str]:
    """What a person who does not see, or has no mouse, would miss on a page."""
    if len(list(page.of("h1"))) != 1:
        yield "not one first heading"
    ids = [one.attributes["id"] for one in page.elements if "id" in one.attributes]
    yield from (f"the id {one} twice" for one in set(ids) if ids.count(one) > 1)
    for one in page.elements:
        yield from (f"line {one.line}, {one.tag}: {what}" for what in missed(one))
    if found := WORDS_OF_CODE.search(" ".join(page.spoken)):
        yield f"a word of the code: {found[0]!r}"


def missed(one: Element) -> Iterator[str]:
    given = one.attributes
    is_control = one.tag in {"a", "button", "summary", "select", "input"}
    if is_control and given.get("type") != "hidden" and not one.name:
        yield "no name"
    if one.tag in NAMED_BY_TEXT and not one.text.strip():
        yield "no text"
    if one.tag == "th" and "scope" not in given:
        yield "no scope"
    if given.get("role") in ("img", "region", "group") and not one.name:
        yield "no name"
    if given.get("class") == "scroll" and given.get("tabindex") != "0":
        yield "the keyboard cannot scroll it"
    if int(given.get("tabindex") or 0) > 0:
        yield "it comes before its place in the order of the keyboard"


def test_every_page_answers_all_can_read_it_and_its_links_lead_somewhere(
    nights: tuple[TestClient, str],
) -> None:
    """Of links that differ in dates, numbers and builds only, one is followed."""
    browser, run = nights
    links: dict[str, str] = {}
    for path in every_page(run):
        answer = browser.get(path)
        assert answer.status_code == 200, (path, answer.text[:300])
        page = Page(answer.text)
        assert list(problems_of(page)) == [], path
        for link in page.of("a"):
            address = (link.attributes.get("href") or "").partition("#")[0]
            links.setdefault(re.sub(r"[0-9]{2}b{14}|[0-9]+", "*", address), address)
    internal = [one for one in links.values() if one.startswith("/")]
    assert len(internal) > (20 if run else 10)
    assert [one for one in internal if browser.get(one).status_code != 200] == []
