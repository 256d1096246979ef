"""Which nights teach the gate: decided once, when a night is planned, and read by everyone."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path

import numpy as np
import pytest

from nexmark.config import SIGNOFF_DAG_ID
from nexmark.model import Value
from nexmark.store import NightRecord, Store, StoreError
from nexmark.store.query_history import trail
from nexmark.verdict.__main__ import main as replay
from nexmark.verdict.measured_night import Measured, MeasuredNight
from nexmark.verdict.nightly import judge_night
from nexmark.verdict.verdict import Verdict
from tests.unit.store.night_builder import CPU_METRIC, RULES, judge, paired, record_night
from tests.unit.store.store_builder import STARTED
from tests.unit.verdict.gate_builder import around, noisy, with_query

QUERIES = ("q0", "q5", "q7")
RELEASE, LAST = "sha-428", "sha-429"


def planned(number: int, **changes: object) -> NightRecord:
    """A night on a day of its own."""
    values = {
        "run_id": f"n{number}",
        "started": STARTED + timedelta(days=number),
        "queries": QUERIES,
        "baselines": dict.fromkeys(QUERIES, LAST),
    }
    return paired(number, **{**values, **changes})


def sign_off(number: int) -> NightRecord:
    """A sign-off in between, against the last release."""
    against = dict.fromkeys(QUERIES, RELEASE)
    return planned(number, dag_id=SIGNOFF_DAG_ID, baselines=against, teaches=False)


def judged(store: Store, record: NightRecord, ratio: float) -> list[Verdict]:
    """Judge a night in which q5 has this ratio."""
    rng = np.random.default_rng(record.started.toordinal())
    quiet = [Measured(query, CPU_METRIC, noisy(1.0, 5, rng)) for query in QUERIES]
    some = MeasuredNight(record.run, tuple(quiet), baseline=dict(record.baselines or {}))
    some = with_query(some, "q5", pairs=around(ratio, 5, rng), later=(around(1.0, 10, rng),))
    store.record_night(record)
    verdicts = judge_night(some, store.earlier(record.run, 60), RULES)
    store.record_verdicts(record.run, verdicts)
    return verdicts


def of_q5(verdicts: Sequence[Verdict]) -> Verdict:
    (found,) = (x for x in verdicts if x.query == "q5")
    return found


def test_a_slow_drift_with_a_sign_off_in_between_is_watched(store: Store) -> None:
    """A query is 0.8 % slower for 20 nights; a sign-off on the tenth of them is 40 % slower."""
    found = {}
    for number in range(1, 26):
        if number == 15:
            judged(store, sign_off(number), 1.4)
        else:
            ratio = 1.008 if number > 5 else 1.0
            found[number] = of_q5(judged(store, planned(number), ratio))
    assert found[14].value is Value.OK
    assert found[16].drift_slower > found[14].drift_slower > 0
    assert found[16].noise == pytest.approx(found[14].noise, rel=0.1)
    assert found[25].value is Value.WATCH
    assert "a little slower night after night (drift" in found[25].reason


class TestReaders:
    @pytest.fixture
    def both(self, store: Store) -> Store:
        judged(store, planned(1), 1.0)
        judged(store, planned(2, teaches=False), 1.0)
        judged(store, planned(3), 1.0)
        return store

    def test_the_gate_learns_only_from_nights_that_teach(self, both: Store) -> None:
        found = both.earlier(planned(3).run, 9)
        assert [rows[0].night for rows in found] == [planned(1).run]

    def test_the_history_of_a_query_has_only_these(self, both: Store) -> None:
        expected = [planned(1).run, planned(3).run]
        assert [point.verdict.night for point in both.history("q5").points] == expected
        found = trail(both, both.night(planned(3).run), "q5", CPU_METRIC, 9)
        assert [point.verdict.night for point in found] == expected

    def test_a_night_that_does_not_teach_is_in_its_own_history(self, both: Store) -> None:
        found = trail(both, both.night(planned(2).run), "q5", CPU_METRIC, 9)
        assert [point.verdict.night for point in found] == [planned(1).run, planned(2).run]

    def test_a_history_of_trials_alone_says_why_it_is_empty(self, store: Store) -> None:
        judged(store, planned(1, teaches=False), 1.0)
        with pytest.raises(StoreError, match="but for what was tried by hand; `nexmark run` first"):
            store.history("q5")


class TestReplay:
    def test_a_night_that_does_not_teach_teaches_nothing_in_replay(
        self, store: Store, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        said = {}
        for number in range(1, 6):
            trial = number == 3
            record = paired(number, queries=["q5"], teaches=not trial)
            run = record_night(store, record, {"q5": 1.5} if trial else None)
            said[run] = judge(store, run, RULES.for_comparison() if trial else RULES)
        store.export(tmp_path / "out", "csv")
        gate = tmp_path / "gate.yaml"
        gate.write_text(RULES.model_dump_json())
        assert replay(["--nights", str(tmp_path / "out" / "nights.csv"), "--gate", str(gate)]) == 0
        rows = list(csv.DictReader(capsys.readouterr().out.splitlines()))
        replayed = {(x["night"], x["query"], x["metric"]): (x["verdict"], x["mde"]) for x in rows}
        for run, verdicts in said.items():
            for one in verdicts:
                mde = "" if one.mde is None else f"{one.mde:.6g}"
                assert replayed[run, one.query, one.metric] == (one.value.value, mde)
