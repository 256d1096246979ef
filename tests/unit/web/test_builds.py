"""Builds on the pages and in the terminal: by version and origin, and any two are compared."""

from __future__ import annotations

import html
import re
from collections.abc import Sequence

import pytest
from fastapi.testclient import TestClient

from nexmark.cli.app import main
from nexmark.evidence import build_comparison
from nexmark.model import Value, build_name, origin_of
from nexmark.night.deployments import Deployment
from nexmark.store import BuildRecord, Store
from nexmark.store.table_rows import CompatibilityRow
from tests.unit.web import web_nights
from tests.unit.web.pages import at, shown
from tests.unit.web.web_nights import NEW, OLD

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")

SHA512 = "a" * 128


@pytest.fixture
def run(store: Store) -> str:
    """A red night of a build against one that was a baseline only, as `nexmark build` makes it."""
    begun = web_nights.paired_night(1, baseline_builds=[OLD])
    store.record_night(begun)
    values = {"q0": Value.OK, "q5": Value.REGRESSION}
    return web_nights.record(store, 2, values, baseline_builds=[OLD])


def chosen(text: str) -> list[str]:
    """The builds that the form of a page compares as it stands."""
    return re.findall(r'value="(\w+)"[^>]* (?:checked|selected)', text)


def test_a_link_with_both_hashes_compares_a_build_with_its_baseline(
    browser: TestClient, store: Store, run: str
) -> None:
    link = f"/compare?new={NEW.id}&old={OLD.id}"
    assert "measured on both in turns" in shown(browser, link)
    assert link in html.unescape(shown(browser, at(run)))
    assert chosen(shown(browser, link)) == [NEW.id, OLD.id]
    turned = f"/compare?new={OLD.id}&old={NEW.id}"
    assert chosen(shown(browser, turned)) == [OLD.id, NEW.id]


def test_queries_with_the_same_ratio_are_compared_in_the_order_of_their_numbers(
    browser: TestClient, store: Store
) -> None:
    """Else q10 comes before q2; the queries of the night are in another order."""
    values = dict.fromkeys(("q10", "q2", "q11", "q1"), Value.OK) | {"q20": Value.REGRESSION}
    web_nights.record(store, 1, values, baseline_builds=[OLD])
    text = shown(browser, f"/compare?new={NEW.id}&old={OLD.id}")
    order = re.findall(r'<th scope="row">(q\d+)</th>', text)
    assert order == ["q20", "q1", "q2", "q10", "q11"]


def test_a_link_works_before_the_night_is_judged(browser: TestClient, store: Store) -> None:
    store.record_night(web_nights.paired_night(1, baseline_builds=[OLD]))
    assert "No query was measured on both" in shown(browser, f"/compare?new={NEW.id}&old={OLD.id}")


def test_a_link_works_for_builds_that_are_not_listed_any_more(
    browser: TestClient, run: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(build_comparison, "SHOWN", 1)
    text = shown(browser, f"/compare?new={NEW.id}&old={OLD.id}")
    assert chosen(text) == [NEW.id, OLD.id]


def test_the_begin_of_a_hash_is_enough_where_only_one_build_has_it(
    browser: TestClient, store: Store, run: str
) -> None:
    short = f"/compare?new={NEW.id[:12]}&old={OLD.id[:12]}"
    assert "measured on both in turns" in shown(browser, short)
    alike = BuildRecord(f"{NEW.id[:12]}ffff", "4.3.1", "pypi:4.3.1")
    store.record_night(web_nights.paired_night(3, build=alike))
    for new in (NEW.id[:12], "none"):
        response = browser.get(f"/compare?new={new}&old={OLD.id}")
        assert (response.status_code, "there is no build" in response.text) == (404, True)


def test_no_build_is_offered_against_itself(browser: TestClient, store: Store, run: str) -> None:
    for page in ("/compare", "/builds"):
        assert chosen(shown(browser, page)) == [NEW.id, OLD.id]


def test_one_build_alone_is_not_offered_for_a_comparison(browser: TestClient, store: Store) -> None:
    store.record_night(web_nights.paired_night(1, baselines={}))
    for page in ("/compare", "/builds"):
        text = shown(browser, page)
        assert "4.3.0 pypi" in text
        assert "nexmark build --build … --against …" in text
        assert "Compare the two" not in text


def visible(page: str) -> str:
    """The text of a page that a person sees, without the data of its charts."""
    text = re.sub(r"<script.*?</script>", " ", page, flags=re.DOTALL)
    return " ".join(html.unescape(re.sub(r"<[^>]+>", " ", text)).split())


def bare(text: str, builds: Sequence[BuildRecord] = (NEW, OLD)) -> list[str]:
    """The places where a text has a hash without the version and the origin before it."""
    ids = "|".join(build.id[:12] for build in builds)
    names = "|".join(re.escape(build.version) + " pypi(:[0-9.]+)? " for build in builds)
    places = [place.start() for place in re.finditer(ids, text)]
    assert places
    return [
        text[max(0, place - 40) : place + 12]
        for place in places
        if not re.search(f"({names})$", text[:place])
    ]


def test_every_page_names_a_build_by_version_and_origin_first(
    browser: TestClient, run: str
) -> None:
    pages = ["/", "/nights", "/builds", "/compare", f"/compare?new={NEW.id}&old={OLD.id}"]
    for path in (*pages, at(run), at(run, "query", "q5")):
        assert bare(visible(shown(browser, path))) == [], path


@pytest.mark.parametrize(
    "words",
    [
        ["nights"],
        ["acks"],
        ["report", "--run"],
        ["show", "--run"],
        ["history", "--query", "q5"],
    ],
)
def test_the_terminal_names_a_build_by_version_and_origin_first(
    store: Store, database: str, run: str, words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    store.accept(run, "ada", "meant")
    options = [run] if words[-1] == "--run" else []
    assert main([*words, *options, "--db", database]) == 0
    assert bare(" ".join(capsys.readouterr().out.split())) == []


@pytest.mark.parametrize(
    ("source", "origin"),
    [
        ("pypi:4.2.1", "pypi:4.2.1"),
        (
            f"tarball:https://ci.example/x/spark-4.3.0-bin.tgz#sha512={SHA512}",
            "spark-4.3.0-bin.tgz",
        ),
        (f"tarball:https://ci.example/spark.tgz?sig=abc#sha512={SHA512}", "spark.tgz"),
        ("directory:/opt/builds/spark/dist/", "spark/dist"),
        ("", ""),
    ],
)
def test_an_origin_is_short(source: str, origin: str) -> None:
    assert origin_of(source) == origin


def test_a_name_has_version_origin_and_hash() -> None:
    assert build_name("4.3.0", "pypi:4.3.0", NEW.id) == "4.3.0 pypi c430c430c430"
    assert build_name("4.3.0", "pypi:4.3.0.dev1", NEW.id) == "4.3.0 pypi:4.3.0.dev1 c430c430c430"
    assert build_name("", "", NEW.id) == "c430c430c430"


def test_the_log_of_a_night_names_what_it_deployed_without_a_password() -> None:
    deployed = Deployment(
        build=NEW.id,
        spark_version="4.3.0",
        spark_home="/x",
        source=f"tarball:https://ada:hush@ci.example/spark.tgz#sha512={SHA512}",
        jobs="j",
        jobs_home="/y",
        program="p",
    )
    assert deployed.name == "4.3.0 spark.tgz c430c430c430"


def test_the_table_of_upgrades_names_the_build_and_not_its_hash_alone(
    store: Store, browser: TestClient
) -> None:
    run = web_nights.record(store)
    said = {"outcome": "same", "red": False, "reason": "as before"}
    row = CompatibilityRow(query="q5", baseline_build=OLD.id, **said)
    store.record_compatibility(run, [row])
    page = shown(browser, at(run)).partition("Do running queries survive?")[2]
    table = page.partition("</table>")[0]
    assert "<td>4.2.9 pypi b429b429b429</td>" in table


def test_a_row_links_the_night_whose_verdicts_it_shows(browser: TestClient, store: Store) -> None:
    """A build that is a baseline in newer nights shows its own last night, and until when."""
    web_nights.record(store, 1, build=OLD, baselines={"q0": NEW.id, "q5": NEW.id})
    newer = web_nights.record(store, 5, {"q0": Value.REGRESSION})
    rows = shown(browser, "/builds").split("<tr")
    (old,) = [row for row in rows if f'value="{OLD.id}"' in row]
    assert newer not in old
    assert "a baseline until 2026-" in old
    days = re.findall(r"2026-[0-9-]+ [0-9:]+", old)
    assert days[0] < days[1]
