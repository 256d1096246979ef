"""What a person accepted at once is one row, and all or a part of it can be taken back."""

from __future__ import annotations

import re

import pytest
from fastapi.testclient import TestClient

from nexmark.evidence.alarms import acknowledged, together
from nexmark.model import Value
from nexmark.store import Store
from tests.unit.store.store_builder import STARTED
from tests.unit.web import web_nights
from tests.unit.web.pages import at, shown

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")

QUERIES = [f"q{number}" for number in range(8)]


@pytest.fixture
def run(store: Store) -> str:
    """A night of eight queries that was accepted three times, whole."""
    run = web_nights.record(store, 1, dict.fromkeys(QUERIES, Value.OK))
    for reason in ("first", "second", "third"):
        store.accept(run, "bob", reason)
    return run


def rows(page: str) -> list[str]:
    """The rows of the table of acceptances."""
    table = re.search(r'aria-label="Acks"><table>.*?<tbody>(.*?)</tbody>', page, re.DOTALL)
    assert table is not None
    return re.findall(r"<tr.*?</tr>", table[1], re.DOTALL)


def withdraw(browser: TestClient, number: int, queries: list[str]) -> int:
    page = shown(browser, "/acks")
    (token, *_) = re.findall(r'name="token" value="([^"]+)"', page)
    response = browser.post(
        f"/acks/{number}/withdraw",
        data={"token": token, "reason": "no", "queries": ["", *queries]},
        headers={"origin": "http://testserver"},
        follow_redirects=False,
    )
    return response.status_code


def test_three_acceptances_of_all_queries_are_three_rows(
    browser: TestClient, store: Store, run: str
) -> None:
    assert len(store.acceptances()) == 3 * len(QUERIES)
    for path in ("/acks", at(run)):
        found = rows(shown(browser, path))
        assert ["third" in row for row in found] == [True, False, False], path
        assert all(query in row for row in found for query in QUERIES)


def test_the_queries_that_a_person_chooses_are_taken_back_at_once(
    browser: TestClient, store: Store, run: str
) -> None:
    newest = store.acceptances()[-len(QUERIES) :]
    assert withdraw(browser, newest[0].id, ["q5", "q7"]) == 303
    taken = [row for row in store.acceptances() if row.withdrawal]
    assert [(row.query, row.reason) for row in taken] == [("q5", "third"), ("q7", "third")]
    found = rows(shown(browser, "/acks"))
    words = [re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", row)) for row in found]
    assert [word for word in words if "withdrawn" in word and "q5 , q7" in word]
    assert len(found) == 4 + 1  # of the second, q5 and q7 count again


def test_no_query_is_taken_back_where_none_is_chosen(
    browser: TestClient, store: Store, run: str
) -> None:
    assert withdraw(browser, store.acceptances()[-1].id, []) == 400
    assert not [row for row in store.acceptances() if row.withdrawal]


def test_acceptances_of_another_moment_are_rows_of_their_own(store: Store) -> None:
    run = web_nights.record(store, 1, dict.fromkeys(("q0", "q5", "q7"), Value.OK))
    for who, query in (("bob", "q0"), ("bob", "q5"), ("ada", "q7")):
        store.accept(run, who, "first", [query])
    assert len(together(acknowledged(store.acceptances(), STARTED))) == 3
