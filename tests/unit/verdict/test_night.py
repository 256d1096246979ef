"""A night's verdicts: what turns it red, what never does, and what is never green."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from nexmark.model import Value
from nexmark.verdict.measured_night import Measured, MeasuredNight, Pair
from nexmark.verdict.nightly import judge_night, replay, suspects
from nexmark.verdict.verdict import Verdict
from tests.unit.verdict.gate_builder import (
    CALIBRATED,
    CPU,
    CV,
    QUERIES,
    around,
    earlier,
    night,
    noisy,
    pairs,
    quiet_nights,
    rules,
    tonight,
    verdict,
    with_query,
)


class TestValues:
    def test_no_change_is_ok(self) -> None:
        found = verdict(tonight(1.0))
        assert found.value is Value.OK
        assert found.ratio == pytest.approx(1.0)

    def test_a_slowdown_that_fresh_pairs_confirm_is_a_regression(self) -> None:
        found = verdict(tonight(1.12, 1.10))
        assert (found.value, found.red) == (Value.REGRESSION, True)

    def test_a_suspicion_that_fresh_pairs_do_not_confirm_stays_visible_and_is_not_red(self) -> None:
        found = verdict(tonight(1.12, 1.0))
        assert (found.value, found.red) == (Value.UNCONFIRMED, False)

    def test_a_suspicion_in_one_direction_is_not_confirmed_by_the_other(self) -> None:
        assert verdict(tonight(1.12, 0.85)).value is Value.UNCONFIRMED

    def test_a_suspicion_without_fresh_pairs_is_never_green(self) -> None:
        found = verdict(tonight(1.12))
        assert (found.value, found.red) == (Value.SUSPECT, True)
        assert "0 of 10 fresh pairs" in found.reason

    def test_fresh_pairs_that_are_too_few_to_clear_leave_the_suspicion(self) -> None:
        assert verdict(tonight(1.12, 1.0, fresh_count=6)).value is Value.SUSPECT
        assert verdict(tonight(1.12, 1.12, fresh_count=6)).value is Value.REGRESSION

    def test_three_fresh_pairs_confirm_nothing_so_they_clear_nothing(self) -> None:
        few = with_query(night(), "q5", pairs=pairs([4.5] * 3), fresh=pairs([4.5] * 3))
        found = verdict(few, confirmation=1)
        assert (found.value, found.red) == (Value.SUSPECT, True)
        assert "3 of 4 fresh pairs" in found.reason

    def test_fresh_pairs_that_cannot_be_measurements_do_not_count(self) -> None:
        broken = tuple(Pair(i, math.nan, 10.0) for i in range(1, 11))
        found = verdict(with_query(tonight(1.12), "q5", fresh=broken))
        assert found.value is Value.SUSPECT

    def test_an_improvement_is_found_like_a_slowdown(self) -> None:
        found = verdict(tonight(1 / 1.12, 1 / 1.10))
        assert (found.value, found.red) == (Value.FASTER, False)
        assert verdict(tonight(1 / 1.12, 1.0)).value is Value.UNCONFIRMED

    def test_a_suspect_of_being_faster_is_not_green_but_not_red(self) -> None:
        found = verdict(tonight(1 / 1.12))
        assert (found.value, found.red) == (Value.SUSPECT, False)

    def test_a_change_too_small_to_matter_is_ok_however_sure(self) -> None:
        exact = with_query(night(), "q5", pairs=pairs([1.015] * 5), fresh=pairs([1.015] * 10))
        assert verdict(exact).value is Value.OK

    def test_fresh_pairs_that_do_not_agree_confirm_nothing(self) -> None:
        """Seven pairs are up, three far down: the middle is up, and yet nothing is known."""
        split = pairs([1.10] * 7 + [0.6] * 3)
        assert verdict(with_query(tonight(1.12), "q5", fresh=split)).value is Value.UNCONFIRMED


class TestNumbers:
    def test_the_size_is_that_of_the_fresh_pairs(self) -> None:
        """The first ones were chosen for being extreme."""
        found = verdict(tonight(1.20, 1.10))
        assert found.ratio == pytest.approx(1.10)
        assert "1.100" in found.reason
        assert "after ratio 1.200" in found.reason
        assert (found.pairs, found.fresh_pairs) == (5, 10)

    def test_a_regression_has_one_outside_its_interval(self) -> None:
        found = verdict(tonight(1.12, 1.10))
        assert found.lo is not None
        assert found.hi is not None
        assert 1 < found.lo < 1.10 < found.hi

    def test_the_interval_is_that_of_the_noise_learned(self) -> None:
        found = verdict(tonight(1.0))
        expected = 1.96 * CV * math.sqrt(1.08 / 5)
        assert found.hi is not None
        assert math.log(found.hi) == pytest.approx(expected, rel=0.25)

    def test_the_smallest_change_seen_is_seen_in_four_of_five_nights(self) -> None:
        rng = np.random.default_rng(11)
        mde = verdict(tonight(1.0)).mde or 0
        assert 0.02 < mde < 0.08
        found = [
            verdict(
                with_query(
                    night(seed=1000 + i),
                    "q5",
                    pairs=noisy(1 + mde, 5, rng),
                    fresh=noisy(1 + mde, 10, rng),
                )
            ).value
            for i in range(100)
        ]
        assert 0.7 < found.count(Value.REGRESSION) / 100 < 0.92

    def test_every_verdict_says_mode_and_version(self) -> None:
        found = verdict(tonight(1.0))
        assert (found.mode, found.gate_version) == ("paired", rules().version)


class TestNoGround:
    @pytest.mark.parametrize("figure", [math.nan, math.inf, 0.0, -1.0])
    @pytest.mark.parametrize("arm", ["candidate", "baseline"])
    def test_a_number_that_cannot_be_a_measurement_is_invalid(
        self, arm: str, figure: float
    ) -> None:
        broken = list(around(1.0, 5, np.random.default_rng(1)))
        broken[2] = replace(broken[2], **{arm: figure})
        found = verdict(with_query(night(), "q5", pairs=tuple(broken)))
        assert (found.value, found.red) == (Value.INVALID, True)
        assert f"pair 2: {arm}" in found.reason or f"pair 3: {arm}" in found.reason

    def test_a_wrong_result_is_never_faster(self) -> None:
        wrong = replace(tonight(0.5, 0.5), invalid={"q5": "3 rows are missing"})
        found = verdict(wrong)
        assert (found.value, found.reason) == (Value.INVALID, "3 rows are missing")
        assert suspects(wrong, earlier(), rules()) == []

    @pytest.mark.parametrize("arm", ["candidate", "baseline"])
    def test_two_whole_pairs_are_missing_with_the_arm_that_is_not_there(self, arm: str) -> None:
        broken = [replace(pair, **{arm: None}) for pair in pairs([1.2] * 5)[:3]]
        found = verdict(with_query(night(), "q5", pairs=(*broken, *pairs([1.2] * 5)[3:])))
        assert (found.value, found.red) == (Value.MISSING, True)
        assert found.reason == f"pair 1 has no {arm}"

    def test_too_few_pairs_are_missing(self) -> None:
        found = verdict(with_query(night(), "q5", pairs=pairs([1.0, 1.0])))
        assert (found.value, found.reason) == (Value.MISSING, "2 of 3 pairs measured")

    def test_a_query_that_is_expected_and_not_there_is_missing(self) -> None:
        without = [x for x in night().measured if x.query != "q5"]
        absent = replace(night(), measured=tuple(without), expected=QUERIES)
        found = verdict(absent)
        assert (found.value, found.reason) == (Value.MISSING, "not measured")
        known = verdict(replace(absent, missing={"q5": "the executor died"}))
        assert known.reason == "the executor died"

    def test_a_query_without_the_metric_that_decides_is_missing(self) -> None:
        only_wall = [
            replace(x, metric="wall_s") if x.query == "q5" else x for x in night().measured
        ]
        assert verdict(replace(night(), measured=tuple(only_wall))).value is Value.MISSING

    def test_a_night_without_measurements_has_no_verdict(self) -> None:
        assert not judge_night(MeasuredNight("empty", ()), earlier(), rules())

    def test_a_night_without_ground_teaches_nothing(self) -> None:
        broken = with_query(night(), "q5", pairs=pairs([9.0, 9.0]))
        judged = judge_night(broken, earlier(), rules())
        after = verdict(tonight(1.0), before=[*earlier(), judged])
        assert after.noise == verdict(tonight(1.0)).noise


class TestFewerPairs:
    """A query with three whole pairs is judged on these, and says what is missing."""

    @staticmethod
    def without(base: MeasuredNight, arm: str, *numbers: int) -> MeasuredNight:
        (q5,) = (x for x in base.measured if x.query == "q5")
        kept = [replace(x, **{arm: None}) if x.number in numbers else x for x in q5.pairs]
        return replace(with_query(base, "q5", pairs=tuple(kept)), asked=5)

    @pytest.mark.parametrize("arm", ["candidate", "baseline"])
    def test_one_failed_repetition_of_either_arm_leaves_a_verdict(self, arm: str) -> None:
        why = f"{arm} repetition 2: the application failed: out of luck"
        some = replace(self.without(tonight(1.0), arm, 2), missing={"q5": why})
        found = verdict(some)
        assert (found.value, found.red, found.pairs) == (Value.OK, False, 4)
        assert found.reason.startswith("4 of 5 pairs: ratio ")
        assert found.reason.endswith(f"; missing: {arm} 2 ({why})")

    def test_a_slowdown_is_found_in_three_whole_pairs(self) -> None:
        some = self.without(self.without(tonight(1.12, 1.10), "candidate", 2), "baseline", 5)
        assert suspects(some, earlier(), rules()) == ["q5"]
        found = verdict(some)
        assert (found.value, found.pairs) == (Value.REGRESSION, 3)
        assert found.reason.startswith("3 of 5 pairs: slower: ")
        assert found.reason.endswith("; missing: candidate 2, baseline 5")

    def test_the_numbers_are_those_of_the_whole_pairs(self) -> None:
        whole = replace(tonight(1.0), asked=None)
        (q5,) = (x for x in whole.measured if x.query == "q5")
        only = verdict(with_query(whole, "q5", pairs=q5.pairs[1:]))
        found = verdict(self.without(tonight(1.0), "candidate", 1))
        assert replace(found, reason="") == replace(only, reason="")

    def test_two_whole_pairs_are_missing_for_the_reason_of_the_first_failure(self) -> None:
        some = self.without(tonight(1.0), "candidate", 1, 2, 3)
        found = verdict(replace(some, missing={"q5": "candidate repetition 1: lost"}))
        assert (found.value, found.reason) == (Value.MISSING, "candidate repetition 1: lost")

    def test_pairs_that_are_not_there_at_all_are_counted(self) -> None:
        found = verdict(replace(night(), asked=7))
        assert found.value is Value.OK
        assert found.reason.startswith("5 of 7 pairs: ")
        assert found.reason.endswith("; missing: 2 whole")

    def test_a_wrong_result_is_invalid_however_many_pairs_are_right(self) -> None:
        some = self.without(tonight(1.0), "candidate", 2)
        found = verdict(replace(some, invalid={"q5": "candidate repetition 2: digest differs"}))
        assert (found.value, found.red) == (Value.INVALID, True)

    def test_a_whole_night_says_nothing_of_it(self) -> None:
        assert "pairs" not in verdict(replace(tonight(1.0), asked=5)).reason

    @pytest.mark.parametrize(
        ("count", "value"), [(9, Value.UNCONFIRMED), (8, Value.UNCONFIRMED), (7, Value.SUSPECT)]
    )
    def test_four_of_five_fresh_pairs_clear_a_suspicion(self, count: int, value: Value) -> None:
        """One lost repetition of twenty does not turn the night red."""
        found = verdict(replace(tonight(1.12, 1.0, fresh_count=count), asked=5))
        assert found.value is value
        assert f"in {count} of 10 fresh pairs" in found.reason


class TestCalibrating:
    def test_without_history_nothing_is_red_and_the_numbers_are_there(self) -> None:
        found = verdict(tonight(1.5), before=())
        assert (found.value, found.red) == (Value.CALIBRATING, False)
        assert found.ratio == pytest.approx(1.5)
        assert None not in (found.lo, found.hi, found.mde)
        assert "0 of 10 nights" in found.reason

    def test_the_tenth_night_is_the_last_without_a_verdict(self) -> None:
        judged = replay(quiet_nights(12), rules())
        values = [x.value for verdicts in judged for x in verdicts if x.query == "q5"]
        assert values[:10] == [Value.CALIBRATING] * 10
        assert Value.CALIBRATING not in values[10:]

    def test_without_a_baseline_arm_there_is_nothing_to_compare(self) -> None:
        alone = tuple(Pair(i, 10.0, None) for i in range(1, 6))
        found = verdict(with_query(night(), "q5", pairs=alone))
        assert (found.value, found.reason) == (Value.CALIBRATING, "no baseline was measured")

    def test_a_new_query_calibrates_beside_known_ones(self) -> None:
        new = Measured("q99", CPU, pairs([1.4] * 5))
        found = verdict(replace(night(), measured=(*night().measured, new)), "q99")
        assert found.value is Value.CALIBRATING

    def test_queries_that_calibrate_are_not_measured_again(self) -> None:
        assert suspects(tonight(1.5), (), rules()) == []


class TestSecondStage:
    def test_suspects_are_named_before_fresh_pairs_are_there(self) -> None:
        assert suspects(tonight(1.12), earlier(), rules()) == ["q5"]
        assert suspects(tonight(0.88), earlier(), rules()) == ["q5"]
        assert suspects(tonight(1.0), earlier(), rules()) == []

    def test_fresh_pairs_of_queries_that_are_no_suspects_are_not_read(self) -> None:
        """Whatever they say."""
        wild = tuple(
            replace(x, fresh=pairs([5.0] * 10)) if x.query != "q5" else x
            for x in tonight(1.12, 1.10).measured
        )
        plain = judge_night(tonight(1.12, 1.10), earlier(), rules())
        assert judge_night(replace(night(), measured=wild), earlier(), rules()) == plain

    def test_the_verdict_on_a_suspect_needs_no_other_suspicion_than_the_one_named(self) -> None:
        """``suspects`` and ``judge_night`` mean the same queries."""
        rng = np.random.default_rng(5)
        for number in range(20):
            rows = tuple(Measured(q, CPU, noisy(1.0, 5, rng)) for q in QUERIES)
            some = MeasuredNight(f"n{number}", rows)
            named = suspects(some, earlier(), rules())
            judged = judge_night(some, earlier(), rules())
            assert [x.query for x in judged if x.value is Value.SUSPECT] == named


class TestInforming:
    METRICS = (CPU, "wall_s")

    def both(self, cpu: float, wall: float) -> MeasuredNight:
        rng = np.random.default_rng(4)
        rows = [*night().measured, *(replace(x, metric="wall_s") for x in night().measured)]
        made = replace(night(), measured=tuple(rows))
        figures = {CPU: cpu, "wall_s": wall}
        rows = [
            replace(x, pairs=around(figures[x.metric], 5, rng)) if x.query == "q5" else x
            for x in made.measured
        ]
        return replace(made, measured=tuple(rows))

    def wall(self, some: MeasuredNight) -> Verdict:
        return verdict(some, metric="wall_s", before=earlier(CALIBRATED, self.METRICS))

    def test_slower_by_the_clock_only_is_watched_and_never_red(self) -> None:
        found = self.wall(self.both(1.0, 1.5))
        assert (found.value, found.decides, found.red) == (Value.WATCH, False, False)
        assert "it waits for something" in found.reason

    def test_no_change_is_ok_and_less_is_faster(self) -> None:
        assert self.wall(self.both(1.0, 1.0)).value is Value.OK
        assert self.wall(self.both(1.0, 0.7)).value is Value.FASTER

    def test_only_the_metric_that_decides_makes_suspects(self) -> None:
        before = earlier(CALIBRATED, self.METRICS)
        assert suspects(self.both(1.0, 1.5), before, rules()) == []
