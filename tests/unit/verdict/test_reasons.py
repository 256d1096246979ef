"""What the verdicts of a night in pairs say, in the words that a person reads."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from nexmark.model import SUITE, Value
from nexmark.verdict.measured_night import Measured, MeasuredNight
from nexmark.verdict.nightly import judge_night, replay, suspects
from nexmark.verdict.verdict import Verdict
from tests.unit.verdict.gate_builder import (
    CALIBRATED,
    CPU,
    around,
    earlier,
    night,
    pairs,
    quiet_nights,
    rules,
    tonight,
    verdict,
    with_query,
)

WALL = "wall_s"
WAITS = ", CPU time is not: it waits for something"


def informed(metric: str, ratio: float, cpu: MeasuredNight) -> Verdict:
    """The verdict on q5 of a metric that informs, beside the deciding one of `cpu`."""
    rng = np.random.default_rng(4)
    rows = tuple(
        Measured(x.query, metric, around(ratio if x.query == "q5" else 1.0, 5, rng))
        for x in night().measured
    )
    both = replace(cpu, measured=(*cpu.measured, *rows))
    return verdict(both, metric=metric, before=earlier(CALIBRATED, (CPU, metric)))


class TestInforming:
    @pytest.mark.parametrize(
        ("ratio", "cpu", "value", "said", "further"),
        [
            (1.5, tonight(1.0), Value.WATCH, "more: ratio 1.500 (", WAITS),
            (1.5, tonight(1.12, 1.0), Value.WATCH, "more: ratio 1.500 (", WAITS),
            (1.5, tonight(0.7, 0.7), Value.WATCH, "more: ratio 1.500 (", WAITS),
            (1.5, tonight(1.5, 1.5), Value.WATCH, "more: ratio 1.500 (", ""),
            (1.5, tonight(1.5), Value.WATCH, "more: ratio 1.500 (", ""),
            (0.6, tonight(1.0), Value.FASTER, "less: ratio 0.600 (", ""),
            (1.0, tonight(1.0), Value.OK, "ratio 1.000 (", ", {0.mde:.1%} could be seen"),
        ],
    )
    def test_it_says_more_or_less_and_whether_cpu_time_is_the_cause(
        self, ratio: float, cpu: MeasuredNight, value: Value, said: str, further: str
    ) -> None:
        found = informed(WALL, ratio, cpu)
        assert found.value is value
        assert found.reason.startswith(said)
        assert found.reason.partition(")")[2] == further.format(found)
        assert found.ratio == pytest.approx(ratio)

    def test_a_change_needs_its_own_size_and_its_own_noise(self) -> None:
        assert informed(WALL, 1.02, tonight(1.0)).value is Value.OK
        found = informed(WALL, 1.0, tonight(1.0))
        assert found.noise is not None
        assert found.mde == pytest.approx(
            math.exp(max(3.5 * found.noise, math.log(1.03)) + 0.84 * found.noise) - 1
        )

    def test_without_history_it_calibrates(self) -> None:
        some = informed(WALL, 1.5, tonight(1.0))
        assert some.value is Value.WATCH
        rows = tuple(replace(x, metric=WALL) for x in tonight(1.5).measured)
        both = replace(night(), measured=(*night().measured, *rows))
        found = verdict(both, metric=WALL, before=())
        assert (found.value, found.decides) == (Value.CALIBRATING, False)
        assert found.reason.startswith("0 of 10 nights to learn the noise from; ratio 1.500 (")


class TestSuspects:
    @pytest.mark.parametrize(
        ("some", "said"),
        [
            (tonight(1.12), "slower? ratio 1.120 ("),
            (tonight(0.88), "faster? ratio 0.880 ("),
            (tonight(1.12, 1.0), "not slower: ratio 1.000 ("),
            (tonight(0.88, 1.0), "not faster: ratio 1.000 ("),
            (tonight(1.12, 1.0, fresh_count=6), "slower? ratio 1.000 ("),
        ],
    )
    def test_a_reason_begins_with_what_was_found(self, some: MeasuredNight, said: str) -> None:
        assert verdict(some).reason.startswith(said)

    def test_a_change_that_is_confirmed_is_slower_or_faster(self) -> None:
        slower, faster = verdict(tonight(1.12, 1.12)), verdict(tonight(0.88, 0.88))
        assert slower.reason.startswith("slower: ratio 1.120 (")
        assert faster.reason.startswith("faster: ratio 0.880 (")

    @pytest.mark.parametrize(
        ("count", "said"),
        [
            (3, "; 3 of 10 fresh pairs: not confirmed, not cleared"),
            (7, " in 7 of 10 fresh pairs, after ratio 1.120 ("),
            (10, " in 10 fresh pairs, after ratio 1.120 ("),
            (12, " in 12 fresh pairs, after ratio 1.120 ("),
        ],
    )
    def test_it_says_how_many_fresh_pairs_there_were(self, count: int, said: str) -> None:
        assert said in verdict(tonight(1.12, 1.0, fresh_count=count)).reason

    def test_four_fresh_pairs_are_enough_to_confirm(self) -> None:
        found = verdict(tonight(1.12, 1.12, fresh_count=4))
        assert found.value is Value.REGRESSION
        assert " in 4 of 10 fresh pairs, after ratio 1.120 (" in found.reason

    def test_a_suspect_that_is_not_cleared_says_how_many_pairs_clear_it(self) -> None:
        found = verdict(tonight(1.12, 1.0, fresh_count=6))
        assert found.reason.endswith(": 8 fresh pairs are needed to clear it")

    def test_fresh_pairs_are_asked_for_by_the_pairs_that_the_night_asked_for(self) -> None:
        some = with_query(night(), "q5", pairs=pairs([1.12] * 4))
        assert "0 of 8 fresh pairs" in verdict(some).reason
        assert "0 of 12 fresh pairs" in verdict(replace(some, asked=6)).reason
        assert "0 of 8 fresh pairs" in verdict(replace(some, asked=3)).reason

    def test_only_queries_with_grounds_are_suspects(self) -> None:
        some = with_query(tonight(1.12), "q7", pairs=pairs([1.5] * 2))
        assert suspects(some, earlier(), rules()) == ["q5"]
        assert suspects(replace(night(), measured=()), earlier(), rules()) == []


class TestDrift:
    def drifting(self, sums: tuple[float, float], some: MeasuredNight) -> Verdict:
        """After nights whose sums of q5 were these."""
        last = [
            replace(x, drift_slower=sums[0], drift_faster=sums[1]) if x.query == "q5" else x
            for x in earlier()[-1]
        ]
        return verdict(some, before=(*earlier()[:-1], last))

    @pytest.mark.parametrize(
        ("sums", "said"),
        [
            ((7.0, 0.0), "drifting slower over the last nights (CUSUM 6.5); tonight ratio 1.000 ("),
            ((0.0, 7.0), "drifting faster over the last nights (CUSUM 6.5); tonight ratio 1.000 ("),
        ],
    )
    def test_a_drift_is_watched_and_says_its_way(
        self, sums: tuple[float, float], said: str
    ) -> None:
        found = self.drifting(sums, tonight(1.0))
        assert found.value is Value.WATCH
        assert found.reason.startswith(said)

    def test_no_drift_is_not_watched(self) -> None:
        found = self.drifting((4.0, 0.0), tonight(1.0))
        assert found.value is Value.OK
        assert found.drift_slower == pytest.approx(3.5)
        assert found.reason.endswith("could be seen")

    def test_a_suspect_that_is_cleared_is_watched_for_its_drift(self) -> None:
        found = self.drifting((7.0, 0.0), tonight(1.12, 1.0))
        assert found.value is Value.WATCH
        assert "; tonight not slower: ratio 1.000 (" in found.reason
        assert found.reason.startswith("drifting slower")


class TestNumbers:
    def test_a_quiet_verdict_says_what_could_be_seen(self) -> None:
        found = verdict(tonight(1.0))
        assert found.reason == (
            f"ratio 1.000 ({found.lo:.3f} to {found.hi:.3f}), {found.mde:.1%} could be seen"
        )

    def test_the_interval_is_1_96_deviations_to_each_side(self) -> None:
        found = verdict(tonight(1.01))
        assert found.noise is not None
        assert found.lo == pytest.approx(1.01 * math.exp(-1.96 * found.noise))
        assert found.hi == pytest.approx(1.01 * math.exp(1.96 * found.noise))

    def test_queries_come_in_the_order_that_was_expected_and_the_suite_last(self) -> None:
        names = [x.query for x in night().measured]
        expected = ("q7", "q99", *(x for x in names if x != "q7"))
        some = replace(night(), expected=expected, invalid={"q98": "wrong"}, missing={"q97": "-"})
        found = judge_night(some, earlier(), rules())
        assert [x.query for x in found] == [*expected, "q98", "q97", SUITE]
        assert [x.value for x in found if x.query in ("q97", "q98", "q99")] == [
            Value.MISSING,
            Value.INVALID,
            Value.MISSING,
        ]


class TestSuite:
    def changed(self, ratio: float, **options: float) -> Verdict:
        rng = np.random.default_rng(31)
        rows = tuple(Measured(x.query, CPU, around(ratio, 5, rng)) for x in night().measured)
        return verdict(MeasuredNight("tonight", rows), SUITE, **options)

    @pytest.mark.parametrize(
        ("ratio", "value", "said"),
        [
            (1.013, Value.REGRESSION, "the geometric mean of 12 queries is slower: ratio 1.013 ("),
            (1 / 1.013, Value.FASTER, "the geometric mean of 12 queries is faster: ratio 0.987 ("),
            (1.0, Value.OK, "geometric mean of 12 queries: ratio 1.000 ("),
        ],
    )
    def test_its_reason_says_of_how_many_queries_it_is(
        self, ratio: float, value: Value, said: str
    ) -> None:
        found = self.changed(ratio)
        assert (found.value, found.pairs) == (value, 12)
        assert found.reason.startswith(said)

    def test_the_smallest_change_it_sees_is_its_bound_and_0_84_deviations(self) -> None:
        found = self.changed(1.0)
        assert found.noise is not None
        assert found.mde == pytest.approx(math.exp((rules().suite_z + 0.84) * found.noise) - 1)

    def test_it_needs_enough_queries_that_are_calibrated(self) -> None:
        found = judge_night(night(), earlier(), rules(suite_queries=12))
        assert SUITE in {x.query for x in found}
        found = judge_night(night(), earlier(), rules(suite_queries=13))
        assert SUITE not in {x.query for x in found}

    def test_only_nights_that_teach_are_history(self) -> None:
        nights = [replace(x, teaches=False) for x in quiet_nights(CALIBRATED)]
        judged = replay([*nights, tonight(1.0)], rules())
        assert {x.value for x in judged[-1]} == {Value.CALIBRATING}
