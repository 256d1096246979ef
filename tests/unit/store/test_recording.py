"""Whatever is recorded comes back; a retry replaces and never doubles."""

from __future__ import annotations

from dataclasses import asdict, fields, replace

import pytest

from nexmark.measure.cpu_series import unpack
from nexmark.measure.measurement import Measurement
from nexmark.model import Value
from nexmark.store import BuildRecord, RepetitionRecord, Store, StoreError, ValidationRecord
from nexmark.store.table_rows import RepetitionRow
from nexmark.verdict.verdict import Verdict
from tests.unit.store.store_builder import (
    by_bounds,
    measurement,
    night,
    record,
    repetition,
    series,
)

RUN = night().run


@pytest.fixture
def recorded(store: Store) -> Store:
    store.record_night(night())
    return store


def verdict(query: str, value: Value, version: int = 1) -> Verdict:
    return by_bounds(query, value, "because", metric="cpu_s_per_mevent", version=version, ratio=1.0)


class TestNight:
    def test_a_night_comes_back(self, recorded: Store) -> None:
        row = recorded.night(RUN)
        assert (row.engine, row.workload, row.queries) == ("spark-4.3.0", "smoke", ["q0", "q5"])
        assert row.started == night().started
        assert row.workload_spec["events"] == 100_000

    def test_recording_it_again_brings_it_up_to_date(self, recorded: Store) -> None:
        recorded.record_night(night(queries=["q7"]))
        assert [x.queries for x in recorded.nights()] == [["q7"]]

    def test_a_night_is_measured_on_one_workload(self, recorded: Store) -> None:
        recorded.record_repetition(repetition(RUN, "q0"))
        recorded.record_night(night(workload_spec={"events": 100_000, "seed": 1, "repetitions": 9}))
        with pytest.raises(StoreError, match="measured on another workload or cluster before"):
            recorded.record_night(night(workload_spec={"events": 7}))

    def test_the_build_that_it_was_compared_with_is_recorded_too(self, store: Store) -> None:
        """On an empty database no night has had it as its candidate."""
        old = BuildRecord("sha-429", "4.2.9", "pypi:4.2.9")
        store.record_night(night(baselines={"q5": old.id}, baseline_builds=[old]))
        assert store.build(old.id).source == "pypi:4.2.9"

    def test_the_commit_of_a_build_is_kept_also_when_it_becomes_known_later(
        self, store: Store
    ) -> None:
        """An earlier version of the package recorded builds without it."""
        build = BuildRecord("sha-430", "4.3.0", "pypi:4.3.0")
        store.record_night(night(build=build))
        assert store.build(build.id).revision is None
        for revision in ("98bc0212c947", None):
            store.record_night(night(build=replace(build, revision=revision)))
            assert store.build(build.id).revision == "98bc0212c947"

    def test_the_newest_night_is_first(self, store: Store) -> None:
        for number in (2, 3, 1):
            store.record_night(night(number))
        assert [x.run_id[-2:] for x in store.nights(2)] == ["23", "22"]


class TestRepetition:
    def test_every_figure_of_a_measurement_is_a_column(self) -> None:
        assert {x.name for x in fields(Measurement)} <= set(RepetitionRow.__table__.columns.keys())

    def test_every_figure_comes_back(self, recorded: Store) -> None:
        original = measurement(
            12.5, events=123, digest="00ff", cpu_driver_s=None, figures={"x": 1.5}
        )
        recorded.record_repetition(repetition(RUN, "q5", measurement=original))
        (row,) = recorded.repetitions(RUN)
        expected = {**asdict(original), "query": "q5", "hosts": ["nexmark02"]}
        assert {name: getattr(row, name) for name in expected} == expected
        assert (row.arm, row.number, row.status, row.reason) == ("candidate", 1, "ok", None)

    def test_a_reason_may_quote_a_log_that_was_cut_off(self, recorded: Store) -> None:
        recorded.record_repetition(
            repetition(RUN, "q5", failed="killed\0\0", result={"confs": {"a": "b\0"}})
        )
        (row,) = recorded.repetitions(RUN)
        assert row.reason is not None
        assert row.reason.rstrip("\0") == "killed"
        assert row.confs == {"a": "b\0"}

    def test_a_retried_task_replaces_its_repetition(self, recorded: Store) -> None:
        recorded.record_repetition(repetition(RUN, "q5", series=[series()]))
        recorded.record_repetition(repetition(RUN, "q5", failed="executor lost"))
        recorded.record_repetition(
            repetition(RUN, "q5", measurement=measurement(7.0), series=[series()])
        )
        (row,) = recorded.repetitions(RUN)
        assert row.cpu_s_per_mevent == 7.0
        assert len(recorded.sample_series(row.id)) == 1

    def test_repetitions_arms_and_queries_are_kept_apart(self, recorded: Store) -> None:
        for query, arm, number in [("q5", "candidate", 1), ("q5", "candidate", 2)]:
            recorded.record_repetition(repetition(RUN, query, number, arm=arm))
        recorded.record_repetition(repetition(RUN, "q5", arm="baseline"))
        recorded.record_repetition(repetition(RUN, "q0"))
        rows = [(x.query, x.arm, x.number) for x in recorded.repetitions(RUN)]
        assert rows == [
            ("q0", "candidate", 1),
            ("q5", "baseline", 1),
            ("q5", "candidate", 1),
            ("q5", "candidate", 2),
        ]

    def test_batches_plan_and_confs_are_kept(self, recorded: Store) -> None:
        plan = {"text": "Scan 1", "skeleton": "Scan", "skeleton_hash": "ab", "exchanges": 0}
        result = {"batches": [{"id": 0}], "confs": {"spark.x": "1"}, "plan": plan}
        for query in ("q0", "q5"):
            recorded.record_repetition(repetition(RUN, query, result=result))
        first, second = recorded.repetitions(RUN)
        assert (first.batch_list, first.confs) == ([{"id": 0}], {"spark.x": "1"})
        assert first.plan_id == second.plan_id is not None

    def test_samples_come_back_to_the_millisecond(self, recorded: Store) -> None:
        hosts = [series("nexmark03"), series("nexmark02")]
        recorded.record_repetition(repetition(RUN, "q5", series=hosts))
        (row,) = recorded.repetitions(RUN)
        rows = recorded.sample_series(row.id)
        assert [(x.host, x.readings) for x in rows] == [("nexmark02", 3), ("nexmark03", 3)]
        assert rows[0].path == "q5/samples-nexmark02.jsonl"
        assert unpack(rows[0].series) == series()[0]

    def test_a_repetition_of_an_unknown_run_is_refused(self, store: Store) -> None:
        with pytest.raises(StoreError, match="is not recorded; its preflight has to pass first"):
            store.record_repetition(repetition("nowhere/1", "q5"))

    def test_a_repetition_is_one_thing(self) -> None:
        with pytest.raises(ValueError, match="either invalid or failed"):
            RepetitionRecord(RUN, "q5", 1, invalid="a", failed="b")
        with pytest.raises(ValueError, match="needs a reason"):
            RepetitionRecord(RUN, "q5", 1)


class TestRightness:
    def test_only_right_repetitions_are_judged(self, recorded: Store) -> None:
        recorded.record_repetition(repetition(RUN, "q5", 1, measurement=measurement(8.0)))
        recorded.record_repetition(
            repetition(RUN, "q5", 2, measurement=measurement(1.0), invalid="digest differs")
        )
        arm = recorded.arms(RUN)["q5"]
        assert [(x.number, x.steady, x.application) for x in arm.repetitions] == [(1, 8.0, 20.0)]
        assert arm.run == RUN

    def test_a_wrong_result_is_reported(self, recorded: Store) -> None:
        recorded.record_validation(ValidationRecord(RUN, "q0", False, ["2 rows missing", "schema"]))
        assert recorded.paired_night(RUN).invalid == {"q0": "2 rows missing | schema"}

    def test_a_wrong_repetition_is_reported(self, recorded: Store) -> None:
        recorded.record_validation(ValidationRecord(RUN, "q5", True))
        recorded.record_repetition(repetition(RUN, "q5"))
        recorded.record_repetition(repetition(RUN, "q5", 2, invalid="digest differs"))
        assert recorded.paired_night(RUN).invalid == {
            "q5": "candidate repetition 2: digest differs"
        }

    def test_measured_but_never_verified_is_not_right(self, recorded: Store) -> None:
        recorded.record_repetition(repetition(RUN, "q5"))
        assert recorded.paired_night(RUN).invalid == {"q5": "its result was not verified"}

    def test_a_failed_repetition_is_missing_not_wrong(self, recorded: Store) -> None:
        recorded.record_validation(ValidationRecord(RUN, "q5", True))
        recorded.record_repetition(repetition(RUN, "q5", 2, failed="executor lost"))
        recorded.record_repetition(repetition(RUN, "q5", 3, failed="timeout"))
        assert recorded.paired_night(RUN).invalid == {}
        assert recorded.paired_night(RUN).missing == {"q5": "candidate repetition 2: executor lost"}

    def test_a_validation_of_a_retried_task_replaces_the_first(self, recorded: Store) -> None:
        recorded.record_validation(ValidationRecord(RUN, "q5", False, ["x"]))
        recorded.record_validation(ValidationRecord(RUN, "q5", True, [], 9, {"rows": 5}))
        (row,) = recorded.validations(RUN)
        assert (row.success, row.failures, row.statistics) == (True, [], {"rows": 5})


class TestVerdicts:
    def test_verdicts_come_back_in_order(self, recorded: Store) -> None:
        recorded.record_verdicts(RUN, [verdict("q5", Value.OK), verdict("q0", Value.MISSING)])
        rows = recorded.verdicts(RUN)
        assert [(x.query, x.value, x.bound) for x in rows] == [
            ("q5", "OK", 1.1),
            ("q0", "MISSING", 1.1),
        ]

    def test_the_same_gate_replaces_its_verdict(self, recorded: Store) -> None:
        for value in (Value.REGRESSION, Value.OK):
            recorded.record_verdicts(RUN, [verdict("q5", value)])
        assert [x.value for x in recorded.verdicts(RUN)] == ["OK"]

    def test_another_gate_leaves_the_verdicts_of_the_first(self, recorded: Store) -> None:
        recorded.record_verdicts(RUN, [verdict("q5", Value.OK, 1)])
        recorded.record_verdicts(RUN, [verdict("q5", Value.REGRESSION, 2)])
        assert [x.value for x in recorded.verdicts(RUN)] == ["REGRESSION"]
        recorded.record_verdicts(RUN, [verdict("q5", Value.FASTER, 1)])
        assert [x.value for x in recorded.verdicts(RUN)] == ["REGRESSION"]


def test_record_helper_makes_a_right_night(store: Store) -> None:
    run = record(store, night())
    assert store.paired_night(run).invalid == {}
    assert set(store.arms(run)) == {"q0", "q5"}
