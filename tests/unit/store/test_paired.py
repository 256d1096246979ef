"""A paired night is read from the raw rows as the gate takes it."""

from __future__ import annotations

import math

import pytest

from nexmark.model import PROFILED
from nexmark.store import Store, ValidationRecord
from nexmark.verdict.measured_night import Canary, Measured, MeasuredNight, Pair
from tests.unit.store.night_builder import canary, cpu, paired, record_pair, validate

RUN = paired().run
CPU = "cpu_s_per_mevent"


@pytest.fixture
def begun(store: Store) -> Store:
    store.record_night(paired(queries=["q5"], repetitions=2))
    validate(store, RUN, ["q5"])
    return store


def measured(night: MeasuredNight, metric: str = CPU) -> Measured:
    (one,) = [x for x in night.measured if x.metric == metric]
    return one


class TestPairs:
    def test_arms_of_the_same_number_and_round_are_a_pair(self, begun: Store) -> None:
        record_pair(begun, RUN, "q5", 2, candidate=12, baseline=11)
        record_pair(begun, RUN, "q5", 1, candidate=10, baseline=9)
        record_pair(begun, RUN, "q5", 1, stage=2, candidate=8, baseline=7)
        found = measured(begun.paired_night(RUN))
        assert found.pairs == (Pair(1, 10, 9), Pair(2, 12, 11))
        assert found.later == ((Pair(1, 8, 7),),)

    def test_a_repetition_that_does_not_count_leaves_its_place_empty(self, begun: Store) -> None:
        record_pair(begun, RUN, "q5", 1, candidate={"failed": "lost"}, baseline=9)
        record_pair(begun, RUN, "q5", 2, candidate=10, baseline={"invalid": "digest differs"})
        assert measured(begun.paired_night(RUN)).pairs == (Pair(1, None, 9), Pair(2, 10, None))

    def test_the_self_test_has_arms_of_its_own(self, begun: Store) -> None:
        record_pair(begun, RUN, "q5", candidate=12, baseline=10, control=10.1, slowed=11)
        for arm, figure in (("control", 10.1), ("slowed", 11)):
            night = begun.paired_night(RUN, arms=(arm, "baseline"), queries=["q5"])
            assert measured(night).pairs == (Pair(1, figure, 10),)
            assert night.invalid == {}
        assert measured(begun.paired_night(RUN)).pairs == (Pair(1, 12, 10),)

    def test_only_the_queries_asked_for_are_read(self, begun: Store) -> None:
        for query in ("q0", "q5"):
            record_pair(begun, RUN, query, candidate=12, baseline=10)
        night = begun.paired_night(RUN, queries=["q5"])
        assert {one.query for one in night.measured} == set(night.expected) == {"q5"}
        assert night.invalid == {}


class TestRecorded:
    """What ran with a flight recorder counts for nothing."""

    def test_it_is_no_pair_and_does_not_change_the_basis(self, begun: Store) -> None:
        record_pair(begun, RUN, "q5", 1, candidate=10, baseline=9)
        before = begun.paired_night(RUN)
        without = {"measurement": cpu(99, cpu_s_per_mevent_steady=None)}
        record_pair(begun, RUN, "q5", 1, stage=PROFILED, candidate=without, baseline=without)
        assert begun.paired_night(RUN) == before

    def test_a_wrong_or_failed_one_makes_no_query_invalid_or_missing(self, begun: Store) -> None:
        record_pair(begun, RUN, "q5", 1, candidate=10, baseline=9)
        wrong, lost = {"invalid": "digest differs"}, {"failed": "no such option"}
        record_pair(begun, RUN, "q5", 1, stage=PROFILED, candidate=wrong, baseline=lost)
        night = begun.paired_night(RUN)
        assert (night.invalid, night.missing) == ({}, {})

    def test_it_is_none_of_the_figures_of_an_arm(self, begun: Store) -> None:
        record_pair(begun, RUN, "q5", 1, candidate=10, baseline=9)
        before = begun.arms(RUN)
        record_pair(begun, RUN, "q5", 1, stage=PROFILED, candidate=99, baseline=99)
        assert begun.arms(RUN) == before

    def test_the_self_test_does_not_see_it(self, begun: Store) -> None:
        record_pair(begun, RUN, "q5", candidate=12, baseline=10, slowed=11)
        arms = ("slowed", "baseline")
        tested = begun.paired_night(RUN, arms=arms, queries=["q5"])
        record_pair(begun, RUN, "q5", stage=PROFILED, candidate=99, baseline=98, slowed=97)
        assert begun.paired_night(RUN, arms=arms, queries=["q5"]) == tested


class TestMetrics:
    def test_what_is_measured_beside_cpu_time(self, begun: Store) -> None:
        record_pair(begun, RUN, "q5", candidate=12, baseline=9)
        night = begun.paired_night(RUN)
        assert {one.metric for one in night.measured} == {CPU, "wall_s", "batch_ms_p99"}
        assert measured(night, "wall_s").pairs == (Pair(1, 4, 3),)

    def test_state_counts_where_every_repetition_holds_some(self, begun: Store) -> None:
        some, none = ({"measurement": cpu(9, state_bytes_max=x)} for x in (512, 0))
        record_pair(begun, RUN, "q5", 1, candidate=some, baseline=some)
        state = measured(begun.paired_night(RUN), "state_bytes_max")
        assert state.pairs == (Pair(1, 512, 512),)
        record_pair(begun, RUN, "q5", 2, candidate=some, baseline=none)
        assert "state_bytes_max" not in {x.metric for x in begun.paired_night(RUN).measured}

    def test_cpu_time_is_of_the_steady_state_only_where_all_have_one(self, begun: Store) -> None:
        record_pair(begun, RUN, "q5", 1, candidate=12, baseline=10)
        assert measured(begun.paired_night(RUN)).pairs == (Pair(1, 12, 10),)
        without = {"measurement": cpu(10, cpu_s_per_mevent_steady=None)}
        record_pair(begun, RUN, "q5", 2, stage=2, candidate=12, baseline=without)
        assert measured(begun.paired_night(RUN)).pairs == (Pair(1, 20, 20),)


class TestRightness:
    def test_a_wrong_result_of_either_arm_is_reported(self, begun: Store) -> None:
        record_pair(begun, RUN, "q5", 1, candidate=12, baseline=10)
        record_pair(begun, RUN, "q5", 2, candidate=12, baseline={"invalid": "digest differs"})
        assert begun.paired_night(RUN).invalid == {"q5": "baseline repetition 2: digest differs"}

    @pytest.mark.parametrize(
        ("arm", "said"), [("candidate", "rows missing"), ("baseline", "baseline: rows missing")]
    )
    def test_a_failed_validation_of_either_arm_is_reported(
        self, begun: Store, arm: str, said: str
    ) -> None:
        begun.record_validation(ValidationRecord(RUN, "q5", False, ["rows missing"], arm=arm))
        assert begun.paired_night(RUN).invalid == {"q5": said}

    def test_the_candidate_has_to_be_verified(self, store: Store) -> None:
        store.record_night(paired(queries=["q5"]))
        record_pair(store, RUN, "q5", candidate=12, baseline=10)
        assert store.paired_night(RUN).invalid == {"q5": "its result was not verified"}

    def test_a_repetition_that_failed_is_missing(self, begun: Store) -> None:
        record_pair(begun, RUN, "q5", 1, candidate=12, baseline={"failed": "executor lost"})
        record_pair(begun, RUN, "q5", 2, candidate={"failed": "timeout"}, baseline=10)
        night = begun.paired_night(RUN)
        assert (night.invalid, night.missing) == (
            {},
            {"q5": "baseline repetition 1: executor lost"},
        )

    def test_a_later_repetition_that_failed_is_for_the_gate_to_see(self, begun: Store) -> None:
        record_pair(begun, RUN, "q5", 1, candidate=12, baseline=10)
        record_pair(begun, RUN, "q5", 1, stage=2, candidate={"failed": "x"}, baseline=10)
        night = begun.paired_night(RUN)
        assert (night.missing, measured(night).later) == ({}, ((Pair(1, None, 10),),))

    def test_a_wrong_later_repetition_is_wrong(self, begun: Store) -> None:
        record_pair(begun, RUN, "q5", 1, candidate=12, baseline=10)
        record_pair(begun, RUN, "q5", 1, stage=2, candidate={"invalid": "x"}, baseline=10)
        assert begun.paired_night(RUN).invalid == {"q5": "candidate round 2 repetition 1: x"}


class TestNight:
    def test_what_was_asked_for_and_compared_with(self, store: Store) -> None:
        store.record_night(paired())
        night = store.paired_night(RUN)
        assert (night.name, night.expected, night.asked) == (RUN, ("q0", "q5", "q10"), 3)
        assert night.baseline == {"q0": "sha-429", "q5": "sha-429", "q10": "sha-429"}

    def test_mode_seed_and_gate_come_back(self, store: Store) -> None:
        store.record_night(paired(gate_spec={"version": 2}))
        row = store.night(RUN)
        assert (row.mode, row.seed, row.gate_spec) == ("paired", 7, {"version": 2})

    def test_canaries_are_kept_apart_by_host_and_group(self, begun: Store) -> None:
        begun.record_canary(RUN, [canary("before", 10), canary("before", 11), canary("after", 12)])
        begun.record_canary(RUN, [canary("before", 5, host="nexmark02", group="q5")])
        night = begun.paired_night(RUN)
        assert night.canary == (
            Canary("spin_ms", (10, 11), (12,)),
            Canary("spin_ms", (5,), (), "nexmark02", "q5"),
        )
        assert night.groups == {"q5": "q5"}

    def test_a_canary_read_again_replaces_what_it_had(self, begun: Store) -> None:
        begun.record_canary(RUN, [canary("before", 10), canary("after", 12)])
        begun.record_canary(RUN, [canary("before", 11)])
        assert [(x.moment, x.value) for x in begun.canaries(RUN)] == [("before", 11), ("after", 12)]

    def test_a_canary_that_could_not_be_read_is_no_measurement(self, begun: Store) -> None:
        begun.record_canary(RUN, [canary("before", math.nan)])
        (only,) = begun.paired_night(RUN).canary
        assert math.isnan(only.before[0])

    def test_the_grade_stays_when_the_night_is_recorded_again(self, begun: Store) -> None:
        begun.record_grade(RUN, "unsteady", "canary spin_ms: 7 % apart")
        begun.record_night(paired(queries=["q5"], repetitions=2))
        row = begun.night(RUN)
        assert (row.grade, row.grade_reason) == ("unsteady", "canary spin_ms: 7 % apart")
