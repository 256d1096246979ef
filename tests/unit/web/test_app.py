"""The pages over real databases: who is let in, what is shown, what is escaped, what is refused."""

from __future__ import annotations

import html
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from fastapi.routing import APIRoute
from fastapi.testclient import TestClient
from sqlalchemy import create_engine, event
from sqlalchemy.orm import Session

from bench import web as bench
from bench import web_nights as bench_nights
from nexmark.cli.app import main
from nexmark.config import SIGNOFF_DAG_ID
from nexmark.config.load import load_gate
from nexmark.labs.broker_benchmark import BenchRow
from nexmark.labs.broker_tables import broker_figures
from nexmark.labs.kafka_tools import Latencies
from nexmark.model import Spread, Value
from nexmark.report.rendering import part
from nexmark.store import BuildRecord, RepetitionRecord, Store, ValidationRecord, open_store
from nexmark.verdict.bounds import judge
from nexmark.web.auth import AirflowAccess
from nexmark.web.web_app import PAGE, Database, create_app
from tests.unit.report.rendered import evidence
from tests.unit.store.store_builder import DAG, night
from tests.unit.store.store_builder import record as record_by_bounds
from tests.unit.web import web_nights
from tests.unit.web.conftest import TestAccess
from tests.unit.web.pages import EVERYWHERE, at, shown

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")

ATTACK = "<script>alert(1)</script>\"'><img src=x onerror=alert(1)>{{ 7*7 }}"


# --- who is let in


def test_every_route_refuses_who_is_not_logged_in(database: str) -> None:
    app = create_app(Database(database), TestAccess())
    stranger = TestClient(app)
    routes = [route for route in app.routes if isinstance(route, APIRoute)]
    assert len(routes) > 14
    for route in routes:
        path = re.sub(r"{number}", "1", route.path)
        path = re.sub(r"{\w+(:path)?}", "x", path)
        for method in route.methods:
            response = stranger.request(method, path)
            assert response.status_code == 401, route.path
            assert method == "HEAD" or "/auth/login" in response.text


def test_there_is_no_description_of_the_interface(browser: TestClient) -> None:
    for path in ("/docs", "/redoc", "/openapi.json"):
        assert browser.get(path).status_code == 404


def test_nights_of_other_peoples_dags_are_not_there(
    browser: TestClient, store: Store, access: TestAccess
) -> None:
    run = web_nights.record(store)
    assert "GREEN" in shown(browser, "/")
    access.dags = lambda dag: False
    for path in EVERYWHERE:
        text = shown(browser, path)
        assert run not in text
        assert web_nights.NEW.id not in text
    assert browser.get(at(run)).status_code == 404
    assert browser.get(at(run, "query", "q5")).status_code == 404
    both = f"/compare?new={web_nights.NEW.id}&old={web_nights.OLD.id}"
    assert browser.get(both).status_code == 404


def test_a_stranger_cannot_tell_what_is_there(browser: TestClient, store: Store) -> None:
    run = web_nights.record(store)
    asked = [
        *(("GET", path) for path in (*EVERYWHERE, at(run), "/nights/", "/nothing", "/a/b/c")),
        *(("GET", path) for path in ("/assets/page.css", "/assets/none.css", "/night/x/y")),
        *((method, "/nights") for method in ("HEAD", "POST", "PUT", "DELETE", "OPTIONS")),
        *(("POST", path) for path in ("/acks/1/withdraw", "/acks/x/withdraw", "/acks/1/nothing")),
    ]
    del browser.headers["x-user"]
    broken = {"content-type": "multipart/form-data; boundary=x"}
    answers = {
        (method, path): browser.request(
            method,
            path,
            content=b"broken" if method == "POST" else None,
            headers=broken if method == "POST" else {},
            follow_redirects=False,
        )
        for method, path in asked
    }
    first = answers["GET", "/nothing"]
    assert first.status_code == 401
    for one, answer in answers.items():
        body = b"" if one[0] == "HEAD" else first.content
        assert (answer.status_code, answer.content, answer.headers) == (401, body, first.headers), (
            one
        )


# --- what is shown


@pytest.mark.parametrize("path", EVERYWHERE)
def test_an_empty_database_has_pages_that_say_so(browser: TestClient, path: str) -> None:
    text = shown(browser, path)
    assert re.search(r"[Nn]o(thing| night| build| release| Kafka)", text)


def test_one_night_has_all_pages(browser: TestClient, store: Store) -> None:
    run = web_nights.record(store)
    text = shown(browser, "/newest")
    assert "GREEN" in text
    assert "the newest night" in text
    for path in (*EVERYWHERE, at(run), at(run, "query", "q0"), at(run, "query", "q5")):
        shown(browser, path)


def test_a_night_has_a_line_for_every_verdict_the_worst_first(
    browser: TestClient, store: Store
) -> None:
    run = web_nights.record(store, values=web_nights.ALL_VALUES)
    text = shown(browser, at(run))
    assert "RED" in text
    for value in Value:
        assert f"</svg>{value.value}</span>" in text
    queries = re.findall(r'<th scope="row"><a href="[^"]+">(q\d+)</a>', text)
    names = dict(web_nights.ALL_VALUES.items())
    assert [names[query].value for query in queries] == [
        *("INVALID", "MISSING", "REGRESSION", "SUSPECT", "NO BASELINE"),
        *("WATCH", "SOURCE_BOUND", "UNDECIDED", "FASTER", "OK"),
    ]
    for query in web_nights.ALL_VALUES:
        shown(browser, at(run, "query", query))
    for path in EVERYWHERE:
        shown(browser, path)


def test_a_night_that_is_not_over_says_how_far_it_is(browser: TestClient, store: Store) -> None:
    made = web_nights.paired_night(1, queries=["q0", "q5", "q9"])
    web_nights.start(store, made)
    assert "0 of 3 queries recorded" in shown(browser, "/newest")
    web_nights.record_query(store, made, "q0", Value.OK)
    assert "NOT JUDGED" in shown(browser, "/")
    text = shown(browser, "/newest")
    assert "NOT JUDGED" in text
    assert "1 of 3 queries recorded" in text
    assert "No verdict on q9" in shown(browser, at(made.run, "query", "q9"))
    assert "No verdict on q0" in shown(browser, at(made.run, "query", "q0"))


@pytest.mark.parametrize("verb", ["report", "show", "nights"])
def test_the_terminal_says_what_the_page_says_first(
    browser: TestClient,
    store: Store,
    database: str,
    capsys: pytest.CaptureFixture[str],
    verb: str,
) -> None:
    values = {"q0": Value.MISSING, "q5": Value.REGRESSION, "q7": Value.WATCH}
    run = web_nights.record(store, 1, values)
    page = shown(browser, at(run))
    answer = re.findall(r'<p class="what">(.+?)</p>', page)
    lines = re.search(r'<dl class="lines">(.+?)</dl>', page, re.DOTALL)
    assert lines is not None
    said = re.findall(r"<dt>(.+?)</dt><dd>(.+?)</dd>", lines[1], re.DOTALL)
    assert {"Why", "Watch", "Next", "Since"} <= {topic for topic, _ in said}
    assert main([verb, "--db", database, *([] if verb == "nights" else ["--run", run])]) == 0
    written = capsys.readouterr().out
    texts = [f"NIGHT FAILED: {answer[0]}", *(f"{topic}: {text}" for topic, text in said)]
    places = [written.index(html.unescape(text)) for text in texts]
    assert places == sorted(places)


def test_a_night_by_bounds_has_its_pages_too(browser: TestClient, store: Store) -> None:
    first = record_by_bounds(store, night(1))
    store.accept(first, "ada", "first")
    run = record_by_bounds(store, night(2), figure=20.0)
    baseline = store.baseline("spark-4.3.0", "smoke", "local")
    verdicts = judge(
        ["q0", "q5"], store.arms(run), baseline, {}, load_gate(), workload="smoke", repetitions=1
    )
    store.record_verdicts(run, verdicts)
    text = shown(browser, at(run))
    assert "2.000" in text
    assert at(first) in text
    shown(browser, at(run, "query", "q5"))


def test_four_hundred_nights_have_all_pages(empty_database: Path, tmp_path: Path) -> None:
    path = tmp_path / "many.db"
    path.write_bytes(empty_database.read_bytes())
    with open_store(f"sqlite:///{path}") as store:
        run = bench_nights.fill(store, 400, ("q0", "q5"), 1)
    browser = TestClient(
        create_app(Database(f"sqlite:///{path}"), TestAccess()), headers={"x-user": "ada"}
    )
    for _, address in bench.pages_of(run, 400):
        shown(browser, address)
    assert "400 nights" in shown(browser, "/nights")
    assert "Candidate by baseline in 400 nights" in shown(browser, at(run, "query", "q0"))


def test_a_sort_that_does_not_exist_is_that_by_attention(browser: TestClient, store: Store) -> None:
    run = web_nights.record(store, values=web_nights.ALL_VALUES)
    assert shown(browser, f"{at(run)}?sort=nothing") == shown(browser, at(run))


def test_tabs_of_airflow_lead_to_the_right_place(browser: TestClient, store: Store) -> None:
    web_nights.record(store, 1)
    run = web_nights.record(store, 2)
    assert run in html.unescape(shown(browser, f"/dag/{DAG}"))
    assert "has no night" in shown(browser, "/dag/nexmark_accept")
    task = browser.get(at(run, "task", "q5.record"), follow_redirects=False)
    assert task.headers["location"] == at(run, "query", "q5")
    other = browser.get(at(run, "task", "judge"), follow_redirects=False)
    assert other.headers["location"] == at(run)
    newest = browser.get(f"/dag/{DAG}/task/q0.plan", follow_redirects=False)
    assert newest.headers["location"] == at(run, "query", "q0")


# --- what is escaped, and what is not found


def test_texts_of_others_are_escaped_on_every_page(
    browser: TestClient, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    build = BuildRecord("e4" * 8, f"4.3.0{ATTACK}", f"tarball:{ATTACK}")
    values = dict(web_nights.ALL_VALUES.items())
    changes: dict[str, Any] = {"engine": f"spark{ATTACK}", "workload": ATTACK, "cluster": ATTACK}
    run = web_nights.record(store, 1, values, ATTACK, build=build, **changes)
    store.record_repetition(RepetitionRecord(run, "q1", 9, failed=ATTACK))
    store.record_validation(ValidationRecord(run, "q3", False, [ATTACK], 9))
    store.record_grade(run, ATTACK[:100], ATTACK)
    monkeypatch.setattr("nexmark.store.store.check_link", str)  # as if no program had checked it
    store.accept(run, ATTACK, ATTACK, ["q0"], link=f"javascript:{ATTACK}")
    pages = [at(run), *EVERYWHERE, *(at(run, "query", query) for query in values)]
    pages += [f"/query/{query}" for query in values]
    pages += [
        f"/compare?new={build.id}&old={web_nights.OLD.id}",
        f"/dag/{part(ATTACK.replace('/', ''))}",
    ]
    seen = 0
    for path in pages:
        text = shown(browser, path)
        assert "<script>alert" not in text, path
        assert "<img" not in text, path
        assert 'href="javascript:' not in text, path
        assert "49" not in re.findall(r"&gt;(\d\d)", text), path
        seen += "&lt;script&gt;alert(1)" in text
    assert seen > len(values)
    missing = browser.get(at(f"{DAG}/{ATTACK.replace('/', '')}"))
    assert missing.status_code == 404
    assert "<script>alert" not in missing.text


def test_the_night_page_links_to_what_changed_in_the_source(
    browser: TestClient, store: Store
) -> None:
    """As the shipped engines.yaml compares two commits."""
    old = replace(web_nights.OLD, revision="a1" * 20)
    store.record_night(night(0, build=old, run_id="the-accepted-one"))
    new = replace(web_nights.NEW, revision="b2" * 20)
    run = web_nights.record(store, 1, {"q5": Value.REGRESSION}, build=new)
    page = shown(browser, at(run))
    address = f"https://github.com/apache/spark/compare/{'a1' * 20}...{'b2' * 20}"
    assert f'<a href="{address}" rel="noopener noreferrer"' in page


def test_a_password_in_the_name_of_a_build_is_not_shown(browser: TestClient, store: Store) -> None:
    build = BuildRecord("f5" * 8, "4.3.0", "tarball:https://ada:hunter2@ci.example/spark.tgz")
    web_nights.record(store, 1, build=build)
    for path in (*EVERYWHERE, f"/compare?new={build.id}&old={build.id}"):
        assert "hunter2" not in shown(browser, path)


@pytest.mark.parametrize(
    "path",
    [
        *("/nothing", "/night/x/y", "/signoff/x/y", "/assets/app.py"),
        *("/night/x/y/query/q0", "/compare?new=x&old=y", "/assets/..%2F..%2Fauth.py"),
        f"/night/{DAG}/..%2F..%2Fetc",
    ],
)
def test_what_is_not_there_is_said_in_a_sentence(
    browser: TestClient, store: Store, path: str
) -> None:
    web_nights.record(store)
    response = browser.get(path)
    assert response.status_code == 404
    assert "Nothing here" in response.text
    assert "Traceback" not in response.text


def test_a_query_that_the_night_did_not_have_is_not_there(
    browser: TestClient, store: Store
) -> None:
    run = web_nights.record(store)
    assert browser.get(at(run, "query", "q7")).status_code == 404
    assert browser.get(at(run, "task", "q7.record")).status_code == 404


def test_a_database_that_fails_is_reported_and_tried_again(tmp_path: Path) -> None:
    path = tmp_path / "results.db"
    path.write_text("this is no database, though it is as long as the head of one" * 9)
    client = TestClient(
        create_app(Database(f"sqlite:///{path}"), TestAccess()), headers={"x-user": "ada"}
    )
    response = client.get("/")
    assert response.status_code == 503
    assert "results database" in html.unescape(response.text)
    path.unlink()
    assert client.get("/").status_code == 200


def test_a_failing_database_of_airflow_is_not_taken_for_the_results(
    browser: TestClient,
    store: Store,
    access: TestAccess,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    """Here it has no tables: nobody has migrated it."""
    web_nights.record(store)
    empty = create_engine(f"sqlite:///{tmp_path}/airflow.db")
    monkeypatch.setattr("airflow.utils.session.create_session", lambda: Session(empty))
    monkeypatch.setattr(access, "next_runs", AirflowAccess().next_runs)
    response = browser.get("/")
    said = html.unescape(response.text)
    assert response.status_code == 503
    assert "Airflow's own database: no such table: dag; see that it runs and is migrated" in said
    assert "results database sqlite" not in said


def test_nothing_may_be_loaded_from_elsewhere(browser: TestClient, store: Store) -> None:
    run = web_nights.record(store)
    for path in (*EVERYWHERE, at(run), at(run, "query", "q5")):
        response = browser.get(path)
        assert response.headers["content-security-policy"] == PAGE
        own = re.findall(r'(?:src|href)="([^"]*)"', response.text)
        assert own
        assert all(x.startswith(("/", "#", "data:")) for x in own)
        assert not re.search(r"<\w[^>]*\s(style|on\w+)=", response.text)


def test_files_are_kept_by_browsers_until_they_change(browser: TestClient) -> None:
    text = shown(browser, "/gate")
    (address,) = re.findall(r'href="([^"]+page\.css[^"]*)"', text)
    assert "immutable" in browser.get(address).headers["cache-control"]
    assert "immutable" not in browser.get("/assets/page.css").headers["cache-control"]


# --- sign-offs


def test_the_evidence_of_a_signoff_is_shown_without_its_scripts(
    browser: TestClient, store: Store, tmp_path: Path
) -> None:
    from nexmark.report.evidence_files import write_bundle

    run = web_nights.record(
        store, 1, dag_id=SIGNOFF_DAG_ID, run_id="one", directory=tmp_path / "run"
    )
    assert "nobody yet" in shown(browser, "/signoffs")
    decision = {
        "choice": "Approve",
        "who": "ada",
        "when": "today",
        "reason": "",
        "signed_off": True,
    }
    made = write_bundle(
        tmp_path / "run" / "signoff", tmp_path / "copy", evidence(store, run, decision), store
    )
    assert "Approve" in shown(browser, "/signoffs")
    text = shown(browser, f"/signoff/{SIGNOFF_DAG_ID}/one")
    assert made.seal in text
    page = browser.get(f"/signoff/{SIGNOFF_DAG_ID}/one/evidence/signoff")
    assert page.status_code == 200
    assert "sandbox" in page.headers["content-security-policy"]
    for name in ("report", "..%2Freport", "signoff-2", "draft", "signoff*"):
        assert browser.get(f"/signoff/{SIGNOFF_DAG_ID}/one/evidence/{name}").status_code == 404
    html_file = made.directory / "evidence.html"
    html_file.chmod(0o644)
    html_file.write_text("another decision")
    assert "was changed" in shown(browser, f"/signoff/{SIGNOFF_DAG_ID}/one")


def test_the_newest_benchmark_of_each_kafka_is_shown_beside_the_text(
    browser: TestClient, store: Store
) -> None:
    for rate in (50.0, 60.0):
        rows = [
            BenchRow(name, Spread.of([x]), 9.5, 1.5, 2.5)
            for name, x in (("K1", 100.0), ("K2", rate), ("K9 10 B", 7.0))
        ]
        rows.append(BenchRow("K10", None, None, 1.0, None, Latencies(4, 17, 34)))
        figures = broker_figures(rows, is_shared=True) | {"records": 2000, "runs": 3}
        store.record_broker_bench("<b>kafka1:9092", figures)
    store.record_broker_bench("other", figures)
    text = shown(browser, "/kafka")
    assert re.findall(r"<h2>(\S+)", text) == ["&lt;b&gt;kafka1:9092", "other"]
    assert text.count('K2/K1</th><td class="number">0.60</td><td class="number">0.96</td>') == 2
    assert "not to be compared" in text
    assert "4, 17, 34 ms" in text
    assert "2,000 records a run, 3 runs" in text


@pytest.mark.parametrize("place", ["", "/query/q5"])
def test_a_page_is_read_in_one_transaction(
    database: str, access: TestAccess, store: Store, place: str
) -> None:
    run = web_nights.record(store, 1)
    begun: list[None] = []
    opened = Database(database)
    event.listen(opened.store()._engine, "begin", lambda _: begun.append(None))
    browser = TestClient(create_app(opened, access), headers={"x-user": "ada"})
    dag, _, number = run.partition("/")
    assert browser.get(f"/night/{dag}/{number}{place}").status_code == 200
    assert len(begun) == 1
