"""A night's verdicts: what turns it red, what never does, and what is never green."""

from __future__ import annotations

import math
import re
from dataclasses import replace

import numpy as np
import pytest

from nexmark.model import Value
from nexmark.verdict.eligibility import Grounds
from nexmark.verdict.left_open import LeftOpen
from nexmark.verdict.measured_night import Measured, MeasuredNight, Pair
from nexmark.verdict.measured_rounds import MeasuredRounds
from nexmark.verdict.nightly import going_on, judge_night, replay
from nexmark.verdict.noise import Past
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

    def test_a_slowdown_that_the_second_round_shows_too_is_a_regression(self) -> None:
        found = verdict(tonight(1.12, 1.10))
        assert (found.value, found.red) == (Value.REGRESSION, True)

    def test_a_change_that_the_second_round_does_not_show_is_not_red(self) -> None:
        found = verdict(tonight(1.12, 1.0))
        assert found.value in (Value.OK, Value.UNDECIDED)
        assert not found.red

    def test_a_change_in_one_direction_is_not_confirmed_by_the_other(self) -> None:
        assert verdict(tonight(1.12, 0.85)).value not in (Value.REGRESSION, Value.FASTER)

    def test_a_change_that_was_not_measured_on_is_never_green(self) -> None:
        found = verdict(tonight(1.12))
        assert (found.value, found.red) == (Value.SUSPECT, True)
        assert "in 5 pairs, 0 of them after the first round; 4 have to show it" in found.reason

    def test_an_interval_beyond_what_matters_is_never_undecided(self) -> None:
        """The first look asks for more than an interval shows, where pairs differ much."""
        measured = pairs([2.1, 2.3, 2.6, 3.0, 3.3])
        first = with_query(night(), "q5", pairs=measured)
        (found,) = (one for one in judge_night(first, [], rules()) if one.key == ("q5", CPU))
        assert found.lo > 1.5
        assert (found.value, found.red) == (Value.SUSPECT, True)
        assert "slower? ratio 2.6" in found.reason

    def test_three_pairs_of_a_second_round_confirm_nothing(self) -> None:
        """Three that agree are chance once in eight."""
        found = verdict(tonight(1.12, 1.12, fresh_count=3))
        assert (found.value, found.red) == (Value.SUSPECT, True)
        assert verdict(tonight(1.12, 1.12, fresh_count=4)).value is Value.REGRESSION

    def test_pairs_that_cannot_be_measurements_do_not_count(self) -> None:
        broken = tuple(Pair(i, math.nan, 10.0) for i in range(1, 11))
        found = verdict(with_query(tonight(1.12), "q5", later=(broken,)))
        assert found.value is Value.SUSPECT

    def test_an_improvement_is_found_like_a_slowdown(self) -> None:
        found = verdict(tonight(1 / 1.12, 1 / 1.10))
        assert (found.value, found.red) == (Value.FASTER, False)
        assert verdict(tonight(1 / 1.12, 1.0)).value is Value.OK

    def test_what_looks_faster_and_was_not_measured_on_is_not_green_but_not_red(self) -> None:
        found = verdict(tonight(1 / 1.12))
        assert (found.value, found.red) == (Value.SUSPECT, False)

    def test_a_change_too_small_to_matter_is_ok_however_sure(self) -> None:
        exact = with_query(night(), "q5", pairs=pairs([1.015] * 5), later=(pairs([1.015] * 10),))
        assert verdict(exact).value is Value.OK

    def test_pairs_of_a_second_round_that_do_not_agree_confirm_nothing(self) -> None:
        """Seven pairs are up, three far down: the middle is up, and yet nothing is known."""
        split = pairs([1.10] * 7 + [0.6] * 3)
        found = verdict(with_query(tonight(1.12), "q5", later=(split,)))
        assert found.value is not Value.REGRESSION

    def test_a_slowdown_that_matters_and_is_not_excluded_is_undecided(self) -> None:
        """Pairs that differ by 15 % leave 10 % open; they show no slowdown, either."""
        rng = np.random.default_rng(8)
        wide = with_query(night(), "q5", pairs=around(1.02, 5, rng, cv=0.15))
        found = verdict(wide)
        assert (found.value, found.red) == (Value.UNDECIDED, False)
        assert found.hi is not None
        assert found.hi > 1.10
        assert re.search(r"in 5 pairs; \d+ more pairs would decide 10 %$", found.reason)

    def test_what_no_number_of_pairs_decides_is_said(self) -> None:
        """2.5 % is more than the 2 % that matter, and less than the 3 % of a regression."""
        found = verdict(tonight(1.025, 1.025), matters=0.02, confirm_change=0.03)
        assert found.value is Value.UNDECIDED
        assert found.reason.endswith("; no number of pairs would decide 2 % if the ratio stays so")

    def test_what_matters_decides_between_ok_and_undecided(self) -> None:
        some = tonight(1.0)
        assert verdict(some, matters=0.10).value is Value.OK
        assert verdict(some, matters=0.005).value is Value.UNDECIDED

    def test_the_pairs_of_a_single_round_were_chosen_by_nothing_and_confirm_themselves(
        self,
    ) -> None:
        one_round = {"rounds": (5,), "pursue_z": ()}
        assert verdict(tonight(1.12), **one_round).value is Value.REGRESSION
        split = with_query(night(), "q5", pairs=pairs([1.3, 1.3, 1.3, 0.6, 0.7]))
        assert verdict(split, **one_round).value is not Value.REGRESSION


class TestNumbers:
    def test_the_size_is_that_of_all_pairs(self) -> None:
        found = verdict(tonight(1.10, 1.10))
        assert found.ratio == pytest.approx(1.10, rel=0.01)
        assert "in 15 pairs, 10 of them after the first round" in found.reason
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
        assert math.log(found.hi) == pytest.approx(expected, rel=0.3)

    def test_the_smallest_change_seen_is_seen_in_most_nights(self) -> None:
        rng = np.random.default_rng(11)
        mde = verdict(tonight(1.0)).mde or 0
        assert 0.02 < mde < 0.08
        found = [
            verdict(
                with_query(
                    night(seed=1000 + i),
                    "q5",
                    pairs=noisy(1 + mde, 5, rng),
                    later=(noisy(1 + mde, 10, rng),),
                )
            ).value
            for i in range(100)
        ]
        assert 0.65 < found.count(Value.REGRESSION) / 100 < 0.95

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
        assert going_on(wrong, earlier(), rules(), 2) == []

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
        rows = tuple(Measured(x.query, CPU, pairs([9.0, 9.0])) for x in night().measured)
        broken = MeasuredNight("broken", rows)
        judged = judge_night(broken, earlier(), rules())
        after = verdict(tonight(1.0), before=[*earlier(), judged])
        assert after.noise == pytest.approx(verdict(tonight(1.0)).noise)


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
        assert going_on(some, earlier(), rules(), 2) == ["q5"]
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
        reason = verdict(replace(tonight(1.0), asked=5)).reason
        assert "of 5 pairs" not in reason
        assert "missing" not in reason


class TestFirstNight:
    """A night without any history has its answers."""

    def test_a_large_slowdown_is_red_and_no_change_is_ok(self) -> None:
        found = verdict(tonight(1.5, 1.5), before=())
        assert (found.value, found.red) == (Value.REGRESSION, True)
        assert None not in (found.lo, found.hi, found.mde)
        assert verdict(tonight(1.0), before=()).value is Value.OK

    def test_quiet_nights_are_ok_from_the_first_on(self) -> None:
        judged = replay(quiet_nights(12), rules())
        values = [x.value for verdicts in judged for x in verdicts if x.query == "q5"]
        assert values == [Value.OK] * 12

    def test_a_query_alone_is_judged_with_the_shipped_prior(self) -> None:
        """Its five pairs are exact, but nothing else says that they are no chance."""
        alone = MeasuredNight("tonight", (Measured("q5", CPU, pairs([1.04] * 5)),))
        assert verdict(alone, before=()).value is Value.UNDECIDED
        (sure,) = judge_night(alone, (), rules(prior_deviation=0.01, prior_degrees=60.0))
        assert sure.value is not Value.UNDECIDED

    def test_without_a_baseline_arm_there_is_nothing_to_compare(self) -> None:
        alone = tuple(Pair(i, 10.0, None) for i in range(1, 6))
        found = verdict(with_query(night(), "q5", pairs=alone))
        assert (found.value, found.red) == (Value.NO_BASELINE, False)
        assert found.reason == "no baseline was measured: accept a run, or name a build"

    def test_a_new_query_is_judged_beside_known_ones(self) -> None:
        new = Measured("q99", CPU, pairs([1.4] * 5), (pairs([1.4] * 10),))
        found = verdict(replace(night(), measured=(*night().measured, new)), "q99")
        assert found.value is Value.REGRESSION


class TestRounds:
    THREE = {"rounds": (5, 5, 10), "pursue_z": (1.4, 1.4)}  # noqa: RUF012

    def test_what_looks_changed_goes_on(self) -> None:
        assert going_on(tonight(1.12), earlier(), rules(), 2) == ["q5"]
        assert going_on(tonight(0.88), earlier(), rules(), 2) == ["q5"]
        assert going_on(tonight(1.0), earlier(), rules(), 2) == []

    def test_what_is_undecided_goes_on(self) -> None:
        rng = np.random.default_rng(8)
        wide = with_query(night(), "q5", pairs=around(1.0, 5, rng, cv=0.2))
        assert going_on(wide, earlier(), rules(), 2) == ["q5"]

    def test_the_most_urgent_query_is_first(self) -> None:
        some = with_query(tonight(1.06), "q7", pairs=around(1.2, 5, np.random.default_rng(3)))
        some = with_query(some, "q2", pairs=around(0.85, 5, np.random.default_rng(4)))
        assert going_on(some, earlier(), rules(), 2) == ["q7", "q5", "q2"]

    def test_a_change_that_has_only_to_be_confirmed_goes_before_what_is_only_not_excluded(
        self,
    ) -> None:
        """A few pairs confirm a large gain; the budget may not last for all that is undecided."""
        wide = around(1.02, 5, np.random.default_rng(8), cv=0.15)
        some = with_query(night(), "q5", pairs=wide)
        some = with_query(some, "q2", pairs=around(0.5, 5, np.random.default_rng(4)))
        some = with_query(some, "q7", pairs=around(1.5, 5, np.random.default_rng(3)))
        assert going_on(some, earlier(), rules(), 2) == ["q7", "q2", "q5"]

    def test_what_earlier_nights_left_undecided_goes_before_the_others(self) -> None:
        some = with_query(tonight(1.06), "q7", pairs=around(1.2, 5, np.random.default_rng(3)))
        left = around(1.03, 5, np.random.default_rng(4), cv=0.2)
        some = with_query(some, "q2", pairs=left, before=left)
        assert going_on(some, earlier(), rules(), 2) == ["q2", "q7", "q5"]

    def test_pairs_of_tonight_confirm_what_an_earlier_night_suspected(self) -> None:
        """The earlier pairs were looked at; tonight's came later, the first round of them, too."""
        rng = np.random.default_rng(6)
        some = with_query(
            night(), "q5", pairs=around(1.4, 5, rng), before=around(1.4, 5, rng), later=()
        )
        judged = verdict(some)
        assert judged.value is Value.REGRESSION
        said = "in 10 pairs, 5 of them of earlier nights, 5 of them after the first round"
        assert judged.reason.endswith(said)

    def test_pairs_of_tonight_do_not_confirm_what_they_do_not_show(self) -> None:
        rng = np.random.default_rng(7)
        some = with_query(night(), "q5", pairs=around(1.0, 5, rng), before=around(1.6, 5, rng))
        assert verdict(some).value is not Value.REGRESSION

    def test_a_query_that_is_decided_does_not_go_on(self) -> None:
        red = with_query(tonight(1.3), "q5", later=(around(1.3, 5, np.random.default_rng(5)),))
        assert verdict(red, **self.THREE).value is Value.REGRESSION
        assert going_on(red, earlier(), rules(**self.THREE), 3) == []

    def test_a_query_that_was_not_measured_in_a_round_is_not_measured_in_the_next(self) -> None:
        """Its repetitions failed: they would fail again."""
        assert going_on(tonight(1.12), earlier(), rules(**self.THREE), 3) == []

    def test_pairs_of_a_round_that_would_not_have_been_measured_are_not_read(self) -> None:
        """Whatever they say."""
        wild = tuple(
            replace(x, later=(pairs([5.0] * 10),)) if x.query != "q5" else x
            for x in tonight(1.12, 1.10).measured
        )
        plain = judge_night(tonight(1.12, 1.10), earlier(), rules())
        assert judge_night(replace(night(), measured=wild), earlier(), rules()) == plain

    def test_what_a_night_judges_is_what_it_would_have_measured(self) -> None:
        rng = np.random.default_rng(5)
        for number in range(20):
            rows = tuple(Measured(q, CPU, noisy(1.0, 5, rng)) for q in QUERIES)
            some = MeasuredNight(f"n{number}", rows)
            named = going_on(some, earlier(), rules(), 2)
            on = tuple(replace(x, later=(noisy(1.0, 10, rng),)) for x in rows)
            judged = judge_night(replace(some, measured=on), earlier(), rules())
            assert [x.query for x in judged if x.fresh_pairs] == [q for q in QUERIES if q in named]

    def test_only_queries_with_ground_for_a_verdict_go_on(self) -> None:
        some = with_query(tonight(1.12), "q7", pairs=pairs([1.5] * 2))
        assert going_on(some, earlier(), rules(), 2) == ["q5"]
        assert going_on(replace(night(), measured=()), earlier(), rules(), 2) == []


class TestEarlierPairs:
    """Pairs by which earlier nights compared the same two builds."""

    def undecided(self) -> MeasuredNight:
        rng = np.random.default_rng(8)
        wide = with_query(night("first"), "q5", pairs=around(1.01, 5, rng, cv=0.12))
        builds = {x.query: "old" for x in wide.measured}
        return replace(wide, candidate="new", baseline=builds)

    def test_they_count_and_the_verdict_says_so(self) -> None:
        first = self.undecided()
        judged = replay([first, replace(first, name="second")], rules())
        values = [(x.value, x.reason) for night in judged for x in night if x.query == "q5"]
        assert values[0][0] is Value.UNDECIDED
        assert "in 10 pairs, 5 of them of earlier nights" in values[1][1]

    def test_what_a_person_compares_has_the_rules_of_a_comparison_in_replay(self) -> None:
        """A slowdown of 10 % is excluded here, and one of 5 % is not."""
        usual = with_query(night(), "q5", pairs=around(1.03, 5, np.random.default_rng(8)))
        for teaching, value in ((True, Value.OK), (False, Value.UNDECIDED)):
            (judged,) = replay([replace(usual, teaches=teaching)], rules())
            (of_q5,) = (each for each in judged if each.query == "q5")
            assert math.log1p(0.05) < math.log(of_q5.hi) < math.log1p(0.10)
            assert of_q5.value is value

    def test_they_decide_what_one_night_leaves_open(self) -> None:
        nights = [replace(self.undecided(), name=f"night {number}") for number in range(5)]
        values = [x.value for night in replay(nights, rules()) for x in night if x.query == "q5"]
        assert values[0] is Value.UNDECIDED
        assert Value.OK in values

    def test_a_query_that_is_measured_again_shares_the_error_with_all_of_its_first_night(
        self,
    ) -> None:
        """It was left open because it looked slow, so it needs more than a query alone does."""
        first, left = self.undecided(), LeftOpen()
        of_q5 = tuple(one for one in first.measured if one.query == "q5")
        again = replace(first, name="second", measured=of_q5)
        for some in (first, again):
            left.add(some, judge_night(left.added_to(some), [], rules()))
        third = left.added_to(replace(again, name="third"))
        assert third.family == 3 * len(QUERIES)  # each of three nights has tested all of them
        assert len(third.measured[0].before) == 10
        nothing = Past([], {"q5": CPU}, rules().mode)
        rounds = MeasuredRounds(third.measured, Grounds(third, rules()), nothing)
        shared = rules().false_reds / len(QUERIES) / 3
        assert rounds.decide().bounds.again.error == pytest.approx(shared)

    @pytest.mark.parametrize("other", [{"candidate": "newer"}, {"candidate": ""}])
    def test_pairs_of_other_builds_do_not_count(self, other: dict[str, str]) -> None:
        first = self.undecided()
        judged = replay([first, replace(first, name="second", **other)], rules())
        (second,) = (x for x in judged[1] if x.query == "q5")
        assert "earlier nights" not in second.reason

    def test_later_nights_learn_from_the_pairs_of_each_night_once(self) -> None:
        first = self.undecided()
        judged = replay([first, replace(first, name="second")], rules())
        of_q5 = [x for night in judged for x in night if x.query == "q5"]
        assert [x.pairs for x in of_q5] == [5, 5]
        assert of_q5[0].shift == of_q5[1].shift


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

    def test_only_the_metric_that_decides_makes_a_query_go_on(self) -> None:
        before = earlier(CALIBRATED, self.METRICS)
        assert going_on(self.both(1.0, 1.5), before, rules(), 2) == []
