"""The first page: what is red, since when, and what became of every red before."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from importlib import resources
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
    UNCLEAR,
    issues_of,
    look,
    overview,
)
from nexmark.model import Value
from nexmark.report.rendering import BAR_STEPS, bar
from nexmark.store import BuildRecord, Store, open_store
from nexmark.store.history import Judged
from nexmark.web.auth import NextRun
from tests.unit.store.store_builder import by_bounds
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
        ([verdict(1, True, value=Value.INVALID), verdict(2, False, "b2")], UNCLEAR, 1),
        ([verdict(1, True, value=Value.INVALID), verdict(2, False)], NOISE, 1),
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
    assert issue.outcome == OPEN
    assert issue.why == "red when it was last judged; accepted, and taken back by grace: it was not"


def test_an_outcome_says_until_when_it_is_accepted(store: Store) -> None:
    run = web_nights.record(store, 1, RED)
    ends = datetime.now(UTC) + timedelta(days=2)
    store.accept(run, "ada", "wanted so", ["q5"], expires=ends)
    (issue,) = overview(store, [web_nights.DAG]).issues
    assert issue.why == f"by ada until {ends:%Y-%m-%d}: wanted so"


def covered_night(store: Store, number: int) -> str:
    """A night after an accepted one, red as the accepted one was: its verdict is known."""
    (acceptance,) = store.acceptances()
    run = web_nights.record(store, number, RED)
    verdicts = [
        replace(each, acceptance=acceptance.id if each.query == "q5" else None)
        for each in store.verdicts(run)
    ]
    store.record_verdicts(run, verdicts)
    return run


def test_without_a_nightly_night_nothing_is_said_of_reds(
    browser: TestClient, access: TestAccess, store: Store
) -> None:
    """A build that a person tested may have been red: its night is in the list."""
    web_nights.record(store, 1, RED, teaches=False, dag_id="nexmark_build")
    access.dags = "nexmark_build".__eq__
    page = shown(browser, "/")
    assert "builds or releases were tested" in page
    assert "Nothing was red" not in page


def test_an_undecided_query_says_what_would_decide_it(browser: TestClient, store: Store) -> None:
    reason = "between 3.8 % faster and 14.1 % slower in 5 pairs; 12 more pairs would decide 5 %"
    run = web_nights.record(store, 1, {"q0": Value.OK})
    store.record_verdicts(run, web_nights.verdicts_on(run, "q0", Value.UNDECIDED, reason))
    assert reason in shown(browser, at(run))


def test_a_verdict_is_red_again_when_its_acceptance_is_taken_back(
    browser: TestClient, store: Store
) -> None:
    """On the first page, in the list and in the night: a night of yesterday is open again."""
    first = web_nights.record(store, 1, RED)
    store.accept(first, "ada", "wanted so", ["q5"])
    run = covered_night(store, 2)
    (line,) = overview(store, [web_nights.DAG]).engines
    assert (line.line.colour, line.line.known, line.red) == ("GREEN", 1, ())
    (row,) = store.acceptances()
    store.withdraw(row.id, "grace", "it was not")
    page = overview(store, [web_nights.DAG])
    (line,) = page.engines
    assert (line.line.colour, line.line.known, line.red) == ("RED", 0, ("q5",))
    assert page.colours == {"RED": 1}
    assert line.since is not None
    assert line.since.night == first
    _, cells = page.maps[0].newest
    assert cells["q5"].look.tone == "bad"
    assert 'class="colour bad"' in shown(browser, at(run))
    assert "(accepted)" not in shown(browser, at(run, "query", "q5"))


def test_a_red_after_its_acceptance_ran_out_is_open(store: Store) -> None:
    now = datetime.now(UTC)
    first = web_nights.record(store, 1, RED, started=now - timedelta(days=3))
    until = {"at": now - timedelta(days=2), "expires": now - timedelta(days=1)}
    store.accept(first, "ada", "until the fix", ["q5"], **until)
    (issue,) = overview(store, [web_nights.DAG]).issues
    assert issue.outcome == ACCEPTED
    web_nights.record(store, 2, RED, started=datetime.now(UTC))
    (issue,) = overview(store, [web_nights.DAG]).issues
    assert issue.outcome == OPEN
    assert "the acceptance by ada ran out on" in issue.why


def test_the_map_shows_how_large_each_change_is(browser: TestClient, store: Store) -> None:
    web_nights.record(store, 1, {"q0": Value.OK, "q5": Value.FASTER})
    run = web_nights.record(store, 2, {"q0": Value.MISSING, "q5": Value.REGRESSION})
    (of_engine,) = overview(store, [web_nights.DAG]).maps
    night, cells = of_engine.newest
    assert (night.id, cells["q5"].ratio) == (run, pytest.approx(1.12))
    table = shown(browser, "/").partition('<table class="map">')[2].partition("</table>")[0]
    assert re.search(r'title="q5 REGRESSION \+12.0 %, \d', table)
    assert re.search(r'title="q5 FASTER −10.0 %, \d', table)
    assert re.search(r'title="q0 MISSING, \d', table)
    assert f'<i class="{bar(1.12)}"></i>' in table
    assert f'<i class="{bar(0.9)}"></i>' in table
    row = table.partition(">q5</a></th>")[2]
    newest = f'<td class="number"><a class="bad" href="{at(run, "query", "q5")}" '
    assert row.startswith(newest)
    assert '"><span class="vh">REGRESSION </span>' in row.partition("</td>")[0]
    assert row.partition("</td>")[0].endswith(" +12.0 %</a>")
    assert ">MISSING </span>" in table.partition(">q0</a></th>")[2].partition("</td>")[0]


@pytest.mark.parametrize(
    ("ratio", "drawn"),
    [
        (1.0, "faster w0"),
        (1.12, "slower w10"),
        (1.25, "slower w20"),
        (0.8, "faster w20"),
        (9.0, "slower w20"),
        (0.01, "faster w20"),
    ],
)
def test_a_bar_goes_right_if_slower_and_ends_at_its_edge(ratio: float, drawn: str) -> None:
    assert bar(ratio) == drawn


def test_the_style_sheet_has_every_bar() -> None:
    css = resources.files("nexmark.report").joinpath("static/page.css").read_text()
    for width in range(BAR_STEPS + 1):
        assert f".w{width} {{ width: {width / 2:g}px; }}" in css
    for side in ("slower", "faster"):
        assert f".map .{side} {{" in css


def test_weeks_begin_on_monday(store: Store) -> None:
    """2026-11-22 is a Sunday."""
    for number in range(1, 10):
        web_nights.record(store, number, GREEN)
    (of_engine,) = overview(store, [web_nights.DAG]).maps
    weeks = [(f"{week.monday}", len(week.columns)) for week in of_engine.weeks]
    accepted = ("2026-11-09", 1)
    assert weeks == [("2026-11-30", 1), ("2026-11-23", 7), ("2026-11-16", 1), accepted]
    newest_first = [night.started for night, _ in of_engine.columns]
    assert newest_first == sorted(newest_first, reverse=True)


@pytest.mark.parametrize(
    ("running", "words"),
    [
        (True, "wait for its tasks"),
        (False, "its run is over and no task goes on"),
        (None, "Airflow has no such run any more"),
    ],
)
def test_a_night_without_a_verdict_says_what_to_do(
    browser: TestClient, store: Store, access: TestAccess, running: bool | None, words: str
) -> None:
    begun = web_nights.paired_night(1)
    web_nights.start(store, begun)
    access.running = running
    assert words in shown(browser, at(begun.run))


def test_a_metric_that_only_informs_is_not_red() -> None:
    assert look(Value.INVALID).tone == look(Value.REGRESSION).tone == "bad"
    for value in (Value.INVALID, Value.REGRESSION):
        informing = look(value, decides=False)
        assert (informing.word, informing.tone) == (value.value, "calm")
    assert look(Value.WATCH, decides=False) == look(Value.WATCH)


def test_every_engine_has_a_row_with_its_newest_night(store: Store) -> None:
    web_nights.record(store, 1, GREEN)
    first = web_nights.record(store, 2, RED)
    newest = web_nights.record(store, 3, RED)
    web_nights.record(store, 2, GREEN, dag_id=OTHER, engine="spark-4.2.1", run_id="r2")
    page = overview(store, [web_nights.DAG, OTHER])
    lines = [(x.line.night.engine, x.line.colour, x.line.build.version) for x in page.engines]
    assert lines == [("spark-4.2.1", "GREEN", "4.3.0"), ("spark-4.3.0", "RED", "4.3.0")]
    red = page.engines[1]
    assert red.line.night.id == newest
    assert red.since is not None
    assert red.since.night == first
    assert red.red == ("q5",)
    assert page.colours == {"RED": 1, "GREEN": 1}


def with_colours(store: Store, access: TestAccess, colours: Sequence[str]) -> None:
    """Record for each colour a night that gets it, of an engine of its own; only these are seen."""
    access.dags = web_nights.DAG.__ne__
    for place, colour in enumerate(colours, 1):
        with_colour(store, place, colour)


def with_colour(store: Store, place: int, colour: str) -> None:
    """Record a night that gets the colour, of an engine of its own."""
    engine = f"spark-4.3.{place}"
    of_engine = {"dag_id": f"nexmark_{place}", "engine": engine, "run_id": f"r{place}"}
    if colour == "NOT JUDGED":
        web_nights.start(store, web_nights.paired_night(place, **of_engine))
        return
    run = web_nights.record(store, place, RED if colour == "RED" else GREEN, **of_engine)
    if colour == "NOT COMPARED":
        store.record_verdicts(run, [by_bounds(q, Value.NO_BASELINE, version=2) for q in GREEN])


@pytest.mark.parametrize(
    ("colours", "tone", "heading"),
    [
        (("GREEN", "GREEN"), "good", "GREEN 2 engines"),
        (("GREEN",), "good", "GREEN 1 engine"),
        (("GREEN", "NOT JUDGED"), "calm", "GREEN 1 of 2 engines, NOT JUDGED 1"),
        (("NOT COMPARED", "GREEN", "GREEN"), "calm", "GREEN 2 of 3 engines, NOT COMPARED 1"),
        (("NOT COMPARED", "NOT COMPARED"), "uncompared", "NOT COMPARED 2 engines"),
        (("NOT JUDGED", "NOT COMPARED"), "calm", "NOT COMPARED 1 of 2 engines, NOT JUDGED 1"),
        (("NOT JUDGED",), "calm", "NOT JUDGED 1 engine"),
        (("RED",), "bad", "RED 1 engine"),
        (("GREEN", "NOT JUDGED", "RED"), "bad", "RED 1 of 3 engines, GREEN 1, NOT JUDGED 1"),
    ],
)
def test_the_heading_counts_every_engine_under_its_own_colour(
    browser: TestClient,
    store: Store,
    access: TestAccess,
    colours: Sequence[str],
    tone: str,
    heading: str,
) -> None:
    """The box is green only if all engines are; it is red if one is."""
    with_colours(store, access, colours)
    _, _, answer = shown(browser, "/").partition('<section class="answer ')
    assert answer.startswith(f'{tone}">')
    h1 = answer.partition("<h1>")[2].partition("</h1>")[0]
    assert re.sub(r"<[^>]*>", "", h1) == heading


@pytest.mark.parametrize("colour", ["RED", "GREEN", "NOT COMPARED", "NOT JUDGED"])
def test_an_engines_night_has_the_same_box_on_its_own_page(
    browser: TestClient, store: Store, access: TestAccess, colour: str
) -> None:
    """A person who follows the link from the first page sees the same colour again."""
    with_colours(store, access, [colour])
    boxes = {
        re.findall(r'<section class="answer (\w+)"', shown(browser, path))[0]
        for path in ("/", at("nexmark_1/r1"))
    }
    assert len(boxes) == 1


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


def test_no_number_of_nights_without_a_verdict_replaces_the_last_verdict(store: Store) -> None:
    """Neither a host that was broken for weeks, nor runs that somebody began and ended at once."""
    red = web_nights.record(store, 1, RED)
    for number in range(2, 30):
        store.record_night(web_nights.paired_night(number))
    page = overview(store, [web_nights.DAG])
    (line,) = page.engines
    assert (line.line.night.id, page.colours, line.red) == (red, {"RED": 1}, ("q5",))
    assert line.unjudged is not None
    assert line.unjudged.id == web_nights.paired_night(29).run


def test_four_hundred_nights_are_a_map_of_the_newest(empty_database: Path, tmp_path: Path) -> None:
    path = tmp_path / "many.db"
    path.write_bytes(empty_database.read_bytes())
    with open_store(f"sqlite:///{path}") as store:
        bench_nights.fill(store, 400, ("q0", "q5"), 1)
        page = overview(store, [bench_nights.DAG])
    (of_engine,) = page.maps
    columns = of_engine.columns
    assert COLUMNS - 5 < len(columns) < COLUMNS
    mondays = [week.monday for week in of_engine.weeks]
    assert mondays == sorted(set(mondays), reverse=True)
    assert {monday.weekday() for monday in mondays} == {0}
    assert columns[0][0].id == page.engines[0].line.night.id
    assert columns[0][0].started > columns[-1][0].started
    assert {x.outcome for x in page.issues} == {OPEN}
