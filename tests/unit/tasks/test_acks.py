"""What is known and accepted stays quiet; what is worse, or no longer accepted, alarms again."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from nexmark.acceptance.known_verdicts import covered
from nexmark.evidence.night_evidence import make_report
from nexmark.evidence.summary import failed
from nexmark.model import Value
from nexmark.report.table import report_text
from nexmark.store import BuildRecord, Store, open_store
from nexmark.verdict.verdict import Verdict
from tests.unit.store.store_builder import by_bounds, night, record

OLD, CANDIDATE, NEXT = "sha-429", "sha-430", "sha-431"


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with open_store(f"sqlite:///{tmp_path / 'results.db'}") as opened:
        yield opened


def slower(ratio: float | None = 1.08, **changes: Any) -> Verdict:
    values: dict[str, Any] = {
        "night": "",
        "query": "q5",
        "metric": "cpu_s_per_mevent",
        "value": Value.REGRESSION,
        "reason": "slower",
        "mode": "paired",
        "gate_version": 1,
        "ratio": ratio,
        "lo": ratio - 0.02 if ratio else None,
        "baseline_build": OLD,
    }
    return Verdict(**{**values, **changes})


def a_night(store: Store, number: int, build: str = CANDIDATE, **changes: Any) -> str:
    made = BuildRecord(build, build[-3:], f"pypi:{build}")
    return record(store, night(number, **{"build": made, "mode": "paired", **changes}))


@pytest.fixture
def known(store: Store) -> str:
    """A red night of q5 at 1.08, accepted."""
    run = a_night(store, 1)
    store.record_verdicts(run, [slower()])
    store.accept(run, "ada", "a fix that costs this", ["q5"])
    return run


def test_the_night_that_was_accepted_is_green_when_it_is_judged_again(
    store: Store, known: str
) -> None:
    assert failed(make_report(store, known).rows)
    verdicts = [slower()]
    numbers = covered(store, known, verdicts)
    assert list(numbers) == ["q5"]
    store.record_verdicts(known, [replace(x, acceptance=numbers[x.query]) for x in verdicts])
    (row,) = store.verdicts(known)
    assert not row.red
    report = make_report(store, known)
    assert not report.failed
    assert report.alarms == ()
    assert "1 known and accepted (q5)" in report.lines[0]
    assert "REGRESSION (accepted)" in report_text(report)


@pytest.mark.usefixtures("known")
class TestAnotherBuild:
    def test_up_to_what_was_accepted_is_known(self, store: Store) -> None:
        assert covered(store, a_night(store, 2, NEXT), [slower(1.09)]).keys() == {"q5"}

    def test_worse_alarms_again(self, store: Store) -> None:
        assert covered(store, a_night(store, 2, NEXT), [slower(1.15)]) == {}

    def test_the_same_size_on_top_of_what_was_accepted_alarms(self, store: Store) -> None:
        """The baseline has moved: 1.05 of the accepted build is not within the 1.08 before it."""
        run = a_night(store, 2, NEXT)
        assert covered(store, run, [slower(1.05, baseline_build=CANDIDATE)]) == {}

    def test_sizes_against_a_third_build_do_not_compare(self, store: Store) -> None:
        other = slower(1.05, baseline_build="sha-421")
        assert covered(store, a_night(store, 2, NEXT), [other]) == {}
        assert covered(store, a_night(store, 3, CANDIDATE), [other]).keys() == {"q5"}


@pytest.mark.usefixtures("known")
def test_the_accepted_build_is_known_whatever_is_measured_of_it(store: Store) -> None:
    assert covered(store, a_night(store, 2), [slower(1.2)]).keys() == {"q5"}


@pytest.mark.usefixtures("known")
def test_a_setting_that_was_tried_on_the_accepted_build_is_news(store: Store) -> None:
    run = a_night(store, 2, candidate_conf={"spark.sql.shuffle.partitions": "24"})
    assert covered(store, run, [slower(1.08)]) == {}


@pytest.mark.usefixtures("known")
def test_the_accepted_build_against_itself_is_news(store: Store) -> None:
    assert covered(store, a_night(store, 2), [slower(1.2, baseline_build=CANDIDATE)]) == {}


@pytest.mark.usefixtures("known")
@pytest.mark.parametrize("value", [Value.INVALID, Value.MISSING])
def test_an_accepted_slowdown_excuses_no_wrong_or_missing_result(
    store: Store, value: Value
) -> None:
    assert covered(store, a_night(store, 2), [slower(None, value=value)]) == {}


@pytest.mark.usefixtures("known")
def test_other_queries_workloads_and_inputs_are_not_covered(store: Store) -> None:
    assert covered(store, a_night(store, 2), [slower(query="q0")]) == {}
    assert covered(store, a_night(store, 3, workload="big"), [slower()]) == {}
    spec = {"events": 7, "seed": 1}
    assert covered(store, a_night(store, 4, workload_spec=spec), [slower()]) == {}


def test_a_green_night_that_is_accepted_excuses_nothing(store: Store) -> None:
    run = a_night(store, 1)
    store.record_verdicts(run, [slower(1.02, value=Value.OK)])
    store.accept(run, "ada", "the first night", ["q5"])
    assert covered(store, a_night(store, 2), [slower(1.02)]) == {}


def test_expiry_reopens(store: Store) -> None:
    run = a_night(store, 1)
    store.record_verdicts(run, [slower()])
    end = datetime.now(UTC) + timedelta(days=30)
    store.accept(run, "ada", "until the fix", ["q5"], expires=end)
    before = a_night(store, 2, started=end - timedelta(hours=1))
    after = a_night(store, 3, started=end + timedelta(hours=1))
    assert covered(store, before, [slower()]).keys() == {"q5"}
    assert covered(store, after, [slower()]) == {}


def test_withdrawal_reopens_and_stays_on_record(store: Store, known: str) -> None:
    (row,) = store.acceptances()
    store.withdraw(row.id, "bob", "it was no fix")
    assert covered(store, known, [slower()]) == {}
    (row,) = store.acceptances()
    assert row.withdrawal is not None
    assert (row.who, row.withdrawal.who, row.withdrawal.reason) == ("ada", "bob", "it was no fix")


class TestBounds:
    """There the baseline is a run."""

    def verdict(self, ratio: float, baseline_run: str) -> Verdict:
        value, metric = Value.REGRESSION, "cpu_s_per_mevent"
        return by_bounds("q5", value, metric=metric, ratio=ratio, baseline_run=baseline_run)

    def test_the_same_build_against_the_same_run_is_known(self, store: Store) -> None:
        first = a_night(store, 1, OLD, mode="bounds")
        run = a_night(store, 2, mode="bounds")
        store.record_verdicts(run, [self.verdict(1.3, first)])
        store.accept(run, "ada", "meant", ["q5"])
        again = a_night(store, 3, mode="bounds")
        assert covered(store, again, [self.verdict(1.31, first)]).keys() == {"q5"}
        assert covered(store, again, [self.verdict(1.31, run)]) == {}

    def test_the_same_build_with_other_confs_is_known_too(self, store: Store) -> None:
        first = a_night(store, 1, mode="bounds")
        run = a_night(store, 2, mode="bounds")
        store.record_verdicts(run, [self.verdict(1.3, first)])
        store.accept(run, "ada", "meant", ["q5"])
        assert covered(store, run, [self.verdict(1.3, first)]).keys() == {"q5"}


def test_alarms_are_grouped_by_the_build_they_began_with(store: Store) -> None:
    a_night(store, 1, OLD)
    store.record_verdicts(
        night(1).run, [slower(1.0, value=Value.OK), slower(1.0, query="q0", value=Value.OK)]
    )
    run = a_night(store, 2)
    store.record_verdicts(run, [slower(1.12), slower(1.0, query="q0", value=Value.OK)])
    last = a_night(store, 3, NEXT)
    store.record_verdicts(last, [slower(1.12), slower(1.09, query="q0")])
    assert make_report(store, last).alarms == (
        f"since build 430 pypi:sha-430 sha-430 (night {run}): q5 1.120 (2 nights)",
        f"since build 431 pypi:sha-431 sha-431 (night {last}): q0 1.090",
    )
