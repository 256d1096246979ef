"""Acknowledging on a page: in whose name, what is refused, and forms that are not ours."""

from __future__ import annotations

import html
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from fastapi.testclient import TestClient

from nexmark.evidence.alarms import accepted_lines
from nexmark.evidence.night_evidence import make_report
from nexmark.evidence.night_rows import night_rows
from nexmark.model import Value
from nexmark.store import Store
from nexmark.web import auth
from nexmark.web.web_app import Database, create_app
from tests.unit.web import web_nights
from tests.unit.web.conftest import TestAccess
from tests.unit.web.pages import at, shown

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")


def post(browser: TestClient, path: str, form: dict[str, str], **headers: str) -> Any:
    token = auth.form_token("secret of the tests", "ada")
    return browser.post(
        path,
        data={"token": token, **form},
        headers={"origin": "http://testserver", **headers},
        follow_redirects=False,
    )


def test_an_ack_is_recorded_in_the_visitors_name(browser: TestClient, store: Store) -> None:
    run = web_nights.record(store, values={"q0": Value.OK, "q2": Value.REGRESSION})
    form = {"reason": "more partitions", "expires": "30d", "link": "https://issues.example/7"}
    response = post(browser, at(run, "query", "q2", "accept"), form)
    assert response.status_code == 303
    (row,) = store.acceptances()
    assert (row.who, row.reason, row.query, row.night_id) == ("ada", form["reason"], "q2", run)
    assert row.link == form["link"]
    assert row.expires is not None
    assert timedelta(days=29) < row.expires - datetime.now(UTC) < timedelta(days=31)
    text = shown(browser, response.headers["location"].partition("#")[0])
    assert "Accepted." in text
    assert "more partitions" in text
    assert "counts" in shown(browser, "/acks")


def test_an_ack_can_be_taken_back(browser: TestClient, store: Store) -> None:
    run = web_nights.record(store)
    store.accept(run, "bob", "first", ["q0"])
    (row,) = store.acceptances()
    response = post(browser, f"/acks/{row.id}/withdraw", {"reason": "not so"})
    assert response.status_code == 303
    (row,) = store.acceptances()
    assert row.withdrawal is not None
    assert (row.withdrawal.who, row.withdrawal.reason) == ("ada", "not so")
    assert post(browser, f"/acks/{row.id}/withdraw", {"reason": "again"}).status_code == 400
    assert post(browser, "/acks/999/withdraw", {"reason": "x"}).status_code == 404


@pytest.mark.parametrize(
    ("form", "words"),
    [
        ({"reason": " "}, "needs a reason"),
        ({"reason": "r", "expires": "soon"}, "neither a day"),
        ({"reason": "r", "expires": "2001-01-01"}, "over already"),
        ({"reason": "r", "link": "javascript:alert(1)"}, "https://"),
        ({"reason": "r" * 3000}, "reason"),
        ({"reason": "all\u202eneerg"}, "U+202E"),
        ({"reason": "two\nlines"}, "U+000A"),
    ],
)
def test_an_ack_that_cannot_be_is_refused_in_a_sentence(
    browser: TestClient, store: Store, form: dict[str, str], words: str
) -> None:
    run = web_nights.record(store)
    response = post(browser, at(run, "query", "q0", "accept"), form)
    assert response.status_code == 400
    assert words in html.unescape(response.text)
    assert store.acceptances() == []


def test_a_wrong_result_is_never_accepted(browser: TestClient, store: Store) -> None:
    run = web_nights.record(store, values={"q3": Value.INVALID})
    response = post(browser, at(run, "query", "q3", "accept"), {"reason": "please"})
    assert response.status_code == 400
    assert "nothing to accept" in response.text


def test_who_may_not_accept_has_no_form_and_is_refused(
    browser: TestClient, store: Store, access: TestAccess
) -> None:
    run = web_nights.record(store)
    store.accept(run, "bob", "first", ["q0"])
    assert "<form method" in shown(browser, at(run, "query", "q0"))
    access.accepts = False
    assert "<form method" not in shown(browser, at(run, "query", "q0"))
    assert "<form method" not in shown(browser, "/acks")
    assert post(browser, at(run, "query", "q0", "accept"), {"reason": "r"}).status_code == 403
    assert post(browser, "/acks/1/withdraw", {"reason": "r"}).status_code == 403
    assert len(store.acceptances()) == 1


@pytest.mark.parametrize(
    ("headers", "token"),
    [
        ({"origin": "https://evil.example"}, None),
        ({"origin": "null"}, None),
        ({"origin": "http://testserver", "sec-fetch-site": "cross-site"}, None),
        ({"origin": "http://testserver", "sec-fetch-site": "same-site"}, None),
        ({"origin": "", "referer": "https://evil.example/x"}, None),
        ({"origin": ""}, None),
        ({"origin": "http://evil.example", "host": "evil.example"}, None),
        ({"origin": "http://testserver:81", "host": "testserver:81"}, None),
        ({"origin": "", "referer": "http://evil.example/x", "host": "evil.example"}, None),
        ({}, ()),
        ({}, ("secret of the tests", "bob")),
        ({}, ("another secret", "ada")),
    ],
)
def test_a_form_of_another_site_does_nothing(
    browser: TestClient, store: Store, headers: dict[str, str], token: tuple[str, ...] | None
) -> None:
    run = web_nights.record(store)
    form = {"reason": "r"}
    if token is not None:
        form["token"] = auth.form_token(*token) if token else "made up"
    response = post(browser, at(run, "query", "q0", "accept"), form, **headers)
    assert response.status_code == 403
    assert store.acceptances() == []


@pytest.mark.parametrize(
    "headers",
    [
        {"sec-fetch-site": "same-origin"},
        {"origin": "https://airflow.example"},
        {"origin": "", "referer": "http://testserver/nexmark/"},
    ],
)
def test_a_form_of_ours_is_taken_also_behind_a_proxy(
    browser: TestClient, store: Store, headers: dict[str, str]
) -> None:
    run = web_nights.record(store)
    response = post(browser, at(run, "query", "q0", "accept"), {"reason": "r"}, **headers)
    assert response.status_code == 303


def test_nothing_is_done_by_asking_for_a_page(browser: TestClient, store: Store) -> None:
    run = web_nights.record(store)
    assert browser.get(at(run, "query", "q0", "accept")).status_code in (404, 405)
    assert store.acceptances() == []


def test_a_server_on_this_machine_is_known_by_every_name_of_it(
    database: str, store: Store, access: TestAccess
) -> None:
    run = web_nights.record(store)
    app = create_app(Database(database), access)
    with TestClient(app, base_url="http://127.0.0.1:8080", headers={"x-user": "ada"}) as here:
        for origin, status in (
            ("http://localhost:8080", 303),
            ("http://[::1]:8080", 303),
            ("http://localhost:9999", 403),
        ):
            response = post(here, at(run, "query", "q0", "accept"), {"reason": "r"}, origin=origin)
            assert response.status_code == status, origin


def accepted(store: Store, run: str) -> list[str]:
    return accepted_lines(night_rows(store, store.night(run)))


def test_what_was_accepted_and_runs_out_is_told_until_then(store: Store) -> None:
    """Who, until when, and why; not before it, not after it, and not if it has no end."""
    red = {"q0": Value.OK, "q5": Value.REGRESSION}
    first = web_nights.record(store, 1, red)
    began = store.night(first).started
    ends = began + timedelta(days=2)
    store.accept(first, "mira", "a fix", ["q5"], expires=ends, at=began + timedelta(hours=1))
    during, after = (web_nights.record(store, number) for number in (2, 4))
    assert [accepted(store, run) for run in (first, during, after)] == [
        [],
        [f"q5 by mira until {ends:%Y-%m-%d}: a fix"],
        [],
    ]
    assert "q5 by mira until" in make_report(store, during).first_lines[-1]
    (row,) = store.acceptances()
    store.withdraw(row.id, "mira", "it was not")
    assert accepted(store, during) == [f"q5 by mira until {ends:%Y-%m-%d}, withdrawn since: a fix"]
    store.accept(after, "mira", "for good", ["q5"], at=store.night(after).started)
    assert accepted(store, web_nights.record(store, 5)) == []


def test_an_acceptance_that_covers_a_verdict_is_told_until_it_is_withdrawn(store: Store) -> None:
    red = {"q0": Value.OK, "q5": Value.REGRESSION}
    run = web_nights.record(store, 1, red)
    store.accept(run, "mira", "wanted, see https://mira:hunter2@forge.example/7", ["q5"])
    (row,) = store.acceptances()
    covered = [
        replace(each, acceptance=row.id if each.query == "q5" else None)
        for each in store.verdicts(run)
    ]
    store.record_verdicts(run, covered)
    (line,) = accepted(store, run)
    assert line.startswith("q5 by mira: wanted, see https://")
    assert "hunter2" not in line
    store.withdraw(row.id, "mira", "not wanted")
    assert accepted(store, run) == [], "the verdict is red again"
