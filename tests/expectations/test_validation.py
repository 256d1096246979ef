"""Great Expectations judges the evidence, keeps Data Docs, and costs nothing until it is used."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from nexmark.cli.app import main
from nexmark.expectations.checks import invariants
from nexmark.expectations.contract import CONTRACTS, ExpectationsError, contract
from nexmark.expectations.suites import build_suite, validate
from nexmark.expectations.tables import Events, open_events
from tests.expectations.checked import DIFFERENCE, failed
from tests.expectations.event_builders import RECORDED, bid, write_events
from tests.expectations.wrong_engines import MUTATIONS, right_sql

ALL = sorted(CONTRACTS)
OTHERS = 6
"""Expectations of every suite beside the invariants: columns, types, row count, the reference is
not empty, missing rows, unexpected rows."""


def write_output(
    events: Events, query: str, directory: Path, change: str = "FROM right_rows"
) -> Path:
    directory.mkdir(parents=True, exist_ok=True)
    sql = f"WITH right_rows AS ({right_sql(query)}) {change}"
    events.connection.execute(f"COPY ({sql}) TO '{directory}/part-0.parquet'")
    return directory


@pytest.mark.parametrize("query", ALL)
def test_the_suite_finds_what_its_checks_find(
    query: str, recorded: Events, edge: Events, tmp_path: Path
) -> None:
    """Of a right output nothing; of a wrong engine's the same as DuckDB alone."""
    output = write_output(recorded, query, tmp_path / "right")
    outcome = validate(query, output, RECORDED)
    assert (outcome.success, outcome.failures) == (True, ())
    assert outcome.expectations_evaluated == OTHERS + len(invariants(query))
    wrong = next(each for each in MUTATIONS if contract(each.query).sql == contract(query).sql)
    events = {"recorded": recorded, "edge": edge}[wrong.data]
    directory = write_output(events, query, tmp_path / "wrong", wrong.sql)
    with open_events(RECORDED) as opened:
        found = failed(opened, query, directory) - {DIFFERENCE}
    outcome = validate(query, directory, RECORDED)
    assert not outcome.success
    assert {line.split(": ")[0] for line in outcome.failures} == found
    assert outcome.expectations_failed == len(found)


def test_right_output_is_right(recorded: Events, tmp_path: Path) -> None:
    outcome = validate("q5", write_output(recorded, "q5", tmp_path), RECORDED)
    assert outcome.success
    assert outcome.failures == ()
    assert (outcome.expectations_evaluated, outcome.expectations_failed) == (11, 0)
    assert outcome.statistics["rows"] == outcome.statistics["reference_rows"] == 54
    assert outcome.docs is None


def test_wrong_output_is_reported_with_example_rows(recorded: Events, tmp_path: Path) -> None:
    output = write_output(
        recorded, "q2", tmp_path, "SELECT auction, price + 1 AS price FROM right_rows"
    )
    outcome = validate("q2", output, RECORDED)
    assert not outcome.success
    assert (outcome.statistics["missing_rows"], outcome.statistics["unexpected_rows"]) == (31, 31)
    missing, unexpected, invented = outcome.failures
    assert missing.startswith("missing: 31 rows, e.g. {auction: 1107, price: ")
    assert unexpected.startswith("unexpected: 31 rows, e.g. {auction: 1107, price: ")
    assert invented.startswith("price_was_bid: 31 cases, e.g. {auction: 1107, price: ")
    assert not any("\n" in failure for failure in outcome.failures)


def test_wrong_columns_are_the_only_failure_told(recorded: Events, tmp_path: Path) -> None:
    outcome = validate("q2", write_output(recorded, "q0", tmp_path), RECORDED)
    (failure,) = outcome.failures
    assert failure.startswith("schema: 5 columns, the contract has 2; found: auction BIGINT, ")
    assert (outcome.expectations_evaluated, outcome.expectations_failed) == (2, 1)
    assert outcome.statistics["missing_rows"] is None
    assert outcome.statistics["reference_rows"] == 31


def test_data_docs_are_one_site_of_all_queries(recorded: Events, tmp_path: Path) -> None:
    docs = tmp_path / "data_docs"
    for query, change in (("q7", "FROM right_rows"), ("q2", "FROM right_rows OFFSET 1")):
        output = write_output(recorded, query, tmp_path / query, change)
        outcome = validate(query, output, RECORDED, data_docs_dir=docs)
        assert outcome.docs == docs / "index.html"
    index = (docs / "index.html").read_text()
    pages = {page.stem: page.read_text() for page in docs.glob("validations/**/*.html")}
    assert set(pages) == {"output-q7", "output-q2"}
    for query in ("q7", "q2"):
        assert f"/output-{query}.html" in index
        assert all(check.rule in pages[f"output-{query}"] for check in invariants(query))
    assert "<td" in pages["output-q2"].partition("Every row of the reference is in")[2]
    assert ">1107</div>" in pages["output-q2"]
    assert ">1107</div>" not in pages["output-q7"]
    stored = [json.loads(path.read_text()) for path in docs.glob("results/**/output-*.json")]
    assert sorted(result["success"] for result in stored) == [False, True]


def test_suites_describe_every_expectation_for_a_person() -> None:
    for query in ALL:
        for expectation in build_suite(contract(query)).expectations:
            assert expectation.description
            assert expectation.description.endswith(".")


def test_unknown_query_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ExpectationsError, match="unknown query 'q99'"):
        validate("q99", tmp_path, RECORDED)


def test_importing_the_package_imports_nothing_heavy() -> None:
    """It is imported when a DAG file is parsed, for every task."""
    program = (
        "import sys, nexmark.expectations, nexmark.expectations.suites; "
        "print(*{'duckdb', 'great_expectations', 'pandas', 'numpy', 'pyspark'} & set(sys.modules))"
    )
    assert _python(program).stdout.strip() == ""


def test_process_without_a_main_file_survives(recorded: Events, tmp_path: Path) -> None:
    """Importing pyspark.sql.connect there ends the process with exit code 0, as if all was well."""
    output = write_output(recorded, "q2", tmp_path)
    program = (
        "import pyspark.sql; from nexmark.expectations.suites import validate; "
        f"print(validate('q2', '{output}', '{RECORDED}')); import pyspark.ml"
    )
    assert _python(program).stdout.startswith("ValidationOutcome(query='q2', success=True")


def _python(program: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", program]
    return subprocess.run(command, capture_output=True, text=True, check=True)


def test_command_prints_the_result_and_exits_by_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    events = write_events(tmp_path / "events", [bid(price=price) for price in range(5)])
    with open_events(events) as opened:
        right = write_output(opened, "q0", tmp_path / "right")
        wrong = write_output(opened, "q0", tmp_path / "wrong", "FROM right_rows WHERE price > 0")
    arguments = ["validate", "--query", "q0", "--events", str(events), "--output"]
    assert main([*arguments, str(right)]) == 0
    assert capsys.readouterr().out.startswith("q0: right: 7 of 7 expectations met; 5 rows, ")
    assert main([*arguments, str(wrong), "--data-docs", str(tmp_path / "docs")]) == 1
    first, *failures, docs = capsys.readouterr().out.splitlines()
    assert first.startswith("q0: WRONG: 4 of 7 expectations met; 4 rows, reference 5, ")
    assert [line.split(":")[0].strip() for line in failures] == [
        "row_count",
        "missing",
        "conserves_bids",
    ]
    assert docs == f"Data Docs: {tmp_path / 'docs' / 'index.html'}"


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        ({"--query": "q6b"}, "error: unknown query 'q6b': use one of q0, q1, "),
        ({"--events": "nowhere"}, "error: no events at nowhere: "),
        ({"--output": "nowhere"}, "error: no output directory nowhere: "),
        (
            {"--sink": "noop"},
            "nexmark validate: Invalid value for '--sink': Value error, 'noop' is",
        ),
    ],
)
def test_command_names_bad_input_in_one_line(
    change: dict[str, str], fault: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    options = {"--query": "q0", "--events": str(RECORDED), "--output": str(tmp_path)} | change
    assert main(["validate", *(part for option in options.items() for part in option)]) == 2
    error = capsys.readouterr().err
    assert error.startswith(fault)
    assert error.count("\n") == 1
