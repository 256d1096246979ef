"""A person adds expectations to the suite of a query, in the format of Great Expectations."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from nexmark.cli.app import main
from nexmark.config import load, paths
from nexmark.config.expectation_files import check_files, load_added
from nexmark.errors import ConfigError
from nexmark.expectations.suites import ValidationOutcome, validate
from nexmark.expectations.tables import open_events
from tests.expectations.event_builders import bid, write_events

TOO_DEAR = {
    "type": "unexpected_rows_expectation",
    "kwargs": {"unexpected_rows_query": "SELECT * FROM {batch} WHERE price > 200"},
    "description": "No bid is above 200.",
    "meta": {"name": "no_dear_bid"},
}
PRICES = {
    "type": "expect_column_values_to_be_between",
    "kwargs": {"column": "price", "min_value": 1, "max_value": 200},
}


@pytest.fixture(autouse=True)
def conf(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("NEXMARK_CONF", str(tmp_path / "conf"))
    (tmp_path / "conf" / "expectations").mkdir(parents=True)
    return tmp_path / "conf"


@pytest.fixture(scope="module")
def events(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_events(tmp_path_factory.mktemp("events"), [bid(price=p) for p in (100, 200, 300)])


@pytest.fixture(scope="module")
def output(events: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A right output of q0."""
    at = tmp_path_factory.mktemp("output")
    columns = "auction, bidder, price, dateTime, extra"
    with open_events(events) as opened:
        opened.connection.execute(f"COPY (SELECT {columns} FROM bid) TO '{at}/part-0.parquet'")
    return at


def add(conf: Path, *expectations: dict[str, Any]) -> None:
    text = json.dumps({"expectations": expectations}, indent=1)
    (conf / "expectations" / "q0.json").write_text(text)


def outcome(events: Path, output: Path, docs: Path | None = None) -> ValidationOutcome:
    return validate("q0", output, events, docs)


def test_an_added_expectation_makes_a_result_wrong_and_says_why(
    conf: Path, events: Path, output: Path, tmp_path: Path
) -> None:
    before = outcome(events, output)
    add(conf, TOO_DEAR, PRICES)
    after = outcome(events, output, tmp_path / "docs")
    assert (before.success, after.success) == (True, False)
    assert after.expectations_evaluated == before.expectations_evaluated + 2
    own, column = after.failures
    assert own.startswith("no_dear_bid: 1 case, e.g. {auction: 1000, bidder: 1001, price: 300, ")
    assert own.endswith(" (No bid is above 200.)")
    assert column == "expect_column_values_to_be_between of price: 1 value, e.g. 300"
    (page,) = (tmp_path / "docs").glob("validations/**/*.html")
    assert ">300</div>" in page.read_text()


def test_an_added_expectation_that_holds_changes_nothing_else(
    conf: Path, events: Path, output: Path
) -> None:
    add(conf, {**PRICES, "kwargs": {"column": "price", "min_value": 1}})
    assert outcome(events, output).failures == ()


def test_one_of_two_with_the_same_name_is_enough_to_fail(
    conf: Path, events: Path, output: Path
) -> None:
    before = outcome(events, output)
    add(conf, PRICES, {**PRICES, "kwargs": {"column": "price", "min_value": 1}})
    after = outcome(events, output)
    assert after.failures == ("expect_column_values_to_be_between of price: 1 value, e.g. 300",)
    assert after.expectations_evaluated == before.expectations_evaluated + 2
    assert (after.success, after.expectations_failed) == (False, 1)


def test_lists_of_arguments_are_lists(conf: Path, events: Path, output: Path) -> None:
    values = {"column": "price", "value_set": [100, 200, 300]}
    columns = {"column_set": ["auction", "bidder", "price", "dateTime", "extra"]}
    add(
        conf,
        {"type": "expect_column_values_to_be_in_set", "kwargs": values},
        {"type": "expect_table_columns_to_match_set", "kwargs": columns},
    )
    assert outcome(events, output).failures == ()
    assert load_added("q0")[0].kwargs == values


def test_loading_the_configuration_checks_the_files(conf: Path) -> None:
    shutil.copytree(paths.repository() / "include" / "conf", conf, dirs_exist_ok=True)
    load(conf)
    (conf / "expectations" / "q0.json").write_text("{}")
    with pytest.raises(ConfigError, match=r"q0\.json:1: expectations: expected a list"):
        load(conf)


def test_added_sql_sees_the_reference_and_the_events(
    conf: Path, events: Path, output: Path
) -> None:
    sql = "SELECT count(*) AS n FROM {batch}, reference, bid, output HAVING n <> 81"
    add(conf, {**TOO_DEAR, "kwargs": {"unexpected_rows_query": sql}})
    assert outcome(events, output).success


def test_sql_that_cannot_run_is_a_failure_in_one_line(
    conf: Path, events: Path, output: Path
) -> None:
    sql = "SELECT * FROM {batch} WHERE prize > 200"
    add(conf, {**TOO_DEAR, "kwargs": {"unexpected_rows_query": sql}})
    (failure,) = outcome(events, output).failures
    assert failure.startswith("no_dear_bid: it could not be evaluated: ")
    assert "prize" in failure
    assert "\n" not in failure


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ('{"expectations": [\n{"type": 3}]}', "q0.json:2: expectations.0.type: expected text"),
        ('{"expectations": [\n{"kwargs": {}}]}', "q0.json:2: expectations.0.type: the key is miss"),
        ('{"expectation": []}', "q0.json:1: expectation: unknown key 'expectation'; did you mean"),
        ('{"expectations": {}}', "q0.json:1: expectations: expected a list of expectations; write"),
        ('{"expectations": [1]}', "q0.json:1: expectations.0: expected keys and values, got 1; wr"),
        (
            '{"expectations": [\n\n{"type": "a", "kwarg": {}}]}',
            "q0.json:3: expectations.0.kwarg: un",
        ),
        (
            '{"expectations": [{"type": "a", "where": ""}]}',
            "q0.json:1: expectations.0.where: unknown",
        ),
        ('{"expectations": [\n', "q0.json:"),
    ],
)
def test_a_mistake_in_a_file_is_one_line_with_its_place(conf: Path, text: str, error: str) -> None:
    (conf / "expectations" / "q0.json").write_text(text)
    with pytest.raises(ConfigError) as raised:
        check_files(conf)
    assert error in str(raised.value)
    assert "; " in str(raised.value)


def test_a_file_of_no_query_is_refused(conf: Path) -> None:
    (conf / "expectations" / "q55.json").write_text('{"expectations": []}')
    with pytest.raises(
        ConfigError, match=r"q55\.json:1: the file's name is no query; did you mean"
    ):
        check_files(conf)


@pytest.mark.parametrize(
    ("wrong", "error"),
    [
        (
            {"type": "expect_colum_values_to_be_between"},
            "q0.json:3: expectations.0: unknown expectation 'expect_colum_values_to_be_between'; "
            "did you mean 'expect_column_values_to_be_between'?",
        ),
        ({"type": PRICES["type"], "kwargs": {}}, "correct its kwargs"),
        ({**PRICES, "kwargs": {"column": "price", "minimum": 1}}, "correct its kwargs"),
    ],
)
def test_what_great_expectations_does_not_know_is_one_line(
    conf: Path,
    events: Path,
    output: Path,
    wrong: dict[str, Any],
    error: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    add(conf, wrong)
    command = ["validate", "--query", "q0", "--events", str(events), "--output", str(output)]
    assert main(command) == 2
    line = capsys.readouterr().err
    assert error in line
    assert "q0.json:" in line
    assert line.count("\n") == 1
