"""Verdicts of paired nights come back as they were given, and teach the nights after."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest
from sqlalchemy import select

from nexmark.config import BUILD_DAG_ID
from nexmark.model import SUITE, Value
from nexmark.store import Store, StoreError
from nexmark.store.table_rows import SelfTestRow, VerdictRow
from nexmark.store.verdict_rows import row_of
from nexmark.verdict.verdict import Verdict
from tests.unit.store.night_builder import judge, paired, record_night, second_round
from tests.unit.store.store_builder import STARTED, night, statements

RUN = paired().run
CPU = "cpu_s_per_mevent"
FULL = Verdict(
    RUN, "q5", CPU, Value.REGRESSION, "slower", "paired", 2, True, 1.2, 1.1, 1.3, 0.07, 0.18,
    0.01, 5, 10, 0.02, 1.5, 0.25, "sha-429",
    repetitions=5,
)  # fmt: skip


def given(run: str, query: str = "q5", metric: str = CPU, version: int = 2) -> Verdict:
    return replace(FULL, night=run, query=query, metric=metric, gate_version=version)


class TestVerdicts:
    def test_every_number_comes_back(self, store: Store) -> None:
        for number in (1, 2):
            store.record_night(paired(number))
        blank = Verdict(RUN, "q0", CPU, Value.MISSING, "not measured", "paired", 2)
        informs = replace(given(RUN, metric="wall_s"), decides=False)
        store.record_verdicts(RUN, [FULL, blank, informs])
        assert store.earlier(paired(2).run, 60) == [[FULL, blank, informs]]

    def test_a_judged_night_comes_back_with_all_that_the_gate_said(self, store: Store) -> None:
        """Also what is no part of equality: which build it was of, and when it was judged."""
        for number in range(1, 6):
            judge(store, record_night(store, paired(number)))
        run = record_night(store, paired(6), {"q5": 1.2})
        said = judge(store, run)
        assert store.verdicts(run) == said
        assert {(x.build, x.judged is None) for x in store.verdicts(run)} == {("sha-430", False)}

    def test_judged_again_nothing_is_left_of_what_this_gate_said_before(self, store: Store) -> None:
        """As a red suite and a red metric that are no more; other versions keep their own."""
        store.record_night(paired())
        store.record_verdicts(RUN, [given(RUN, version=1)])
        wall = replace(given(RUN, metric="wall_s"), value=Value.WATCH, decides=False)
        store.record_verdicts(RUN, [FULL, given(RUN, SUITE), wall])
        store.record_verdicts(RUN, [replace(FULL, value=Value.OK)])
        assert [(x.query, x.metric, x.value) for x in store.verdicts(RUN)] == [("q5", CPU, "OK")]
        with store.reading() as session:
            versions = session.scalars(select(VerdictRow.gate_version).order_by(VerdictRow.id))
            assert list(versions) == [1, 2]

    def test_a_judgement_that_cannot_be_recorded_leaves_the_one_before(
        self, store: Store, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        store.record_night(paired())
        before = [FULL, given(RUN, SUITE)]
        store.record_verdicts(RUN, before)
        twice = [replace(FULL, value=Value.OK)] * 2  # which no table of verdicts can hold
        with pytest.raises(StoreError):
            store.record_verdicts(RUN, twice)
        monkeypatch.setattr("nexmark.store.store.row_of", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            store.record_verdicts(RUN, [replace(FULL, value=Value.OK)])
        assert store.verdicts(RUN) == before

    def test_the_acceptance_that_covers_a_verdict_is_kept_with_it(self, store: Store) -> None:
        run = record_night(store, paired(queries=["q5"]))
        store.accept(run, "ada", "wanted")
        (row,) = store.acceptances()
        informs = replace(given(RUN, metric="wall_s"), decides=False)
        store.record_verdicts(RUN, [replace(FULL, acceptance=row.id), informs])
        assert [x.acceptance for x in store.verdicts(RUN)] == [row.id, None]

    def test_a_slowdown_is_confirmed_by_what_the_store_has(self, store: Store) -> None:
        for number in range(1, 6):
            judge(store, record_night(store, paired(number)))
        tonight = record_night(store, paired(6), {"q5": 1.2})
        assert second_round(store, tonight) == ["q5"]
        values = {x.query: x.value for x in judge(store, tonight) if x.metric == CPU}
        assert values == {"q0": Value.OK, "q5": Value.REGRESSION, "q10": Value.OK}


class TestEarlier:
    def test_the_last_ones_oldest_first_and_none_of_later_nights(self, store: Store) -> None:
        for number in (3, 1, 2, 4, 5):
            run = paired(number).run
            store.record_night(paired(number))
            store.record_verdicts(run, [given(run)])
        found = store.earlier(paired(4).run, 2)
        assert [[x.night for x in rows] for rows in found] == [[paired(2).run], [paired(3).run]]

    @pytest.mark.parametrize(
        "change",
        [
            {"engine": "spark-3.5.9"},
            {"workload": "big"},
            {"cluster": "x"},
            {"mode": "bounds"},
            {"workload_spec": {"events": 7}},
        ],
    )
    def test_only_comparable_nights(self, store: Store, change: dict[str, object]) -> None:
        store.record_night(paired(1, **change))
        mode = str(change.get("mode", "paired"))
        store.record_verdicts(RUN, [replace(FULL, mode=mode)])
        store.record_night(paired(2))
        assert store.earlier(paired(2).run, 9) == []

    def test_builds_on_demand_are_nothing_to_learn_from(self, store: Store) -> None:
        tried = paired(1, dag_id=BUILD_DAG_ID, teaches=False)
        store.record_night(tried)
        store.record_verdicts(tried.run, [given(tried.run)])
        for later in (paired(2), paired(3, dag_id=BUILD_DAG_ID)):
            store.record_night(later)
            assert store.earlier(later.run, 9) == []

    def test_settings_that_were_tried_are_nothing_to_learn_from(self, store: Store) -> None:
        conf = {"spark.sql.shuffle.partitions": "24"}
        tried = paired(1, candidate_conf=conf, teaches=False)
        store.record_night(tried)
        store.record_verdicts(tried.run, [given(tried.run)])
        store.record_night(paired(2))
        assert store.earlier(paired(2).run, 9) == []

    def test_nights_that_were_not_judged_take_no_place(self, store: Store) -> None:
        for number in (1, 2, 3):
            store.record_night(paired(number))
        store.record_verdicts(RUN, [FULL])
        assert store.earlier(paired(3).run, 1) == [[FULL]]

    def test_the_newest_gate_that_judged_a_night_is_believed(self, store: Store) -> None:
        for number in (1, 2):
            store.record_night(paired(number))
        store.record_verdicts(RUN, [given(RUN, version=3), given(RUN, "q0", version=2)])
        assert [[x.query for x in rows] for rows in store.earlier(paired(2).run, 9)] == [["q5"]]

    def test_a_season_is_read_by_few_statements(self, store: Store) -> None:
        """One statement for each night would take seconds: every repetition waits for this."""
        metrics = (CPU, "wall_s", "batch_ms_p99", "state_bytes_max")
        tonight = paired(0, run_id="tonight", started=STARTED + timedelta(days=90))
        rows = []
        for number in range(25):
            record = paired(
                run_id=f"night {number}", started=STARTED + timedelta(days=number), queries=[]
            )
            store.record_night(record)
            for verdict in (
                given(record.run, f"q{q}", metric) for q in range(23) for metric in metrics
            ):
                rows.append(row_of(verdict, record.run, STARTED))
        with store._writing() as session:
            session.add_all(rows)
        store.record_night(tonight)
        with statements(store) as made:
            found = store.earlier(tonight.run, 25)
        assert len(made) < 8
        assert sum(map(len, found)) == 25 * 23 * 4


class TestSelfTests:
    def test_the_newest_is_first_and_the_same_gate_replaces_its_own(self, store: Store) -> None:
        for number in (1, 2):
            store.record_night(paired(number))
        known = {"kind": "slowdown", "query": "q5", "size": 1.1, "gate_version": 2}
        for value in ("OK", "REGRESSION"):
            row = SelfTestRow(**known, value=value, ratio=1.11, lo=1.05, hi=1.2)
            store.record_self_test(RUN, row)
        same = {"kind": "aa", "query": "q0", "size": 1.0, "gate_version": 2}
        store.record_self_test(paired(2).run, SelfTestRow(**same, value="OK"))
        assert [(x.kind, x.value, x.ratio) for x in store.self_tests("spark-4.3.0")] == [
            ("aa", "OK", None),
            ("slowdown", "REGRESSION", 1.11),
        ]
        assert [x.kind for x in store.self_tests("spark-4.3.0", limit=1)] == ["aa"]
        assert store.self_tests("spark-3.5.9") == []


def test_a_night_of_bounds_is_not_among_paired_ones(store: Store) -> None:
    store.record_night(night())
    store.record_night(paired(2))
    assert store.earlier(paired(2).run, 5) == []
