"""What the suite of a query says of the evidence, and what is kept of it."""

from __future__ import annotations

import importlib
import os
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from nexmark.expectations import suites
from nexmark.expectations.checks import Evidence
from nexmark.expectations.suites import ValidationOutcome, build_suite, judge, validate
from tests.expectations.evidence_builder import evidence

RIGHT = evidence("q2")
RULES = {
    "schema": "The columns are, in this order: auction BIGINT, price BIGINT.",
    "reference_rows": "The reference has rows, unless the events are too few.",
    "row_count": "There are as many rows as in the reference.",
    "difference": "Every row is as often in the output as in the reference, and no other.",
    "auction_is_selected": "Every auction id is a multiple of 123.",
    "price_was_bid": "The price is one that somebody bid on that auction.",
}
EMPTY = {"compared_rows": 0, "reference_rows": 0}


def found(**findings: str) -> dict[str, str | None]:
    return {**RIGHT.findings, **findings}


def rules_of(query: str) -> dict[str, str]:
    """What each expectation is on, with its text."""
    return {
        x.configuration.kwargs.get("column", "row_count"): x.description
        for x in build_suite(query, may_be_empty=False).expectations
    }


def test_the_rules_are_in_the_words_of_a_person() -> None:
    assert rules_of("q2") == RULES
    assert rules_of("q12")["row_count"] == (
        "There are as many rows, folded by bidder, as in the reference."
    )
    assert build_suite("q2", may_be_empty=False).name == "q2"


def test_an_output_that_meets_every_expectation_is_right() -> None:
    assert judge(RIGHT) == ValidationOutcome(
        query="q2",
        success=True,
        expectations_evaluated=6,
        expectations_failed=0,
        failures=(),
        statistics={
            **{"events": 10, "rows": 4, "reference_rows": 3},
            **{"missing_rows": 0, "unexpected_rows": 0},
        },
        docs=None,
    )


@pytest.mark.parametrize(
    ("change", "failures"),
    [
        ({"compared_rows": 2}, {"row_count": "2, the reference has 3"}),
        (EMPTY, {"reference_rows": "empty over 10 events: verify with more events"}),
        ({**EMPTY, "reference_may_be_empty": True}, {}),
        ({"compared_rows": 1, "reference_rows": 1}, {}),
        (
            {"findings": found(difference="1 row missing", price_was_bid="2 cases")},
            {"difference": "1 row missing", "price_was_bid": "2 cases"},
        ),
        ({"findings": found(schema="order"), "compared_rows": 9}, None),
    ],
)
def test_a_failure_is_what_was_found_and_the_rule(
    change: dict[str, Any], failures: dict[str, str] | None
) -> None:
    failures = (
        {"schema": "order", "row_count": "9, the reference has 3"} if failures is None else failures
    )
    outcome = judge(replace(RIGHT, **change))
    assert outcome.failures == tuple(f"{x}: {why} ({RULES[x]})" for x, why in failures.items())
    assert (outcome.success, outcome.expectations_failed) == (not failures, len(failures))


def test_of_columns_that_cannot_be_compared_nothing_else_is_said() -> None:
    findings = dict.fromkeys(RIGHT.findings, "not checked") | {"schema": "1 columns"}
    nothing = {"comparable": False, "missing_rows": None, "unexpected_rows": None}
    outcome = judge(replace(RIGHT, **nothing, findings=findings, compared_rows=9))
    assert outcome.failures == (f"schema: 1 columns ({RULES['schema']})",)
    assert (outcome.expectations_failed, outcome.statistics["missing_rows"]) == (5, None)


def test_a_query_that_is_judged_again_is_on_its_site_twice(tmp_path: Path) -> None:
    """As by a task that is cleared in Airflow, and by `nexmark validate` on the same site."""
    wrong = replace(RIGHT, findings=found(difference="1 row missing"))
    assert not judge(wrong, tmp_path, "q2_again").success
    outcome = judge(RIGHT, tmp_path, "q2_again")
    assert (outcome.success, outcome.docs) == (True, tmp_path / "index.html")
    pages = [x.read_text() for x in tmp_path.glob("validations/**/output-q2_again.html")]
    assert sorted("1 row missing" in page for page in pages) == [False, True]


def test_only_with_a_site_results_are_kept_by_name_and_the_site_is_brought_up_to_date(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without its pages, which take a while to write."""
    action = suites._great_expectations().checkpoint.UpdateDataDocsAction
    updated: list[bool] = []
    monkeypatch.setattr(action, "run", lambda self, *_, **__: updated.append(True) or {})
    assert judge(RIGHT).docs is None
    assert updated == []
    for name in ("", "q2_boundary"):
        assert judge(RIGHT, tmp_path, name).docs == tmp_path / "index.html"
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

    config = suites._context(tmp_path).config
    assert config.data_docs_sites == {
        "nexmark": {
            "class_name": "SiteBuilder",
            "show_how_to_buttons": False,
            "store_backend": files(tmp_path),
            "site_index_builder": {"class_name": "DefaultSiteIndexBuilder"},
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
        found: dict[str, Any] = {}

        def judged(evidence: Evidence, docs: Path | None, name: str) -> ValidationOutcome:
            found.update(query=evidence.query, events=evidence.events, docs=docs, name=name)
            return ValidationOutcome(evidence.query, True, 6, 0, (), {"rows": evidence.rows}, docs)

        monkeypatch.setattr(suites, "judge", judged)
        return found

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
