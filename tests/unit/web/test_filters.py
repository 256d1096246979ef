"""Filters and search on the pages of nights, builds and acceptances."""

from __future__ import annotations

import html
import re
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from fastapi.testclient import TestClient

from nexmark.evidence.alarms import acks_page
from nexmark.evidence.build_comparison import builds_page
from nexmark.evidence.night_list import PAGE, nights_page
from nexmark.model import Mode, Value
from nexmark.store import BuildRecord, Store, open_store
from nexmark.store.list_filter import ListFilter
from tests.unit.store.store_builder import by_bounds, night
from tests.unit.store.store_builder import record as record_by_bounds
from tests.unit.web import web_nights
from tests.unit.web.conftest import TestAccess
from tests.unit.web.pages import at, shown
from tests.unit.web.web_nights import DAG, NEW, OLD

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")

OTHER = "nexmark_spark_4_2_1"
RED, GREEN = {"q0": Value.OK, "q5": Value.REGRESSION}, {"q0": Value.OK, "q5": Value.OK}
SECRET = BuildRecord("f5" * 8, "4.3.1", "tarball:https://ada:hunter2@ci.example/spark.tgz")


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, str]]:
    """A database of nights that differ in what a filter looks at, and the names of the nights."""
    file = tmp_path_factory.mktemp("filters") / "results.db"
    other = {"dag_id": OTHER, "engine": "spark-4.2.1", "workload": "small"}
    with open_store(f"sqlite:///{file}") as store:
        nights = {
            "green": web_nights.record(store, 1, GREEN, started_by="scheduled"),
            "red": web_nights.record(store, 2, RED, started_by="ada"),
            "other": web_nights.record(store, 3, GREEN, started_by="ada", **other),
            "secret": web_nights.record(store, 4, GREEN, build=SECRET),
        }
    return file, nights


@pytest.fixture
def runs(database: str, recorded: tuple[Path, dict[str, str]]) -> dict[str, str]:
    """The names of the nights, which are in the database of the test."""
    file, nights = recorded
    shutil.copy(file, database.removeprefix("sqlite:///"))
    return nights


def named(runs: dict[str, str], text: str) -> set[str]:
    """The names of the nights to which a page has links."""
    return {name for name, run in runs.items() if f'href="{at(run)}"' in html.unescape(text)}


@pytest.mark.parametrize(
    ("asked", "nights"),
    [
        ("", {"green", "red", "other", "secret"}),
        ("engine=spark-4.2.1", {"other"}),
        ("workload=small", {"other"}),
        ("by=ada", {"red", "other"}),
        ("by=scheduled", {"green"}),
        ("red=1", {"red"}),
        ("by=ada&red=1&engine=spark-4.2.1", set()),
        ("search=4.3.1", {"secret"}),
        ("search=CI.EXAMPLE", {"secret"}),
        (f"search={OLD.id[:9]}", {"green", "red", "other", "secret"}),
        ("search=pypi:4.3.0", {"green", "red", "other"}),
        (f"search=+{OTHER}+", {"other"}),
        ("search=04:00:02", {"red"}),
        ("search=%25", set()),
        ("search=nothing+like+this", set()),
        ("engine=gone", set()),
    ],
)
def test_a_filter_leaves_the_nights_that_it_asks_for(
    browser: TestClient, runs: dict[str, str], asked: str, nights: set[str]
) -> None:
    text = shown(browser, f"/nights?{asked}")
    assert named(runs, text) == nights
    assert ("No night is as the filter asks" in text) == (not nights)


@pytest.mark.parametrize("path", ["/nights", "/builds", "/acks"])
def test_a_search_does_not_find_out_a_password(
    browser: TestClient, runs: dict[str, str], store: Store, path: str
) -> None:
    store.accept(runs["secret"], "ada", "see https://ada:hunter2@ci.example", ["q0"])
    assert "hunter" not in shown(browser, path)
    found = shown(browser, f"{path}?search=hunter")
    assert "as the filter asks" in found
    assert "4.3.1" in shown(browser, f"{path}?search=ci.example")


def test_an_accepted_red_is_not_a_red_night(runs: dict[str, str], store: Store) -> None:
    red = ListFilter(red=True)
    assert [line.night.id for line in nights_page(store, [DAG], 1, red).lines] == [runs["red"]]
    store.accept(runs["red"], "ada", "meant", ["q5"])
    (ack,) = store.acceptances()
    known = [
        replace(one, acceptance=ack.id if one.query == "q5" else None)
        for one in store.verdicts(runs["red"])
    ]
    store.record_verdicts(runs["red"], known)
    assert nights_page(store, [DAG], 1, red).lines == ()


def test_a_red_of_an_older_gate_is_not_a_red_night(runs: dict[str, str], store: Store) -> None:
    again = [replace(one, gate_version=9, value=Value.OK) for one in store.verdicts(runs["red"])]
    store.record_verdicts(runs["red"], again)
    assert nights_page(store, [DAG], 1, ListFilter(red=True)).lines == ()


def test_a_row_says_which_dag_measured_what_against_what_and_for_whom(
    browser: TestClient, runs: dict[str, str], store: Store
) -> None:
    (row,) = re.findall(
        r"<tr>.*?</tr>",
        shown(browser, "/nights?engine=spark-4.2.1").partition("<tbody>")[2],
        re.DOTALL,
    )
    names = ("4.3.0 pypi", NEW.id[:12], "4.2.9 pypi", OLD.id[:12])
    for words in (*names, OTHER, "ada", "small"):
        assert words in row
    itself = web_nights.record(store, 5, baselines={"q0": NEW.id, "q5": NEW.id})
    assert "the same build" in shown(browser, "/nights?search=04:00:05")
    assert nights_page(store, [DAG]).lines[0].night.id == itself


def test_a_night_by_bounds_names_the_build_of_the_accepted_run(store: Store) -> None:
    first = record_by_bounds(store, night(1, build=OLD))
    later = record_by_bounds(store, night(2, build=NEW))
    store.record_verdicts(later, [by_bounds("q5", Value.OK, baseline_run=first)])
    newest, oldest = nights_page(store, [DAG]).lines
    assert newest.night.mode == Mode.BOUNDS
    assert [build.id for build in newest.against] == [OLD.id]
    assert oldest.against == ()
    found = nights_page(store, [DAG], 1, ListFilter(search="4.2.9")).lines
    assert [line.night.id for line in found] == [later, first]


def test_other_pages_of_a_list_keep_its_filter(browser: TestClient, store: Store) -> None:
    for number in range(PAGE + 1):
        run = f"manual__{number:03d}"
        web_nights.start(
            store, web_nights.paired_night(1, run_id=run, started_by="ada & bob", engine="e=1")
        )
    text = shown(browser, "/nights?by=ada+%26+bob&engine=e%3D1")
    (older,) = re.findall(r'rel="next" href="([^"]+)"', text)
    address = html.unescape(older)
    assert address == "/nights?page=2&engine=e%3D1&by=ada+%26+bob"
    text = shown(browser, address)
    assert "page 2 of 2" in text
    assert "<option selected>ada &amp; bob</option>" in text
    (newer,) = re.findall(r'rel="prev" href="([^"]+)"', text)
    assert html.unescape(newer) == address.replace("page=2", "page=1")


def test_the_form_shows_the_filter_of_the_address(
    browser: TestClient, runs: dict[str, str]
) -> None:
    text = shown(browser, "/nights?engine=gone&by=ada&red=1&search=%3Cb%3E")
    for words in (
        "<option selected>gone</option>",
        "<option selected>ada</option>",
        "<option>spark-4.3.0</option>",
        'value="&lt;b&gt;"',
        'name="red" value="1" checked',
        '<a href="/nights">',
    ):
        assert words in text
    assert "checked" not in shown(browser, "/nights")


@pytest.mark.parametrize(
    ("asked", "builds"),
    [
        ("", {SECRET.id, NEW.id, OLD.id}),
        ("engine=spark-4.2.1", {NEW.id, OLD.id}),
        ("red=1", set()),
        ("red=1&by=ada", set()),
        ("red=1&engine=spark-4.3.0&by=ada", {NEW.id}),
        ("search=4.2.9", {OLD.id}),
        ("search=F5F5", {SECRET.id}),
    ],
)
def test_a_filter_leaves_the_builds_that_it_asks_for(
    browser: TestClient, runs: dict[str, str], asked: str, builds: set[str]
) -> None:
    text = shown(browser, f"/builds?{asked}")
    rows = re.findall(r'<th scope="row"><span class="build">.*?<code title="(\w+)">', text)
    assert set(rows) == builds


def test_a_build_is_red_by_its_last_night_that_the_filter_lets_through(
    runs: dict[str, str], store: Store
) -> None:
    page = builds_page(store, [DAG, OTHER], ListFilter(by="ada", engine="spark-4.3.0"))
    ((build, last), _) = page.lines
    assert last is not None
    assert (build.id, last.night.id, last.colour) == (NEW.id, runs["red"], "RED")
    assert [one.id for one in last.against] == [OLD.id]


@pytest.mark.parametrize(
    ("asked", "queries"),
    [
        ("", {"q0", "q5"}),
        ("red=1", {"q5"}),
        ("by=bob", {"q0"}),
        ("engine=spark-4.2.1", set()),
        ("search=moon", {"q5"}),
        ("search=superseded", set()),
        ("search=4.2.9", {"q0", "q5"}),
    ],
)
def test_a_filter_leaves_the_acceptances_that_it_asks_for(
    browser: TestClient, runs: dict[str, str], store: Store, asked: str, queries: set[str]
) -> None:
    store.accept(runs["red"], "bob", "a new baseline", ["q0"])
    store.accept(runs["red"], "ada", "slower under a full moon", ["q5"])
    text = shown(browser, f"/acks?{asked}")
    assert set(re.findall(r'/query/(q\d)"', text)) == queries
    assert ("No acceptance is as the filter asks" in text) == (not queries)


def test_an_acceptance_names_its_verdict_its_dag_and_both_builds(
    runs: dict[str, str], store: Store
) -> None:
    store.accept(runs["red"], "ada", "meant", ["q5"])
    (ack,) = acks_page(store, [DAG]).acks
    assert (ack.value, ack.red, ack.dag) == (Value.REGRESSION, True, DAG)
    assert ack.build is not None
    assert ack.against is not None
    assert (ack.build.id, ack.against.id) == (NEW.id, OLD.id)


def test_a_filter_offers_only_what_the_user_may_see(
    browser: TestClient, runs: dict[str, str], store: Store, access: TestAccess
) -> None:
    store.accept(runs["other"], "grace", "meant", ["q5"])
    access.dags = lambda dag: dag == DAG
    for path in ("/nights", "/builds", "/acks"):
        text = shown(browser, path)
        for hidden in ("spark-4.2.1", "small", "grace", OTHER):
            assert hidden not in text, path


def test_a_filter_that_is_too_long_is_refused_in_a_sentence(browser: TestClient) -> None:
    answer = browser.get(f"/nights?search={'x' * 300}")
    assert answer.status_code == 400
    assert "search: is missing or wrong" in answer.text
