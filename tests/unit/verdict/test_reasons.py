"""What the verdicts of a night in pairs say, in the words that a person reads."""

from __future__ import annotations

import math
import re
from dataclasses import replace

import numpy as np
import pytest

from nexmark.model import SUITE, Value
from nexmark.verdict.measured_night import Measured, MeasuredNight
from nexmark.verdict.nightly import judge_night, replay
from nexmark.verdict.verdict import Verdict
from tests.unit.verdict.gate_builder import (
    CALIBRATED,
    CPU,
    around,
    earlier,
    night,
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

    def test_it_informs_from_the_first_night_on(self) -> None:
        rows = tuple(replace(x, metric=WALL) for x in tonight(1.5).measured)
        both = replace(night(), measured=(*night().measured, *rows))
        found = verdict(both, metric=WALL, before=())
        assert (found.value, found.decides) == (Value.WATCH, False)


class TestRounds:
    @pytest.mark.parametrize(
        ("some", "said"),
        [
            (tonight(1.12), "slower? ratio 1.120 ("),
            (tonight(0.88), "faster? ratio 0.880 ("),
            (tonight(1.12, 1.12), "slower: ratio 1.120 ("),
            (tonight(0.88, 0.88), "faster: ratio 0.880 ("),
            (tonight(1.0), "ratio 1.000 ("),
        ],
    )
    def test_a_reason_begins_with_what_was_found(self, some: MeasuredNight, said: str) -> None:
        assert verdict(some).reason.startswith(said)

    @pytest.mark.parametrize(
        ("count", "said"),
        [
            (3, " in 8 pairs, 3 of them after the first round; 4 have to show it"),
            (4, " in 9 pairs, 4 of them after the first round"),
            (10, " in 15 pairs, 10 of them after the first round"),
        ],
    )
    def test_it_says_how_many_pairs_there_were(self, count: int, said: str) -> None:
        assert verdict(tonight(1.12, 1.12, fresh_count=count)).reason.endswith(said)

    @pytest.mark.parametrize(
        ("ratio", "said"),
        [
            (1.03, r"between [0-9.]+ % faster and [0-9.]+ % slower in 5 pairs; "),
            (1.20, r"between [0-9.]+ % and [0-9.]+ % slower in 5 pairs; "),
        ],
    )
    def test_what_is_undecided_is_said_in_words_with_what_would_decide_it(
        self, ratio: float, said: str
    ) -> None:
        cv = 0.10
        wide = with_query(night(), "q5", pairs=around(ratio, 5, np.random.default_rng(2), cv=cv))
        found = verdict(wide)
        assert found.value is Value.UNDECIDED
        assert re.fullmatch(said + r"\d+ more pairs would decide 10 %", found.reason)

    def test_at_least_the_pairs_that_the_next_run_has_would_decide_it(self) -> None:
        """Two would be enough for this query, and no run has fewer than three."""
        wide = around(1.03, 5, np.random.default_rng(2), cv=0.068)
        found = verdict(with_query(night(), "q5", pairs=wide))
        assert found.reason.endswith("; 3 more pairs would decide 10 %")
        assert found.further_pairs == 3

    def test_what_is_excluded_is_said(self) -> None:
        found = verdict(tonight(1.0))
        assert found.reason == (
            f"ratio 1.000 ({found.lo:.3f} to {found.hi:.3f}) in 5 pairs; "
            "a slowdown of 10 % is excluded"
        )


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
            ((7.0, 0.0), "a little slower night after night (drift 6.5); tonight ratio 1.000 ("),
            ((0.0, 7.0), "a little faster night after night (drift 6.5); tonight ratio 1.000 ("),
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
        assert found.reason.endswith("a slowdown of 10 % is excluded")

    def test_a_change_is_no_drift(self) -> None:
        assert self.drifting((7.0, 0.0), tonight(1.2, 1.2)).value is Value.REGRESSION


class TestNumbers:
    def test_the_interval_is_as_wide_on_both_sides(self) -> None:
        found = verdict(tonight(1.01))
        assert None not in (found.lo, found.hi)
        assert math.log((found.hi or 0) / 1.01) == pytest.approx(math.log(1.01 / (found.lo or 1)))

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

    def test_it_needs_enough_queries(self) -> None:
        found = judge_night(night(), earlier(), rules(suite_queries=12))
        assert SUITE in {x.query for x in found}
        found = judge_night(night(), earlier(), rules(suite_queries=13))
        assert SUITE not in {x.query for x in found}

    def test_only_nights_that_teach_are_history(self) -> None:
        nights = [replace(x, teaches=False) for x in quiet_nights(CALIBRATED)]
        judged = replay([*nights, tonight(1.0)], rules())
        assert judged[-1] == judge_night(tonight(1.0), (), rules())
