"""The first page: what is red, since when, and what became of every red before."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient

from bench import web_nights as bench_nights
from nexmark.evidence.night_list import (
    ACCEPTED,
    COLUMNS,
    NOISE,
    OPEN,
    REAL,
    TAKEN_BACK,
    issues_of,
    overview,
)
from nexmark.model import Value
from nexmark.store import BuildRecord, Store, open_store
from nexmark.store.history import Judged
from nexmark.web.auth import NextRun
from tests.unit.web import web_nights
from tests.unit.web.conftest import TestAccess
from tests.unit.web.pages import at, shown

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")

STARTED = datetime(2026, 1, 1, tzinfo=UTC)
OTHER = "nexmark_spark_4_2_1"
RED, GREEN = {"q0": Value.OK, "q5": Value.REGRESSION}, {"q0": Value.OK, "q5": Value.OK}


def verdict(number: int, bad: bool, build: str = "b1", **changes: Any) -> Judged:
    at = STARTED + timedelta(days=number)
    value = "REGRESSION" if bad else "OK"
    made = Judged(
        f"d/{number}", "d", at, "e", "w", "c", build, "q5", value, 1.1 if bad else 1.0, bad, None
    )
    return made._replace(**changes)


@pytest.mark.parametrize(
    ("verdicts", "outcome", "nights"),
    [
        ([verdict(1, False), verdict(2, True)], OPEN, 1),
        ([verdict(1, True), verdict(2, True)], OPEN, 2),
        ([verdict(1, True), verdict(2, False)], NOISE, 1),
        ([verdict(1, True), verdict(2, False, "b2")], REAL, 1),
        ([verdict(1, True), verdict(2, True), verdict(3, False)], REAL, 2),
    ],
)
def test_what_became_of_a_red(verdicts: list[Judged], outcome: str, nights: int) -> None:
    (issue,) = issues_of(verdicts)
    assert (issue.outcome, issue.nights) == (outcome, nights)


def test_reds_of_one_night_are_in_the_order_of_their_queries() -> None:
    found = issues_of([verdict(1, True, query="q10"), verdict(1, True, query="q2")])
    assert [issue.query for issue in found] == ["q2", "q10"]


def test_reds_of_other_queries_and_dags_are_issues_of_their_own() -> None:
    verdicts = [
        verdict(1, True),
        verdict(1, True, query="q9"),
        verdict(2, False, dag="other"),
        verdict(2, True),
    ]
    assert {(x.query, x.outcome, x.nights) for x in issues_of(verdicts)} == {
        ("q5", OPEN, 2),
        ("q9", OPEN, 1),
    }


def test_a_green_night_on_other_input_ends_no_red(store: Store) -> None:
    first = web_nights.record(store, 1, RED)
    other = {"events": 7, "seed": 1, "repetitions": 1}
    web_nights.record(store, 2, GREEN, workload_spec=other)
    (issue,) = overview(store, [web_nights.DAG]).issues
    assert (issue.outcome, issue.last.night) == (OPEN, first)
    last = web_nights.record(store, 3, RED)
    (issue,) = overview(store, [web_nights.DAG]).issues
    assert (issue.outcome, issue.nights, issue.last.night) == (OPEN, 2, last)


def test_an_acceptance_is_the_outcome_until_it_is_taken_back(store: Store) -> None:
    run = web_nights.record(store, 1, RED)
    store.accept(run, "ada", "wanted so", ["q5"])
    (issue,) = overview(store, [web_nights.DAG]).issues
    assert (issue.outcome, issue.why) == (ACCEPTED, "by ada: wanted so")
    (row,) = store.acceptances()
    store.withdraw(row.id, "grace", "it was not")
    (issue,) = overview(store, [web_nights.DAG]).issues
    assert issue.outcome == TAKEN_BACK
    assert "grace: it was not" in issue.why


def test_every_engine_has_a_row_with_its_newest_night(store: Store) -> None:
    web_nights.record(store, 1, GREEN)
    first = web_nights.record(store, 2, RED)
    newest = web_nights.record(store, 3, RED)
    web_nights.record(store, 2, GREEN, dag_id=OTHER, engine="spark-4.2.1", run_id="r2")
    page = overview(store, [web_nights.DAG, OTHER])
    lines = [(x.line.night.engine, x.line.colour, x.version) for x in page.engines]
    assert lines == [("spark-4.2.1", "GREEN", "4.3.0"), ("spark-4.3.0", "RED", "4.3.0")]
    red = page.engines[1]
    assert red.line.night.id == newest
    assert red.since is not None
    assert red.since.night == first
    assert (red.red, page.red) == (("q5",), 1)


def test_a_trial_by_hand_is_no_night_of_its_engine(store: Store) -> None:
    run = web_nights.record(store, 1, GREEN)
    web_nights.record(store, 2, RED, teaches=False)
    page = overview(store, [web_nights.DAG])
    assert [x.line.night.id for x in page.engines] == [run]
    assert page.issues == ()


def test_the_page_has_a_cell_for_every_verdict_that_leads_to_its_query(
    browser: TestClient, store: Store, access: TestAccess
) -> None:
    runs = [web_nights.record(store, 1, GREEN), web_nights.record(store, 2, RED)]
    access.runs = {web_nights.DAG: NextRun(datetime(2030, 1, 2, 3, 4, tzinfo=UTC))}
    text = shown(browser, "/")
    assert "2030-01-02 03:04" in text
    table = text.partition('<table class="map">')[2].partition("</table>")[0]
    for run in runs:
        for query in RED:
            assert at(run, "query", query) in table
    assert re.search(r'<a class="bad" href="[^"]+/query/q5" title="q5 REGRESSION', table)
    assert "red when it was last judged" in text
    access.runs = {web_nights.DAG: NextRun(None, paused=True)}
    assert "paused" in shown(browser, "/")


def test_only_dags_that_the_visitor_may_read_are_there(
    browser: TestClient, store: Store, access: TestAccess
) -> None:
    hidden = web_nights.record(store, 1, RED, dag_id=OTHER, engine="spark-secret", run_id="r1")
    web_nights.record(store, 1, GREEN)
    assert "spark-secret" in shown(browser, "/")
    asked: list[str] = []
    access.dags = lambda dag: dag == web_nights.DAG
    access.next_runs = lambda dags: asked.extend(dags) or {}  # type: ignore[method-assign,func-returns-value]
    text = shown(browser, "/")
    assert "spark-secret" not in text
    assert hidden.partition("/")[2] not in text
    assert "Nothing was red" in text
    assert asked == [web_nights.DAG]


def test_a_password_in_a_version_or_a_reason_is_not_shown(
    browser: TestClient, store: Store
) -> None:
    build = BuildRecord("f5" * 8, "4.3.0 token=hunter2", "directory:/x")
    run = web_nights.record(store, 1, RED, build=build)
    store.accept(run, "ada", "see https://ada:hunter2@ci.example", ["q5"])
    assert "hunter2" not in shown(browser, "/")


def test_a_night_without_a_verdict_does_not_replace_the_last_verdict(
    browser: TestClient, store: Store
) -> None:
    """It runs, or it was interrupted: the red of the night before is still open."""
    red = web_nights.record(store, 1, RED)
    begun = web_nights.paired_night(2)
    web_nights.start(store, begun)
    page = overview(store, [web_nights.DAG])
    (line,) = page.engines
    assert (line.line.colour, line.line.night.id, line.red) == ("RED", red, ("q5",))
    assert line.since is not None
    assert line.unjudged is not None
    assert line.unjudged.id == begun.run
    assert "has no verdict yet" in shown(browser, "/")
    green = web_nights.record(store, 3, GREEN)
    (line,) = overview(store, [web_nights.DAG]).engines
    assert (line.line.night.id, line.unjudged) == (green, None)


def test_four_hundred_nights_are_a_map_of_the_newest(empty_database: Path, tmp_path: Path) -> None:
    path = tmp_path / "many.db"
    path.write_bytes(empty_database.read_bytes())
    with open_store(f"sqlite:///{path}") as store:
        bench_nights.fill(store, 400, ("q0", "q5"), 1)
        page = overview(store, [bench_nights.DAG])
    ((_, columns),) = page.columns
    assert len(columns) == COLUMNS
    assert columns[0][0].id == page.engines[0].line.night.id
    assert columns[0][0].started > columns[-1][0].started
    assert {x.outcome for x in page.issues} == {OPEN}
