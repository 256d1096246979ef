"""What a person reads of a wrong output: how many rows, which, and what is wrong with them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from nexmark.expectations import checks
from nexmark.expectations.checks import invariants
from nexmark.expectations.contract import EXPERIMENT_CONTRACTS, contract
from nexmark.expectations.suites import ValidationOutcome, judge
from nexmark.expectations.tables import Events, load_output, open_events
from tests.expectations.event_builders import bid, write_events

SELECTED = (123, 246, 369, 492)
"""The auctions that q2 selects of the events here: the place of each is its price."""


@pytest.fixture(scope="module")
def few(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Events]:
    bids = [bid(auction, price=place) for place, auction in enumerate(SELECTED, 1)]
    directory = write_events(tmp_path_factory.mktemp("few"), [*bids, bid(124, price=9)])
    with open_events(directory) as events:
        yield events


def judged(events: Events, query: str, sql: str, directory: Path) -> ValidationOutcome:
    """The outcome for an output with the rows of ``sql``; ``right_rows`` are q2's right ones."""
    right = "SELECT auction, price FROM bid WHERE auction % 123 = 0"
    events.connection.execute(
        f"COPY (WITH right_rows AS ({right}) {sql}) TO '{directory}/part-0.parquet'"
    )
    output = load_output(events.connection, contract(query), directory, "parquet")
    return judge(events, contract(query), output)


def findings(outcome: ValidationOutcome) -> dict[str, str]:
    """What was found, by the name of the expectation, without the rule in brackets."""
    parts = (failure.split(": ", maxsplit=1) for failure in outcome.failures)
    return {name: finding.rpartition(" (")[0] for name, finding in parts}


def rows(*places: int) -> str:
    return ", ".join(f"{{auction: {SELECTED[x - 1]}, price: {x}}}" for x in places)


@pytest.mark.parametrize(
    ("sql", "missing", "unexpected"),
    [
        ("FROM right_rows", (), ()),
        ("FROM right_rows WHERE price > 1", (1,), ()),
        ("FROM right_rows WHERE price > 2", (1, 2), ()),
        ("FROM right_rows LIMIT 0", (1, 2, 3, 4), ()),
        ("FROM right_rows UNION ALL FROM right_rows WHERE price = 3", (), (3,)),
        ("FROM right_rows UNION ALL FROM right_rows", (), (1, 2, 3, 4)),
        (
            "FROM right_rows WHERE price > 1 UNION ALL FROM right_rows WHERE price = 4",
            (1,),
            (4,),
        ),
    ],
)
def test_missing_and_unexpected_rows_are_counted_with_three_examples(
    few: Events, tmp_path: Path, sql: str, missing: tuple[int, ...], unexpected: tuple[int, ...]
) -> None:
    outcome = judged(few, "q2", sql, tmp_path)
    found = findings(outcome)
    for name, places in (("missing", missing), ("unexpected", unexpected)):
        count = f"{len(places)} row" + ("s" if len(places) > 1 else "")
        assert found.get(name) == (f"{count}, e.g. {rows(*places[:3])}" if places else None)
        assert outcome.statistics[f"{name}_rows"] == len(places)
    written = 4 - len(missing) + len(unexpected)
    assert found.get("row_count") == (None if written == 4 else f"{written}, the reference has 4")
    assert found.keys() <= {"missing", "unexpected", "row_count"}
    numbers = [outcome.statistics[name] for name in ("events", "rows", "reference_rows")]
    assert numbers == [5, written, 4]


def test_an_example_is_given_once(few: Events, tmp_path: Path) -> None:
    sql = "FROM right_rows UNION ALL (SELECT r.* FROM right_rows AS r, range(3) WHERE price = 2)"
    assert findings(judged(few, "q2", sql, tmp_path))["unexpected"] == f"3 rows, e.g. {rows(2)}"


@pytest.mark.parametrize(
    ("sql", "finding"),
    [
        ("FROM right_rows", None),
        ("SELECT 124 AS auction, 9 AS price", "1 case, e.g. {auction: 124, price: 9}"),
        (
            "SELECT 124 + range AS auction, 9 AS price FROM range(5)",
            "5 cases, e.g. {auction: 124, price: 9}, {auction: 125, price: 9}, "
            "{auction: 126, price: 9}",
        ),
        ("SELECT CAST(NULL AS BIGINT) AS auction, 9 AS price", "1 case, e.g. {auction: NULL,"),
    ],
)
def test_rows_that_break_a_rule_are_counted_with_three_examples(
    few: Events, tmp_path: Path, sql: str, finding: str | None
) -> None:
    casts = (
        f"SELECT CAST(auction AS BIGINT) AS auction, CAST(price AS BIGINT) AS price FROM ({sql})"
    )
    said = findings(judged(few, "q2", casts, tmp_path)).get("auction_is_selected")
    assert said == finding if finding is None else str(said).startswith(finding)


@pytest.mark.parametrize(
    ("extra", "shown"),
    [
        ("it's", '"it\'s"'),
        (None, "NULL"),
        ("x" * 58, f"'{'x' * 58}'"),
        ("x" * 59, f"'{'x' * 57}.."),
        ("x" * 99, f"'{'x' * 57}.."),
    ],
)
def test_values_of_an_example_are_short(
    tmp_path: Path, few: Events, extra: str | None, shown: str
) -> None:
    value = "NULL" if extra is None else "'" + extra.replace("'", "''") + "'"
    sql = f"SELECT * REPLACE (CAST({value} AS VARCHAR) AS extra) FROM bid WHERE auction = 124"
    columns = "auction, bidder, price, dateTime, extra"
    outcome = judged(few, "q0", f"SELECT {columns} FROM ({sql})", tmp_path)
    time = "2015-07-15 00:00:01"
    wrong = f"auction: 124, bidder: 1001, price: 9, dateTime: {time}, extra: {shown}"
    assert findings(outcome)["unexpected"] == f"1 row, e.g. {{{wrong}}}"


def test_what_was_sent_and_what_was_seen_are_shown_by_name(few: Events, tmp_path: Path) -> None:
    sql = "SELECT auction, bidder, price, dateTime, extra FROM bid WHERE price < 9"
    finding = findings(judged(few, "q0", sql, tmp_path))["conserves_bids"]
    times = ", ".join(f"{name}: 2015-07-15 00:00:01" for name in ("first", "last"))
    seen, sent = f"{{bids: 4, price: 10, {times}}}", f"{{bids: 5, price: 19, {times}}}"
    assert finding == f"1 case, e.g. {{seen: {seen}, sent: {sent}}}"


@pytest.mark.parametrize(
    ("sql", "comparable", "schema"),
    [
        ("FROM right_rows", True, None),
        (
            "SELECT price, auction FROM right_rows",
            True,
            "column 1 is 'price BIGINT', the contract says 'auction BIGINT'; "
            "column 2 is 'auction BIGINT', the contract says 'price BIGINT'",
        ),
        (
            "SELECT auction, CAST(price AS INTEGER) AS price FROM right_rows",
            True,
            "column 2 is 'price INTEGER', the contract says 'price BIGINT'",
        ),
        (
            "SELECT auction FROM right_rows",
            False,
            "1 columns, the contract has 2; found: auction BIGINT",
        ),
        (
            "SELECT *, now() AS t FROM right_rows",
            False,
            "3 columns, the contract has 2; found: auction BIGINT, price BIGINT, t TIMESTAMP",
        ),
    ],
)
def test_columns_that_differ_are_named_and_then_nothing_is_compared(
    few: Events, tmp_path: Path, sql: str, comparable: bool, schema: str | None
) -> None:
    outcome = judged(few, "q2", sql, tmp_path)
    assert findings(outcome) == ({} if schema is None else {"schema": schema})
    numbers = outcome.statistics
    assert (numbers["missing_rows"] is None) is (numbers["unexpected_rows"] is None)
    assert (numbers["missing_rows"] is None) is not comparable
    assert numbers["rows"] == 4
    assert outcome.expectations_evaluated == (8 if comparable else 2)


def test_without_event_numbers_a_query_without_ties_is_compared_by_all_its_columns(
    tmp_path: Path,
) -> None:
    bids = [bid(auction, price=place) for place, auction in enumerate(SELECTED, 1)]
    directory = write_events(tmp_path / "events", bids, numbered=False)
    with open_events(directory) as events:
        outcome = judged(events, "q2", "SELECT auction, price + 1 AS price FROM bid", tmp_path)
    assert (outcome.statistics["missing_rows"], outcome.statistics["unexpected_rows"]) == (4, 4)


@pytest.mark.parametrize(
    ("query", "names"),
    [
        ("q2", ["auction_is_selected", "price_was_bid"]),
        ("q10", ["row_is_in_its_partition", "partition_is_committed", "conserves_bids"]),
        *((query, []) for query in EXPERIMENT_CONTRACTS),
    ],
)
def test_rules_come_in_the_order_of_their_file(query: str, names: list[str]) -> None:
    assert [check.name for check in invariants(query)] == names


def test_a_rule_is_what_its_comment_says_over_more_lines_than_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    text = (
        "-- check a: One\n-- two.\nSELECT 1\n-- not a rule\nWHERE false;\n-- check b: B.\nFROM x;\n"
    )
    monkeypatch.setattr(checks, "_sql", lambda folder, query: text)
    first, second = invariants("q2")
    assert (first.name, first.rule) == ("a", "One two.")
    assert first.sql == "SELECT 1\n-- not a rule\nWHERE false"
    assert (second.name, second.rule, second.sql) == ("b", "B.", "FROM x")


def test_a_rule_without_a_name_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checks, "_sql", lambda folder, query: "-- a comment\nSELECT 1")
    with pytest.raises(ValueError, match="an invariant begins with '-- check NAME: RULE'"):
        invariants("q2")
