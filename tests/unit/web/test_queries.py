"""The pages of queries over all nights: the grid, and the history of one query."""

from __future__ import annotations

import html
import json
import math
import re
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient

from bench import web_nights as bench_nights
from nexmark.config import SIGNOFF_DAG_ID
from nexmark.evidence.creep import creeps_of
from nexmark.evidence.night_list import ACCEPTED, OPEN
from nexmark.evidence.query_grid import GRID_SORTS, query_grid
from nexmark.evidence.query_over_time import query_over_time
from nexmark.model import CPU, SUITE, WALL, Mode, Value, metric_of
from nexmark.report.charts import over_time_charts
from nexmark.report.rendering import FILTERS, build_labels, sparkline, sparkline_scale
from nexmark.store import BuildRecord, Store
from nexmark.store.place_history import Place
from nexmark.store.query_history import RatioPoint
from nexmark.store.table_rows import BuildRow
from nexmark.verdict.verdict import Verdict
from tests.unit.store.night_builder import OK, judged
from tests.unit.store.store_builder import STARTED
from tests.unit.web import web_nights
from tests.unit.web.conftest import TestAccess
from tests.unit.web.pages import at, shown
from tests.unit.web.web_nights import DAG, NEW

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")

OTHER = "nexmark_spark_4_2_1"
ELSEWHERE = {"dag_id": OTHER, "engine": "spark-4.2.1", "workload": "small", "run_id": "elsewhere"}
RED, GREEN = {"q0": Value.OK, "q5": Value.REGRESSION}, {"q0": Value.OK, "q5": Value.OK}
NIGHTS = 30
CHANGED = f"{DAG}/{bench_nights._run_id(NIGHTS - 3)}"
"""The night since which q5 and q9 are slower."""


@pytest.fixture
def filled(store: Store) -> str:
    """Thirty nights of three builds; in the last three, q5 and q9 are slower. The newest night."""
    return bench_nights.fill(store, NIGHTS, ("q0", "q5", "q9", "q10"), 1)


def queries(text: str) -> list[str]:
    """The queries of the grid, in the order of its rows."""
    return re.findall(r'<th scope="row"><a href="[^"]*/query/(\w+)\?', text)


# --- the grid


def test_the_grid_has_a_row_for_every_query_with_what_needs_attention_first(
    browser: TestClient, filled: str
) -> None:
    text = shown(browser, "/queries")
    order = queries(text)
    assert sorted(order[:2]) == ["q5", "q9"]
    assert set(order) == {"q0", "q5", "q9", "q10", SUITE}
    assert queries(shown(browser, "/queries?sort=query")) == ["q0", "q5", "q9", "q10", SUITE]
    assert queries(shown(browser, "/queries?sort=nothing")) == order
    drawings = re.findall(r'<svg class="spark"[^>]* role="img" aria-label="([^"]+)"', text)
    assert len(drawings) == len(order)
    assert all(words.startswith("30 nights, from ") for words in drawings)
    assert [words.endswith(", 3 red") for words in drawings] == [True, True, False, False, False]


def test_the_last_change_of_a_query_is_dated_in_the_grid(store: Store, filled: str) -> None:
    page = query_grid(store, [DAG], Place())
    assert page is not None
    changes = {line.query: line.change for line in page.lines}
    assert changes["q0"] is None
    assert changes["q5"] is not None
    assert changes["q5"].first.verdict.night == CHANGED
    for sort in ("change", "date"):
        sorted_page = query_grid(store, [DAG], Place(), sort=sort)
        assert sorted_page is not None
        assert {line.query for line in sorted_page.lines[:2]} == {"q5", "q9"}


@pytest.mark.parametrize("day", [None, f"{bench_nights.STARTED + timedelta(days=15):%Y-%m-%d}"])
def test_the_sum_since_a_day_is_the_sum_of_the_page_of_a_query(
    store: Store, filled: str, day: str | None
) -> None:
    page = query_grid(store, [DAG], Place(), since=day or "first", sort="since")
    assert page is not None
    sums = {line.query: line.since for line in page.lines if line.since}
    assert set(sums) == {"q0", "q5", "q9", "q10"}
    for query, chain in sums.items():
        creep = creeps_of(store, store.night(filled), query, CPU, day=day)
        if creep:  # there is none where no build was accepted since that day
            assert (chain.ratio, chain.lo, chain.since) == (
                creep[0].ratio,
                creep[0].lo,
                creep[0].since,
            )
    ratios = [line.ratio for line in page.lines if line.since]
    assert ratios == sorted(ratios, key=lambda ratio: -(ratio or 0))


def test_a_sum_may_begin_with_any_build_that_was_a_baseline(
    browser: TestClient, store: Store, filled: str
) -> None:
    old, newer = (f"{number:02d}" + "b" * 14 for number in (0, 1))
    page = query_grid(store, [DAG], Place(), since=newer)
    assert page is not None
    assert {build.id for build in page.baselines} == {old, newer}
    (q5,) = (line.since for line in page.lines if line.query == "q5")
    assert q5 is not None
    assert (q5.since, q5.accepted) == (newer, 0)
    text = shown(browser, f"/queries?since={newer}&sort=since")
    assert "Since 4.3.0-SNAPSHOT-1" in text
    assert f'<option value="{newer}" selected>' in text


def test_a_sum_since_the_last_release_begins_with_the_build_that_was_signed_off(
    browser: TestClient, store: Store, tmp_path: Path
) -> None:
    """The sum has what came after the release alone, and the largest loss is first."""
    builds = [BuildRecord(f"{number}b" * 8, f"4.3.{number}", "tarball:x") for number in range(4)]
    changes = {1: {"q0": 1.3, "q2": 0.98, "q10": 1.01}, 2: {"q0": 0.97, "q2": 1.02, "q10": 1.06}}
    changes |= {3: {"q0": 0.99, "q2": 1.03, "q10": 1.01}}

    def measured(number: int, **night: Any) -> str:
        """Record a night of a build against the one before, with the changes of the build."""
        verdicts = [
            replace(OK, query=query, ratio=ratio, shift=math.log(ratio), noise=0.005)
            for query, ratio in changes[number].items()
        ]
        old = builds[number - 1]
        common = {"queries": tuple(changes[number]), "baseline_builds": [old]}
        common["baselines"] = dict.fromkeys(changes[number], old.id)
        verdicts = [replace(each, baseline_build=old.id) for each in verdicts]
        return judged(store, number, *verdicts, build=builds[number], **common, **night)

    measured(1)
    directory = tmp_path / "signoff-run"
    measured(1, dag_id=SIGNOFF_DAG_ID, teaches=False, directory=directory)
    (directory / "signoff").mkdir(parents=True)
    decision = {"choice": "approved", "when": f"{STARTED + timedelta(days=1, hours=9)}"}
    decided = json.dumps({"decision": {**decision, "signed_off": True}})
    (directory / "signoff" / "evidence.json").write_text(decided)
    measured(2)
    measured(3)
    page = query_grid(store, [DAG], Place(), since="release", sort="since")
    assert page is not None
    sums = {line.query: line.since.ratio for line in page.lines if line.since}
    after = {query: changes[2][query] * changes[3][query] for query in changes[1]}
    assert sums == pytest.approx(after)
    assert [*sums] == sorted(after, key=lambda query: -after[query]) == ["q10", "q2", "q0"]
    assert {line.since.since for line in page.lines if line.since} == {builds[1].id}
    text = shown(browser, "/queries?since=release&sort=since")
    assert queries(text) == ["q10", "q2", "q0"]
    assert "Since the last release" in text
    assert re.findall(r'since build .*?">([^<]+)</span>', text) == [
        f"{FILTERS['change'](ratio)} {'slower' if ratio > 1 else 'faster'}"
        for ratio in (after["q10"], after["q2"], after["q0"])
    ]


def test_without_a_sum_the_grid_sorts_by_the_last_ratio(store: Store, filled: str) -> None:
    page = query_grid(store, [DAG], Place(), sort="since")
    assert page is not None
    ratios = [line.last.verdict.ratio for line in page.lines]
    assert ratios == sorted(ratios, key=lambda ratio: -(ratio or 0))
    assert page.since_words == "Against its baseline"


@pytest.mark.parametrize(
    ("since", "words"),
    [
        ("since=release", "No build of spark-4.3.0 was signed off"),
        ("day=2031-01-01", "Nothing links that beginning"),
        ("since=day&day=2031-01-01", "Since 2031-01-01"),
        ("since=first&day=2031-01-01", "Since the first baseline"),
        ("since=night&day=2031-01-01", "Against its baseline"),
    ],
)
def test_the_page_says_since_when_it_sums_up(
    browser: TestClient, filled: str, since: str, words: str
) -> None:
    assert words in shown(browser, f"/queries?{since}")


@pytest.mark.parametrize("since", ["yesterday", "20260101", "2026-13-01", "c0ffee"])
def test_a_beginning_that_does_not_exist_is_refused_in_a_sentence(
    browser: TestClient, filled: str, since: str
) -> None:
    answer = browser.get(f"/queries?since={since}")
    assert answer.status_code == 400
    assert "is no day (2026-10-01), and no build" in html.unescape(answer.text)


def test_a_heading_keeps_the_place_and_the_sum(browser: TestClient, filled: str) -> None:
    text = html.unescape(shown(browser, "/queries?since=first&sort=date"))
    for sort in ("query", "attention", "date", "change", "since"):
        assert (
            "/queries?engine=spark-4.3.0&workload=nightly&cluster=nexmark&since=first"
            f"&sort={sort}" in text
        )
    assert set(GRID_SORTS) == {"query", "attention", "date", "change", "since"}
    assert text.count("aria-sort=") == 1


# --- one query


def test_a_query_has_a_page_with_its_metrics_changes_builds_and_reds(
    browser: TestClient, store: Store, filled: str
) -> None:
    page = query_over_time(store, [DAG], "q5", Place())
    assert page is not None
    assert [line.metric.name for line in page.metrics] == [
        *(CPU, WALL, "batch_ms_p99", "state_bytes_max")
    ]
    assert len(page.points) == NIGHTS
    (change,) = page.changes
    assert change.level.first.verdict.night == CHANGED
    assert change.issue is not None
    assert change.issue.outcome == OPEN
    assert page.open == page.issues[0] == change.issue
    assert [one.build.version for one in page.builds] == [
        f"4.3.0-SNAPSHOT-{number}" for number in range(3)
    ]
    assert [one.nights for one in page.builds] == [10, 10, 10]
    text = shown(browser, "/query/q5")
    for words in ("REGRESSION", "the build was the same before", "Since ", at(CHANGED), "decides"):
        assert words in text, words


def test_a_change_names_the_build_that_brought_it_and_what_became_of_it(
    browser: TestClient, store: Store
) -> None:
    """Faster and slower builds; a person accepts the slower one."""
    runs = []
    for number in range(1, 13):
        made = NEW if number > 6 else BuildRecord("aa" * 8, "4.2.9", "pypi:4.2.9")
        values = {"q5": Value.REGRESSION if number > 6 else Value.OK}
        runs.append(web_nights.record(store, number, values, build=made))
    store.accept(runs[-1], "ada", "wanted so", ["q5"])
    page = query_over_time(store, [DAG], "q5", Place())
    assert page is not None
    (change,) = page.changes
    assert change.level.first.verdict.night == runs[6]
    builds = change.level.first.verdict.build, change.level.last.verdict.build
    assert builds == (NEW.id, "aa" * 8)
    assert change.issue is not None
    assert (change.issue.outcome, change.issue.why) == (ACCEPTED, "by ada: wanted so")
    assert "spark.a baseline -> candidate" in change.cause
    assert [ack.row.reason for ack in page.acks] == ["wanted so"]
    text = shown(browser, "/query/q5")
    row = text.partition('id="changes"')[2].partition("</table>")[0]
    for words in ("4.3.0 pypi", "4.2.9 pypi", "after", ACCEPTED, "spark.a baseline"):
        assert words in row, words


def test_another_metric_can_be_shown(browser: TestClient, store: Store, filled: str) -> None:
    page = query_over_time(store, [DAG], "q5", Place(), WALL)
    assert page is not None
    assert page.metric.name == WALL
    assert {point.verdict.metric for point in page.points} == {WALL}
    assert page.issues[0].outcome == OPEN  # the reds are by the metric that decides
    text = html.unescape(shown(browser, f"/query/q5?metric={WALL}"))
    assert f'metric={WALL}" aria-current="true"' in text
    unknown = query_over_time(store, [DAG], "q5", Place(), "no_metric")
    assert unknown is not None
    assert unknown.metric.name == CPU


def test_the_charts_have_the_ratio_by_night_and_the_figures_by_build(
    store: Store, filled: str
) -> None:
    page = query_over_time(store, [DAG], "q5", Place())
    assert page is not None
    by_night, by_build = over_time_charts(page)
    assert len(by_night.rows) == NIGHTS
    assert [row[0] for row in by_build.rows] == [
        f"4.3.0-SNAPSHOT-{number} spark-{number}.tgz" for number in (2, 1, 0)
    ]
    assert by_build.svg().startswith("<svg")


def test_a_trial_of_a_conf_compares_no_build_with_itself(browser: TestClient, store: Store) -> None:
    web_nights.record(store, 1, GREEN)
    confs = {"a": "1"}
    web_nights.record(store, 2, RED, teaches=False, build=web_nights.OLD, candidate_conf=confs)
    trials = shown(browser, "/query/q5").partition("Comparisons and trials")[2]
    assert "the same build" in trials


def test_comparisons_and_trials_are_listed_apart(browser: TestClient, store: Store) -> None:
    run = web_nights.record(store, 1, GREEN)
    trial = web_nights.record(store, 2, RED, teaches=False)
    page = query_over_time(store, [DAG], "q5", Place())
    assert page is not None
    assert [point.verdict.night for point in page.points] == [run]
    assert [point.verdict.night for point in page.trials] == [trial]
    assert page.open is None
    text = shown(browser, "/query/q5")
    assert "Comparisons and trials" in text
    assert at(trial) in text
    assert "the same build" not in text


def test_a_place_with_comparisons_only_has_pages_too(browser: TestClient, store: Store) -> None:
    web_nights.record(store, 1, RED, teaches=False)
    page = query_over_time(store, [DAG], "q5", Place())
    assert page is not None
    assert (len(page.points), page.trials) == (1, ())
    assert queries(shown(browser, "/queries")) == ["q5", "q0"]


def test_the_suite_and_a_night_by_bounds_have_pages(browser: TestClient, store: Store) -> None:
    bench_nights.fill(store, 8, ("q0", "q5"), 1)
    assert "suite over all nights" in shown(browser, "/query/suite")
    assert query_over_time(store, [DAG], "q5", Place("gone")) is None


# --- places, and what is not to be seen


def test_the_place_that_was_measured_last_is_shown_unless_another_is_asked_for(
    browser: TestClient, store: Store
) -> None:
    first = web_nights.record(store, 1, GREEN)
    other = web_nights.record(store, 2, GREEN, **ELSEWHERE)
    assert at(other, "query", "q5") in shown(browser, "/query/q5")
    here = shown(browser, "/query/q5?engine=spark-4.3.0")
    assert at(first, "query", "q5") in here
    assert "/query/q5?engine=spark-4.2.1&amp;workload=small&amp;cluster=local" in here
    assert "spark-4.3.0, smoke, local" in shown(browser, "/queries?workload=smoke")
    web_nights.record(store, 3, GREEN, teaches=False, engine="spark-trial", run_id="trial")
    assert at(other, "query", "q5") in shown(browser, "/query/q5")


def test_a_query_is_shown_where_it_was_judged(browser: TestClient, store: Store) -> None:
    run = web_nights.record(store, 1, {"q9": Value.OK})
    web_nights.record(store, 2, GREEN, **ELSEWHERE)
    assert at(run, "query", "q9") in shown(browser, "/query/q9")


@pytest.mark.parametrize(
    "path",
    [
        *("/query/q7", "/query/nothing", "/query/q5?engine=gone", "/queries?cluster=gone"),
        "/query/%3Cscript%3Ealert(1)",
    ],
)
def test_what_no_night_has_judged_is_said_in_a_sentence(
    browser: TestClient, store: Store, path: str
) -> None:
    web_nights.record(store, 1, GREEN)
    answer = browser.get(path)
    assert answer.status_code == 404
    assert "or it is not for you" in html.unescape(answer.text)
    assert "<script>alert" not in answer.text


def test_nights_and_acceptances_of_hidden_dags_are_not_in_the_pages(
    browser: TestClient, store: Store, access: TestAccess
) -> None:
    web_nights.record(store, 1, GREEN)
    hidden = web_nights.record(store, 2, RED, dag_id=OTHER, run_id="hidden-run")
    store.accept(hidden, "grace", "a hidden reason", ["q5"])
    access.dags = lambda dag: dag == DAG
    for path in ("/queries", "/query/q5", "/query/q0"):
        text = shown(browser, path)
        for words in ("hidden-run", "hidden reason", "REGRESSION"):
            assert words not in text, path


def test_a_night_its_queries_and_the_first_page_lead_to_the_pages(
    browser: TestClient, store: Store
) -> None:
    run = web_nights.record(store, 1, GREEN)
    place = "engine=spark-4.3.0&workload=smoke&cluster=local"
    for path, address in (
        (at(run), f"/queries?{place}"),
        (at(run, "query", "q5"), f"/query/q5?{place}"),
        ("/", f"/query/q5?{place}"),
        ("/", "/queries"),
        ("/query/q5", f"/queries?{place}"),
    ):
        assert f'href="{address}"' in html.unescape(shown(browser, path)), path


# --- small drawings and names


def points(*ratios: float | None, bad: bool = False) -> list[RatioPoint]:
    value = Value.REGRESSION if bad else Value.OK
    numbers: list[Any] = ["q5", CPU, value, "", Mode.PAIRED, 1]
    return [
        RatioPoint(datetime(2026, 1, day, tzinfo=UTC), "4", "s", "b", verdict, "new", "old")
        for day, ratio in enumerate(ratios, 1)
        for verdict in [Verdict(str(day), *numbers, ratio=ratio)]
    ]


def test_a_small_drawing_is_cut_where_a_night_has_no_ratio() -> None:
    some = points(1.0, 1.05, None, 0.95, math.nan, 1.0)
    drawn = sparkline(some, sparkline_scale([some]))
    assert [part.count("L") for part in drawn.path.split("M")[1:]] == [1, 0, 0]
    assert drawn.words == "6 nights, from 0.950 to 1.050, the last 1.000"
    assert drawn.last is not None
    assert drawn.last[1] == drawn.middle
    assert sparkline(some[:3], sparkline_scale([some])).last is None
    nothing = sparkline(points(None), sparkline_scale([]))
    assert (nothing.path, nothing.last, nothing.words) == ("", None, "1 night")


def test_slower_is_higher_and_a_red_night_has_a_mark() -> None:
    slow = points(1.0, 1.2, bad=True)
    drawn = sparkline(slow, sparkline_scale([slow]))
    (_, level), (_, slower) = drawn.reds
    assert slower < level == drawn.middle
    assert drawn.words.endswith(", 2 red")
    wrong = sparkline(points(None, bad=True), sparkline_scale([]))
    assert wrong.reds == ((4.0, wrong.middle),)


def test_builds_have_short_names_that_differ() -> None:
    sources = {
        "aa": ("4.3.0", "pypi:4.3.0"),
        "bb": ("4.4.0-SNAPSHOT", "tarball:https://ada:hunter2@ci.example/nightly/spark-7.tgz"),
        "cc": ("4.4.0-SNAPSHOT", "tarball:https://other.example/spark-7.tgz"),
        "dd": ("4.3.1", "directory:/opt/spark/"),
    }
    rows = [BuildRow(id=name, version=v, source=s) for name, (v, s) in sources.items()]
    rows.append(BuildRow(id="ee", version="4.4.0", source="pypi:4.4.0", revision="c0ffee" * 6))
    assert build_labels(rows) == {
        "ee": "4.4.0 c0ffeec0ff",
        "aa": "4.3.0 pypi:4.3.0",
        "bb": "4.4.0-SNAPSHOT spark-7.tgz bb",
        "cc": "4.4.0-SNAPSHOT spark-7.tgz cc",
        "dd": "4.3.1 opt/spark",
    }


@pytest.mark.parametrize(
    ("metric", "ratio", "word"),
    [
        (CPU, 1.1, "slower"),
        (CPU, 0.9, "faster"),
        (WALL, 1.1, "worse"),
        ("read_rate", 1.1, "better"),
    ],
)
def test_a_change_has_a_word_for_its_direction(metric: str, ratio: float, word: str) -> None:
    assert FILTERS["way"](metric_of(metric), ratio) == word
