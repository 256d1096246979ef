"""The self-test of the gate has one rate, wherever it is shown."""

from __future__ import annotations

from dataclasses import asdict

import pytest

from nexmark.evidence.gate_health import gate_health, self_tests_of
from nexmark.evidence.night_rows import night_rows
from nexmark.evidence.summary import health
from nexmark.model import Value
from nexmark.store import Store
from nexmark.store.table_rows import SelfTestRow
from nexmark.verdict.rates import alarmed
from nexmark.verdict.verdict import Verdict
from tests.unit.report.rendered import collect
from tests.unit.store.night_builder import paired
from tests.unit.store.store_builder import DAG


def self_tested(store: Store, number: int, version: int, aa: str, slowdown: str) -> str:
    """A judged night with both self-tests."""
    made = paired(number, queries=["q5"], baselines={"q5": "sha-430"})
    store.record_night(made)
    verdict = Verdict(made.run, "q5", "cpu_s_per_mevent", Value.OK, "same", "paired", version)
    store.record_verdicts(made.run, [verdict])
    for kind, size, value in (("aa", 1.0, aa), ("slowdown", 1.2, slowdown)):
        known = {"kind": kind, "query": "q5", "size": size, "gate_version": version}
        store.record_self_test(made.run, SelfTestRow(**known, value=value))
    return made.run


def trust(store: Store, run: str) -> str:
    """What the report says last on how far to trust a night."""
    night = store.night(run)
    return health(night, [], self_tests_of(store, night_rows(store, night)))[-1]


def test_evidence_report_and_page_have_the_same_rate_of_one_version(store: Store) -> None:
    old = self_tested(store, 1, 2, "REGRESSION", "REGRESSION")
    self_tested(store, 2, 3, "INVALID", "SUSPECT")
    run = self_tested(store, 3, 3, "OK", "REGRESSION")
    words = (
        "self-test: 0 of 1 A/A pair sets alarmed (0.0 %, at most 79.3 %), "
        "1 of 2 seeded slowdowns found (50.0 %, at least 9.5 %), gate version 3"
    )
    evidence = collect(store, run)["self_test"]
    assert evidence["words"] == words
    assert [x["kind"] for x in evidence["tonight"]] == ["aa", "slowdown"]
    assert (
        health(store.night(run), [], self_tests_of(store, night_rows(store, store.night(run))))[-1]
        == f"Gate: {words}."
    )
    ((_, found),) = gate_health(store, [DAG]).engines
    assert found.words == words
    assert asdict(found).items() <= evidence.items()
    assert health(store.night(old), [], self_tests_of(store, night_rows(store, store.night(old))))[
        -1
    ].endswith("gate version 2.")


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (Value.REGRESSION, True),
        *((x, False) for x in (Value.SUSPECT, Value.UNDECIDED, Value.WATCH, Value.OK)),
        (Value.FASTER, False),
        *((x, None) for x in (Value.INVALID, Value.MISSING, Value.NO_BASELINE)),
    ],
)
def test_a_self_test_alarmed_where_it_is_a_regression(value: Value, expected: bool | None) -> None:
    """A SUSPECT of a seeded slowdown is a miss, and counts as one."""
    assert alarmed(value) is expected


def test_nights_that_a_reader_may_not_see_are_in_no_rate(store: Store) -> None:
    self_tested(store, 1, 3, "OK", "REGRESSION")
    assert gate_health(store, ["another"]).engines == ()
