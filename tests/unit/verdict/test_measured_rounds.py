"""Which rounds of a night are read: what the gate would have measured, on a host that held."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from nexmark.model import Value, round_group
from nexmark.verdict.eligibility import Grounds
from nexmark.verdict.measured_night import Canary, MeasuredNight, Pair
from nexmark.verdict.measured_rounds import MeasuredRounds
from nexmark.verdict.nightly import going_on
from nexmark.verdict.noise import Past
from tests.unit.verdict.gate_builder import (
    around,
    earlier,
    night,
    pairs,
    rules,
    verdict,
    with_query,
)

OPTIONS = {"rounds": (5, 5, 5, 5), "pursue_z": (1.4, 1.4, 1.4)}
RULES = rules(**OPTIONS)
WILD = pairs([5.0] * 5)
"""What must not be read."""
BROKEN = "before and after are 70.0% apart, more than 50%"


def of_q5(first: Sequence[Pair], *later: Sequence[Pair]) -> MeasuredNight:
    """A quiet night in which q5 has these rounds, with a steady canary around every query."""
    some = with_query(night(), "q5", pairs=tuple(first), later=tuple(map(tuple, later)))
    groups = {one.query: one.query for one in some.measured}
    steady = tuple(Canary("cpu_s", (1.0,), (1.0,), group=one) for one in groups)
    return replace(some, canary=steady, groups=groups)


def broke_in(some: MeasuredNight, number: int) -> MeasuredNight:
    """The night with a host that broke in this round."""
    broken = Canary("cpu_s", (1.0,), (1.7,), group=round_group(number))
    return replace(some, canary=(*some.canary, broken))


def slower(ratio: float, cv: float = 0.02) -> tuple[Pair, ...]:
    """Five pairs of this ratio."""
    return around(ratio, 5, np.random.default_rng(3), cv=cv)


def rounds_read(some: MeasuredNight) -> int:
    """How many rounds of q5 the gate reads."""
    grounds = Grounds(some, RULES)
    past = Past(earlier(), {one.query: one.metric for one in some.measured}, RULES.mode)
    rounds = MeasuredRounds(some.measured, grounds, past)
    rounds.decide()
    return rounds.read[[one.query for one in some.measured].index("q5")]


class TestWhatIsRead:
    @pytest.mark.parametrize(
        ("later", "read"),
        [
            ([], 1),
            ([slower(1.12)], 2),
            ([slower(1.12), WILD], 2),  # red after the second round
            ([(), WILD], 1),  # not measured in the second
        ],
    )
    def test_a_round_is_read_up_to_the_one_that_decides(
        self, later: list[tuple[Pair, ...]], read: int
    ) -> None:
        assert rounds_read(of_q5(slower(1.12), *later)) == read

    def test_a_query_without_a_change_is_read_once(self) -> None:
        assert rounds_read(of_q5(slower(1.0), WILD)) == 1

    def test_a_query_that_is_undecided_is_read_to_the_end(self) -> None:
        wide = slower(1.02, cv=0.3)
        assert rounds_read(of_q5(wide, wide, wide, wide)) == 4

    def test_what_comes_after_the_round_that_decides_changes_nothing(self) -> None:
        red = verdict(of_q5(slower(1.12), slower(1.12)), **OPTIONS)
        assert red.value is Value.REGRESSION
        assert verdict(of_q5(slower(1.12), slower(1.12), pairs([0.2] * 5)), **OPTIONS) == red

    def test_an_undecided_query_goes_on_to_its_fourth_round_and_a_red_one_stops(self) -> None:
        wide = slower(1.02, cv=0.3)
        assert going_on(of_q5(wide, wide, wide), earlier(), RULES, 4) == ["q5"]
        assert going_on(of_q5(slower(1.12), slower(1.12)), earlier(), RULES, 3) == []


class TestBrokenHost:
    def test_rounds_before_the_one_in_which_the_host_broke_count(self) -> None:
        """And its own pairs do not."""
        wide = slower(1.02, cv=0.3)
        two = verdict(of_q5(wide, wide), **OPTIONS)
        found = verdict(broke_in(of_q5(wide, wide, WILD), 3), **OPTIONS)
        assert rounds_read(broke_in(of_q5(wide, wide, WILD), 3)) == 2
        assert (found.value, found.red) == (Value.UNDECIDED, False)
        assert (found.ratio, found.lo, found.hi) == (two.ratio, two.lo, two.hi)
        assert (found.pairs, found.fresh_pairs) == (5, 5)
        assert found.reason == (
            f"{two.reason}; the pairs of round 3 say nothing: canary cpu_s: {BROKEN}"
        )

    def test_what_looks_slower_stays_a_suspect_with_the_reason(self) -> None:
        found = verdict(broke_in(of_q5(slower(1.12), slower(1.12)), 2), **OPTIONS)
        assert (found.value, found.red, found.fresh_pairs) == (Value.SUSPECT, True, 0)
        assert found.reason.endswith(f"; the pairs of round 2 say nothing: canary cpu_s: {BROKEN}")

    def test_a_query_that_was_decided_before_says_nothing_of_the_host(self) -> None:
        some = of_q5(slower(1.12), slower(1.12), WILD)
        assert verdict(broke_in(some, 3), **OPTIONS) == verdict(some, **OPTIONS)

    def test_the_next_round_is_measured_where_this_one_was_lost(self) -> None:
        some = broke_in(of_q5(slower(1.12), slower(1.12)), 2)
        assert going_on(some, earlier(), RULES, 2) == ["q5"]
        assert going_on(some, earlier(), RULES, 3) == ["q5"]

    def test_the_round_after_the_lost_one_decides(self) -> None:
        some = broke_in(of_q5(slower(1.12), WILD, slower(1.12)), 2)
        found, usual = (
            verdict(each, **OPTIONS) for each in (some, of_q5(slower(1.12), slower(1.12)))
        )
        assert rounds_read(some) == 3
        assert (found.value, found.fresh_pairs) == (Value.REGRESSION, usual.fresh_pairs)
        assert (found.candidate, found.ratio) == (usual.candidate, usual.ratio)
