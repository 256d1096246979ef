"""What the suite of a query says of the evidence, and what is kept of it."""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import jinja2
import pytest

from nexmark.expectations import suites
from nexmark.expectations.checks import Check
from nexmark.expectations.contract import CONTRACTS, Contract, contract
from nexmark.expectations.suites import ValidationOutcome, build_suite, judge, validate
from nexmark.expectations.tables import Events, Output, load_output, open_events
from tests.expectations.event_builders import bid, write_events

LISTED = "auction BIGINT, price BIGINT"
RULES = {
    "columns": f"The columns are, in this order: {LISTED}.",
    "types": f"The types are: {LISTED}.",
    "row_count": "There are as many rows as in the reference.",
    "reference_rows": "The reference has rows, unless the events are too few.",
    "missing": "Every row of the reference is in the output, as often.",
    "unexpected": "Every row of the output is in the reference, as often.",
    "auction_is_selected": "Every auction id is a multiple of 123.",
    "price_was_bid": "The price is one that somebody bid on that auction.",
}
RIGHT = "SELECT auction, price FROM bid WHERE auction % 123 = 0"


@pytest.fixture(scope="module")
def few(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Events]:
    """Three bids, two of them on an auction that q2 selects."""
    bids = [bid(123, price=1), bid(246, price=2), bid(124, price=3)]
    with open_events(write_events(tmp_path_factory.mktemp("few"), bids)) as events:
        yield events


def judged(
    events: Events,
    at: Path,
    sql: str = RIGHT,
    docs: Path | None = None,
    name: str = "",
    entry: Contract = CONTRACTS["q2"],
) -> ValidationOutcome:
    at.mkdir(exist_ok=True)
    events.connection.execute(f"COPY ({sql}) TO '{at}/part-0.parquet'")
    output = load_output(events.connection, entry, at, "parquet")
    return judge(events, entry, output, docs, name)


def rules_of(query: str) -> dict[str, str]:
    """What each expectation is on, with its text."""
    return {x.meta["name"]: x.description for x in build_suite(contract(query)).expectations}


def test_the_rules_are_in_the_words_of_a_person() -> None:
    assert rules_of("q2") == RULES
    assert rules_of("q12")["row_count"] == (
        "There are as many rows, folded by bidder, as in the reference."
    )
    assert build_suite(contract("q2")).name == "q2"
    schema = build_suite(contract("q2"), readable=False).expectations
    assert [x.meta["name"] for x in schema] == ["columns", "types"]


def test_an_output_that_meets_every_expectation_is_right(few: Events, tmp_path: Path) -> None:
    assert judged(few, tmp_path) == ValidationOutcome(
        query="q2",
        success=True,
        expectations_evaluated=8,
        expectations_failed=0,
        failures=(),
        statistics={
            **{"events": 3, "rows": 2, "reference_rows": 2},
            **{"missing_rows": 0, "unexpected_rows": 0},
        },
        docs=None,
    )


def test_a_failure_is_what_was_found_and_the_rule(few: Events, tmp_path: Path) -> None:
    row = "{auction: 246, price: 2}"
    outcome = judged(few, tmp_path, f"{RIGHT} AND price = 1")
    assert outcome.failures == (
        f"row_count: 1, the reference has 2 ({RULES['row_count']})",
        f"missing: 1 row, e.g. {row} ({RULES['missing']})",
    )
    assert (outcome.success, outcome.expectations_failed) == (False, 2)


def test_an_empty_reference_is_a_failure_where_rows_are_due(few: Events, tmp_path: Path) -> None:
    """A comparison of nothing with nothing proves nothing."""
    nobody = replace(CONTRACTS["q3"], may_be_empty="SELECT false")
    empty = "SELECT 'a' AS name, 'a' AS city, 'a' AS state, 1::BIGINT AS id LIMIT 0"
    assert judged(few, tmp_path, empty, entry=CONTRACTS["q3"]).success
    assert judged(few, tmp_path, empty, entry=nobody).failures == (
        f"reference_rows: empty over 3 events: verify with more events ({RULES['reference_rows']})",
    )


def test_folded_rows_are_counted_after_the_fold(few: Events, tmp_path: Path) -> None:
    window = "'2020-01-01'::TIMESTAMP + to_seconds(10 * price) AS starttime"
    window += ", starttime + INTERVAL 10 SECOND AS endtime"
    rows = f"SELECT bidder, 1::BIGINT AS bid_count, {window} FROM bid"
    assert judged(few, tmp_path, rows, entry=CONTRACTS["q12"]).success
    rows += f" UNION ALL SELECT 7::BIGINT, 0::BIGINT, {window} FROM (SELECT 9 AS price)"
    row_count = judged(few, tmp_path, rows, entry=CONTRACTS["q12"]).failures[0]
    assert row_count.startswith("row_count: 2, the reference has 1 (")


def test_braces_of_sql_are_no_placeholders(
    few: Events, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    braces = Check("braces", "None.", "SELECT {'a': 1} AS x")
    monkeypatch.setattr(suites, "content_checks", lambda entry: (braces,))
    assert judged(few, tmp_path).failures == ("braces: 1 case, e.g. {x: {a: 1}} (None.)",)


def test_templates_are_compiled_once_for_all_pages(
    few: Events, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Compiling is half the cost of a page, and a night has ninety-six."""
    judged(few, tmp_path / "out", RIGHT, tmp_path / "docs")
    compiled: list[str | None] = []
    compile = jinja2.Environment.compile

    def counted(self: jinja2.Environment, source: Any, name: str | None = None, *more: Any) -> Any:
        compiled.append(name)
        return compile(self, source, name, *more)

    monkeypatch.setattr(jinja2.Environment, "compile", counted)
    judged(few, tmp_path / "out", RIGHT, tmp_path / "docs", "q2_boundary")
    assert compiled == []


def test_a_query_that_is_judged_again_is_on_its_site_twice(few: Events, tmp_path: Path) -> None:
    """As by a task that is cleared in Airflow, and by `nexmark validate` on the same site."""
    docs = tmp_path / "docs"
    wrong = f"{RIGHT} AND price = 1"
    assert not judged(few, tmp_path / "out", wrong, docs, "q2_again").success
    outcome = judged(few, tmp_path / "out", RIGHT, docs, "q2_again")
    assert (outcome.success, outcome.docs) == (True, docs / "index.html")
    pages = [x.read_text() for x in docs.glob("validations/**/output-q2_again.html")]
    assert sorted(">246</div>" in page for page in pages) == [False, True]


def test_only_with_a_site_results_are_kept_by_name_and_the_site_is_brought_up_to_date(
    few: Events, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without its pages, which take a while to write."""
    action = suites._great_expectations().checkpoint.UpdateDataDocsAction
    updated: list[bool] = []
    monkeypatch.setattr(action, "run", lambda self, *_, **__: updated.append(True) or {})
    assert judged(few, tmp_path / "out").docs is None
    assert updated == []
    for name in ("", "q2_boundary"):
        outcome = judged(few, tmp_path / "out", RIGHT, tmp_path, name)
        assert outcome.docs == tmp_path / "index.html"
    assert updated == [True, True]
    results = tmp_path / "results" / "validation_results_store"
    kept = [x.relative_to(results).parts for x in results.glob("**/*.json")]
    assert sorted((suite, run, file) for suite, run, _, file in kept) == [
        ("q2", "q2", "output-q2.json"),
        ("q2_boundary", "q2_boundary", "output-q2_boundary.json"),
    ]
    suite_files = (tmp_path / "results" / "expectations_store").glob("*.json")
    assert sorted(x.name for x in suite_files) == ["q2.json", "q2_boundary.json"]


def test_the_site_and_its_results_are_files_below_its_directory(tmp_path: Path) -> None:
    def files(at: Path) -> dict[str, str]:
        return {"class_name": "TupleFilesystemStoreBackend", "base_directory": str(at)}

    def view(name: str) -> dict[str, str]:
        return {"module_name": "nexmark.expectations.data_docs", "class_name": name}

    config = suites._context(tmp_path).config
    assert config.data_docs_sites == {
        "nexmark": {
            "class_name": "SiteBuilder",
            "show_how_to_buttons": False,
            "store_backend": files(tmp_path),
            "site_index_builder": {
                "class_name": "DefaultSiteIndexBuilder",
                "view": view("IndexPageView"),
            },
            "site_section_builders": {
                section: {"view": view("PageView")}
                for section in ("expectations", "validations", "profiling")
            },
        }
    }
    results = tmp_path / "results"
    for name, kind in (
        ("expectations_store", "ExpectationsStore"),
        ("validation_results_store", "ValidationResultsStore"),
    ):
        assert config.stores[name] == {"class_name": kind, "store_backend": files(results / name)}


@pytest.mark.parametrize("site", [True, False])
def test_great_expectations_reports_nothing_and_draws_no_bars(
    site: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("GX_ANALYTICS_ENABLED", raising=False)
    context = suites._context(tmp_path if site else None)
    assert os.environ["GX_ANALYTICS_ENABLED"] == "false"
    assert context.config.analytics_enabled is False
    assert context.variables.progress_bars.globally is False
    assert bool(context.config.data_docs_sites) is site


@pytest.mark.parametrize("imported", [None, "pyspark", "pyspark.ml"])
def test_great_expectations_finds_no_pyspark_that_is_not_imported_already(
    imported: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A stand-in tries what the real one tries; afterwards all is as before."""
    parts = ("pyspark", "pyspark.ml", "pyspark.sql.connect")
    (tmp_path / "pyspark" / "sql").mkdir(parents=True)
    for name in ("__init__", "ml", "sql/__init__", "sql/connect"):
        (tmp_path / "pyspark" / f"{name}.py").touch()
    package = tmp_path / "great_expectations"
    package.mkdir()
    (package / "__init__.py").write_text(
        "import importlib\nfound = []\n"
        f"for name in {parts}:\n"
        "    try:\n        found.append(importlib.import_module(name).__name__)\n"
        "    except ImportError:\n        pass\n"
    )
    for name in ("checkpoint", "expectations"):
        (package / f"{name}.py").touch()
    ours = ("great_expectations", "pyspark")
    for name in [x for x in sys.modules if x.partition(".")[0] in ours]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.syspath_prepend(str(tmp_path))
    if imported:
        importlib.import_module(imported)
    known = {name: module for name, module in sys.modules.items() if name in parts}
    try:
        assert suites._great_expectations().found == [x for x in parts if x in known]
        assert {name: x for name, x in sys.modules.items() if name in parts} == known
    finally:
        for name in [x for x in sys.modules if x.partition(".")[0] in ours]:
            del sys.modules[name]


class TestWays:
    """What `validate` and `validate_boundary` hand on, without a query's rows."""

    @pytest.fixture
    def handed(self, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
        handed: dict[str, Any] = {}

        def judged(
            events: Events, entry: Contract, output: Output, docs: Path | None, name: str
        ) -> ValidationOutcome:
            handed.update(query=entry.query, events=events.count, docs=docs, name=name)
            return ValidationOutcome(entry.query, True, 6, 0, (), {"rows": output.rows}, docs)

        monkeypatch.setattr(suites, "judge", judged)
        return handed

    @pytest.fixture
    def output(self, tmp_path: Path) -> Path:
        import duckdb

        directory = tmp_path / "output"
        directory.mkdir()
        columns = "CAST(123 AS BIGINT) AS auction, CAST(7 AS BIGINT) AS price"
        duckdb.execute(f"COPY (SELECT {columns}) TO '{directory}/part-0.parquet'")
        return directory

    @pytest.mark.parametrize("docs", [None, "site"])
    def test_the_boundary_events_are_written_and_judged_under_a_name_of_their_own(
        self,
        handed: dict[str, Any],
        output: Path,
        tmp_path: Path,
        docs: str | None,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        site, written = None if docs is None else tmp_path / docs, []
        write = suites.boundary.write
        monkeypatch.setattr(suites.boundary, "write", lambda at: write(written.append(at) or at))
        outcome = suites.validate_boundary("q2", output, site)
        assert (handed["query"], handed["name"], handed["docs"]) == ("q2", "q2_boundary", site)
        assert handed["events"] > 100
        assert outcome.statistics["rows"] == 1
        assert written[0].name.startswith("nexmark-boundary-")
        assert not written[0].exists()

    def test_seconds_are_those_of_the_whole_validation(
        self, handed: dict[str, Any], output: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        times = iter((1000.0, 1002.3456))
        monkeypatch.setattr(suites.time, "monotonic", lambda: next(times))
        events = output.parent / "events"
        events.mkdir()
        suites.boundary.write(events)
        outcome = validate("q2", str(output), str(events))
        assert outcome.statistics == {"rows": 1, "seconds": 2.346}
        assert (handed["name"], handed["docs"]) == ("", None)

    def test_a_sink_that_the_query_has_not_is_refused(self, output: Path) -> None:
        with pytest.raises(ValueError, match="q2 has no filesystem sink"):
            suites.validate_boundary("q2", output, sink="filesystem")
