"""The rows of a job of a person's own: right by a reference, else the same in all runs."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pytest

from nexmark.config import Job
from nexmark.config.expectation_files import AddedExpectation
from nexmark.config.job_tables import CHECK_TABLES
from nexmark.expectations.checks import prepare
from nexmark.expectations.contract import Column, Contract, ExpectationsError
from nexmark.expectations.own_results import reference_problem, validate_own
from nexmark.expectations.suites import ValidationOutcome
from nexmark.expectations.tables import ENTITIES, load_output, open_events
from tests.expectations.event_builders import bid, write_events

COUNT = "SELECT auction, sum(price) AS total FROM bid GROUP BY auction"


@pytest.fixture(scope="module")
def events(tmp_path_factory: pytest.TempPathFactory) -> Path:
    prices = ((7, 100), (7, 200), (8, 300))
    return write_events(
        tmp_path_factory.mktemp("events"), [bid(auction=a, price=p) for a, p in prices]
    )


def output(directory: Path, *rows: tuple[int, int]) -> Path:
    """Write an output with the columns auction and total."""
    directory.mkdir()
    values = ", ".join(f"({auction}::BIGINT, {total}::BIGINT)" for auction, total in rows)
    table = f"(VALUES {values}) AS made(auction, total)"
    duckdb.execute(f"COPY (FROM {table}) TO '{directory}/part-0.parquet' (FORMAT parquet)")
    return directory


def job(reference: str = "", key: tuple[str, ...] = ("auction",), **more: object) -> Job:
    file = {"reference": "mine.duckdb.sql", "reference_text": reference} if reference else {}
    made: dict[str, object] = {"name": "mine", "tables": "nexmark", "sql": "m.sql", "key": key}
    return Job.model_validate({**made, **file, **more})


def check(
    of: Job, events: Path, at: Path, baseline: Path | None = None, again: Path | None = None
) -> ValidationOutcome:
    return validate_own(of, at, events, baseline_dir=baseline, again_dir=again)


RIGHT = ((7, 300), (8, 300))


def test_rows_of_the_reference_are_right(events: Path, tmp_path: Path) -> None:
    made = check(job(COUNT), events, output(tmp_path / "a", *RIGHT))
    assert made.success, made.failures
    assert made.statistics["proven"] == 1
    assert made.statistics["reference_rows"] == 2


def test_a_reference_that_is_no_statement_is_found_without_any_rows() -> None:
    problem = reference_problem(job("SELECT count(*) FROM bid GROUP BY (auction"))
    assert problem.startswith("mine.duckdb.sql: Parser Error: syntax error at ")
    assert problem.endswith("; correct it")
    assert reference_problem(job(COUNT)) == reference_problem(job()) == ""


def test_a_reference_is_one_select() -> None:
    problem = reference_problem(job(f"CREATE VIEW v AS {COUNT}; FROM v"))
    assert problem == "mine.duckdb.sql: it has 2 statements; write one SELECT"
    problem = reference_problem(job("CREATE TABLE a AS FROM bid"))
    assert problem == "mine.duckdb.sql: its statement is no SELECT; write one"
    assert reference_problem(job("-- none")).startswith("mine.duckdb.sql: it has 0 statements; ")


@pytest.mark.parametrize(
    "end", ["", ";", "; -- the end", " -- \u20ac\n;\n/* the end; */\n;", " -- the end;"]
)
def test_a_reference_may_end_with_a_semicolon_and_comments(
    events: Path, tmp_path: Path, end: str
) -> None:
    assert reference_problem(job(COUNT + end)) == ""
    made = check(job(COUNT + end), events, output(tmp_path / "a", *RIGHT))
    assert made.success, made.failures


def test_other_rows_are_wrong(events: Path, tmp_path: Path) -> None:
    made = check(job(COUNT), events, output(tmp_path / "a", (7, 300), (8, 301)))
    assert not made.success
    assert any("total: 301" in failure for failure in made.failures)


def test_builds_that_agree_are_not_proven(events: Path, tmp_path: Path) -> None:
    one, other = output(tmp_path / "a", *RIGHT), output(tmp_path / "b", *reversed(RIGHT))
    made = check(job(), events, one, other, output(tmp_path / "c", *RIGHT))
    assert made.success, made.failures
    assert (made.statistics["proven"], made.statistics["arms"]) == (0, 2)


def test_builds_that_differ_show_both_rows_of_a_key(events: Path, tmp_path: Path) -> None:
    baseline = output(tmp_path / "b", *RIGHT)
    made = check(job(), events, output(tmp_path / "a", (7, 300), (8, 301)), baseline)
    assert made.failures == (
        "the builds differ: rows that only one has: 1 of the baseline, 1 of the candidate, "
        "e.g. {auction: 8}: the baseline {total: 300}, the candidate {total: 301}",
    )


def test_a_row_that_only_one_build_has_is_named(events: Path, tmp_path: Path) -> None:
    baseline = output(tmp_path / "b", *RIGHT)
    (line,) = check(job(), events, output(tmp_path / "a", (7, 300)), baseline).failures
    assert line.endswith("{auction: 8}: the baseline {total: 300}, the candidate no row")
    (line,) = check(job(key=()), events, tmp_path / "a", baseline).failures
    assert line.endswith("e.g. the baseline {auction: 8, total: 300}")


def test_runs_that_differ_are_no_change_of_the_build(events: Path, tmp_path: Path) -> None:
    """The candidate differs, too; but so does the baseline from itself."""
    names = ("a", "b", "c")
    one, other, again = (output(tmp_path / n, (7, 300), (8, i)) for i, n in enumerate(names))
    (line,) = check(job(), events, one, other, again).failures
    assert line.startswith("not deterministic over the same input: rows that only one has: 1 of")
    assert "{auction: 8}: one run {total: 1}, another {total: 2}; look for now(), rand()" in line


def test_expectations_of_the_job_are_checked(events: Path, tmp_path: Path) -> None:
    kwargs = {"column": "total", "max_value": 200}
    added = AddedExpectation(type="expect_column_values_to_be_between", kwargs=kwargs, where="x:1")
    made = check(job(added=(added,)), events, output(tmp_path / "a", *RIGHT))
    assert not made.success
    assert "between of total: 2 values, e.g. 300" in made.failures[0]


@pytest.mark.parametrize(
    ("of", "said"),
    [
        (job("SELECT auctoin FROM bid"), r"mine.duckdb.sql: Binder Error: .*; correct it"),
        (job("SELECT auction FROM bid"), r"has the columns auction, .* auction, total; name them"),
        (
            job("SELECT auction, url::INTEGER AS total FROM bid"),
            r"mine.duckdb.sql: Conversion Error: Could not convert string .*; correct it",
        ),
        (
            job("SELECT auction, channel AS total FROM bid"),  # the job has a number
            r"mine.duckdb.sql: Conversion Error: Could not convert string .*; correct it",
        ),
        (job(f"SET TimeZone = 'UTC'; {COUNT}"), r"mine.duckdb.sql: it has 2 statements; write one"),
        (job(key=("bidder",)), r"key: bidder is no column of the result; use auction, total"),
    ],
)
def test_a_mistake_of_the_person_is_one_line(
    events: Path, tmp_path: Path, of: Job, said: str
) -> None:
    with pytest.raises(ExpectationsError, match=said) as error:
        check(of, events, output(tmp_path / "a", *RIGHT))
    assert "\n" not in str(error.value)


def test_a_column_may_be_called_like_a_word_of_sql(events: Path, tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    sql = 'SELECT 7::BIGINT AS "group", 1.5::DOUBLE AS "order"'
    duckdb.execute(f"COPY ({sql}) TO '{tmp_path}/a/part-0.parquet' (FORMAT parquet)")
    made = check(job(sql, key=("group",)), events, tmp_path / "a")
    assert made.success, made.failures


def output_of(directory: Path, *selects: str) -> Path:
    """Write an output, a row for each SELECT."""
    directory.mkdir()
    rows = " UNION ALL ".join(f"SELECT {each}" for each in selects)
    duckdb.execute(f"SET TimeZone = 'UTC'; COPY ({rows}) TO '{directory}/part-0.parquet'")
    return directory


MAPS = (
    "MAP {{{}, {}}}",
    "{{'in': MAP {{{}, {}}}}}",
    "[MAP {{{}, {}}}, NULL]",
    "MAP {{'outer': {{'at': TIMESTAMPTZ '2026-01-01 00:00:00+00', 'in': MAP {{{}, {}}}}}}}",
)


@pytest.mark.parametrize("value", MAPS)
def test_equal_maps_are_equal_whatever_the_order_of_their_entries(
    events: Path, tmp_path: Path, value: str
) -> None:
    one, other, wrong = (
        value.format(first, second)
        for first, second in (("'a': 1", "'b': 2"), ("'b': 2", "'a': 1"), ("'a': 1", "'b': 3"))
    )
    written = [
        output_of(tmp_path / str(place), f"1 AS n, {each} AS value", "2, NULL")
        for place, each in enumerate((one, other, wrong))
    ]
    reference = f"SELECT 1 AS n, {other} AS value UNION ALL SELECT 2, NULL"
    assert check(job(reference, key=("n",)), events, *written[:2]).failures == ()
    assert len(check(job(key=("n",)), events, written[2], written[0]).failures) == 1
    assert check(job(reference, key=("n",)), events, written[2]).failures


def test_times_in_lists_and_structs_are_compared(events: Path, tmp_path: Path) -> None:
    """Spark writes them with a zone; the reference has them without one, in UTC."""
    at = "TIMESTAMPTZ '2026-01-01 00:00:00+00'"
    sql = f"SELECT [{at}] AS times, {{'at': {at}, 'TIMESTAMP': 1}} AS made"
    written = output_of(tmp_path / "a", sql.removeprefix("SELECT "))
    made = check(job(sql.replace(at, "TIMESTAMP '2026-01-01'"), key=()), events, written)
    assert made.failures == ()
    made = check(job(sql.replace(at, "TIMESTAMP '2026-01-02'"), key=()), events, written)
    assert made.failures


def test_no_table_of_a_job_has_the_name_of_one_of_the_checks(events: Path, tmp_path: Path) -> None:
    """One would take the place of the other, so the loader of jobs refuses these names."""
    columns = (Column("auction", "BIGINT"), Column("total", "BIGINT"))
    entry = Contract("mine", "", columns, reference=COUNT.replace("sum(price)", "1"), compared=True)
    with open_events(events) as opened:
        loaded = load_output(opened.connection, entry, output(tmp_path / "a", *RIGHT), "parquet")
        prepare(opened, entry, loaded)
        rows = opened.connection.execute("SELECT table_name FROM information_schema.tables")
        assert {row[0] for row in rows.fetchall()} - {*ENTITIES} == CHECK_TABLES
