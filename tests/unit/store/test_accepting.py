"""Which acceptance counts, and which is refused, of rows alone."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from nexmark.model import CANDIDATE_JOB
from nexmark.store.accepting import (
    check_link,
    check_request,
    check_withdrawal,
    check_words,
    confs_of_candidate,
    parse_expiry,
    states,
    visible,
)
from nexmark.store.store_error import Refused
from nexmark.store.table_rows import AcceptanceRow, NightRow, WithdrawalRow

NOW = datetime(2026, 11, 27, 6, tzinfo=UTC)
DAY = timedelta(days=1)
PLACE = {"engine": "spark", "workload": "smoke", "cluster": "local", "query": "q5"}


def row(number: int, expires: datetime | None = None, **changes: Any) -> AcceptanceRow:
    return AcceptanceRow(**{"id": number, "expires": expires, **PLACE, **changes})


def withdrawn(number: int, when: datetime = NOW) -> AcceptanceRow:
    found = row(number)
    found.withdrawal = WithdrawalRow(who="bob", reason="wrong", withdrawn=when)
    return found


def night(**changes: Any) -> NightRow:
    return NightRow(**{"id": "dag/run", "queries": ["q0", "q5"], **changes})


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        ([], []),
        ([row(1)], ["counts"]),
        ([row(1), row(2)], ["superseded", "counts"]),
        ([row(1), row(2, NOW - DAY)], ["counts", "expired"]),
        ([row(1), row(2, NOW)], ["counts", "expired"]),
        ([row(1), row(2, NOW + DAY)], ["superseded", "counts"]),
        ([row(1), withdrawn(2)], ["counts", "withdrawn"]),
        ([row(1), withdrawn(2, NOW + DAY)], ["superseded", "counts"]),
        ([row(1, NOW - DAY), row(2)], ["expired", "counts"]),
        *(([row(1), row(2, **{name: "other"})], ["counts", "counts"]) for name in PLACE),
    ],
)
def test_the_newest_of_a_place_and_query_that_is_not_over_counts(
    rows: list[AcceptanceRow], expected: list[str]
) -> None:
    found = states(rows, NOW)
    assert [state for _, state in found] == expected
    assert [one.id for one, _ in found] == [one.id for one in rows]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", None),
        ("  ", None),
        ("30d", NOW + 30 * DAY),
        (" 1d ", NOW + DAY),
        ("2027-01-31", datetime(2027, 1, 31, tzinfo=UTC)),
    ],
)
def test_an_end_is_a_day_or_a_number_of_days(text: str, expected: datetime | None) -> None:
    found = parse_expiry(text, NOW)
    assert found == expected
    assert found is None or found.tzinfo is UTC


@pytest.mark.parametrize("text", ["d", "30", "-1d", "123456d", "30days", "31.1.2027", "2027-02-30"])
def test_another_end_is_refused(text: str) -> None:
    with pytest.raises(Refused, match=rf"^expires: '{text}' is neither a day .* without end$"):
        parse_expiry(text, NOW)


def test_an_end_after_the_last_day_is_refused() -> None:
    with pytest.raises(Refused, match="expires: '99999d'"):
        parse_expiry("99999d", datetime(9990, 1, 1, tzinfo=UTC))


@pytest.mark.parametrize(
    ("change", "reason", "expires", "queries"),
    [
        ({}, "wanted", None, []),
        ({}, "wanted", NOW + DAY, ["q5"]),
        ({"candidate_conf": {}}, "wanted", None, ["q0", "q5"]),
        ({}, "wanted", None, ["q7"]),  # measured, though the night has no such query any more
    ],
)
def test_a_night_with_a_reason_can_be_accepted(
    change: dict[str, Any], reason: str, expires: datetime | None, queries: list[str]
) -> None:
    check_request(night(**change), ["q5", "q7"], queries, reason, expires, NOW)


@pytest.mark.parametrize(
    ("change", "reason", "expires", "queries", "said"),
    [
        ({}, " ", None, [], "run dag/run: an acceptance needs a reason; "),
        ({}, "x", NOW, [], "an acceptance until 2026-11-27 06:00 is over already; "),
        ({}, "x", NOW - DAY, [], "an acceptance until 2026-11-26 06:00 is over already; "),
        ({}, "x", None, ["q0", "q55"], "has no query 'q55'; did you mean 'q5'?"),
        ({}, "x", None, ["zz"], "has no query 'zz'; known: q0, q5, q7"),
        (
            {"candidate_conf": {"spark.a": "1"}},
            "x",
            None,
            [],
            "is no baseline: its candidate alone had spark.a=1; put that into",
        ),
    ],
)
def test_what_cannot_be_accepted_is_refused_with_the_remedy(
    change: dict[str, Any], reason: str, expires: datetime | None, queries: list[str], said: str
) -> None:
    with pytest.raises(Refused) as caught:
        check_request(night(**change), ["q5", "q7"], queries, reason, expires, NOW)
    assert said in str(caught.value)


@pytest.mark.parametrize(
    ("conf", "said"),
    [
        (None, ""),
        ({}, ""),
        ({"spark.a": "1"}, "its candidate alone had spark.a=1"),
        (
            {"spark.a": "1", CANDIDATE_JOB: "/changed", f"{CANDIDATE_JOB}.busy": "sql-1"},
            "its candidate alone had spark.a=1 and ran busy of /changed",
        ),
    ],
)
def test_settings_of_the_candidate_are_said(conf: dict[str, str] | None, said: str) -> None:
    assert confs_of_candidate(night(candidate_conf=conf)) == said


def test_an_acceptance_that_counts_can_be_withdrawn_with_a_reason() -> None:
    found = row(7)
    assert check_withdrawal(found, 7, "wrong") is found


@pytest.mark.parametrize(
    ("found", "reason", "said"),
    [
        (None, "x", "there is no acceptance 7; `nexmark acks`"),
        (withdrawn(7), "x", "acceptance 7 was withdrawn on 2026-11-27 by bob already; "),
        (row(7), " ", "acceptance 7: a withdrawal needs a reason; "),
    ],
)
def test_another_withdrawal_is_refused(found: AcceptanceRow | None, reason: str, said: str) -> None:
    with pytest.raises(Refused) as caught:
        check_withdrawal(found, 7, reason)
    assert str(caught.value).startswith(said)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain\nlines", "plain\nlines"),
        ("a\tb", "a<U+0009>b"),
        ("a\u202eb\x9f\u2069", "a<U+202E>b<U+009F><U+2069>"),
        ("é 日本", "é 日本"),
    ],
)
def test_a_character_that_cannot_be_seen_is_written_out(text: str, shown: str) -> None:
    assert visible(text) == shown


def test_a_hidden_character_is_named_with_its_place() -> None:
    with pytest.raises(Refused, match=r"^by: has the character U\+0007 at place 1, "):
        check_words("by", "\x07ada")


@pytest.mark.parametrize(
    ("link", "kept"),
    [
        (None, None),
        ("", None),
        (" HTTPS://Issues.example/7?a=b#c ", "HTTPS://Issues.example/7?a=b#c"),
        ("http://a", "http://a"),
    ],
)
def test_a_link_is_kept_as_it_was_given(link: str | None, kept: str | None) -> None:
    assert check_link(link) == kept


@pytest.mark.parametrize(
    ("link", "said"),
    [
        ("issues.example/7", "link: give an address that begins with https:// or http://"),
        ("https://", "link: give an address"),
        ("https://a/\u202ex", "link: has the character U+202E at place 11, "),
    ],
)
def test_another_link_is_refused(link: str, said: str) -> None:
    with pytest.raises(Refused) as caught:
        check_link(link)
    assert str(caught.value).startswith(said)
