"""The links of a chain of builds: added in logs with their variances, whatever way they lead."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import pytest

from nexmark.model import Value
from nexmark.verdict.baseline_chain import (
    Chain,
    Lineage,
    Link,
    SignedOffBuild,
    chain_of,
    is_creep,
    link_of,
    shared_noise,
    suite_chain,
)
from nexmark.verdict.verdict import Verdict
from tests.unit.verdict.gate_builder import CPU, rules


def links(*pairs: str, shift: float = 0.02, deviation: float = 0.01) -> list[Link]:
    """A night for each ``candidate<baseline``."""
    named = [pair.split("<") for pair in pairs]
    return [
        Link(f"n{i}", build, baseline, shift, deviation, f"2026-10-{i:02}")
        for i, (build, baseline) in enumerate(named, 1)
    ]


def chain(found: Chain | None) -> Chain:
    assert found is not None
    return found


def test_logs_and_variances_add_along_the_chain() -> None:
    found = chain(chain_of(links("b<a", "c<b", "d<c")))
    assert (found.since, found.day, found.accepted) == ("a", "2026-10-01", 2)
    assert found.shift == pytest.approx(0.06)
    assert found.deviation == pytest.approx(0.01 * math.sqrt(3))


def test_nights_of_the_same_link_count_by_their_inverse_variances() -> None:
    exact = Link("n", "b", "a", 0.01, 0.01)
    rough = Link("m", "b", "a", 0.05, 0.02)
    found = chain(chain_of([exact, rough]))
    assert found.shift == pytest.approx(0.8 * 0.01 + 0.2 * 0.05)
    assert found.deviation == pytest.approx(1 / math.sqrt(1 / 0.01**2 + 1 / 0.02**2))


def test_a_link_measured_the_other_way_round_is_the_same_link() -> None:
    back = Link("n2", "a", "b", -0.04, 0.01)
    found = chain(chain_of([*links("b<a"), back, *links("c<a")][:2] + links("c<b")))
    assert found.since == "a"
    assert found.shift == pytest.approx(0.03 + 0.02)


def test_two_ways_to_a_build_are_both_counted() -> None:
    both = [*links("b<a", "c<b"), Link("s", "c", "a", 0.01, 0.01, teaches=False)]
    found = chain(chain_of([*both, *links("d<c")]))
    assert found.shift == pytest.approx(
        (0.04 / 2 + 0.01) / 1.5 + 0.02
    )  # 0.02, 0.01: variances 2, 1
    assert found.deviation == pytest.approx(0.01 * math.sqrt(2 / 3 + 1))


def test_candidates_that_were_never_accepted_say_nothing() -> None:
    alone = chain(chain_of(links("b<a", "c<b")))
    others = chain(chain_of(links("x<a", "b<a", "y<b", "c<b")))
    assert (others.shift, others.deviation) == pytest.approx((alone.shift, alone.deviation))


@pytest.mark.parametrize(
    ("pairs", "since", "accepted"),
    [
        (["b<a", "c<b", "d<a"], "a", 0),
        (["b<a", "c<b", "d<c", "e<b"], "a", 1),
        (["b<a", "c<z", "d<c"], "z", 1),
        (["b<a", "c<b", "b<b"], "a", 1),
    ],
)
def test_the_accepted_builds_are_those_that_still_count(
    pairs: list[str], since: str, accepted: int
) -> None:
    found = chain(chain_of(links(*pairs)))
    assert (found.since, found.accepted) == (since, accepted)


def test_nothing_leads_from_a_build_to_itself() -> None:
    assert chain_of(links("a<a")) is None
    assert chain_of(links("b<a", "c<b"), SignedOffBuild("c", "x")) is None


def test_the_chain_begins_where_it_is_asked_to() -> None:
    some = links("b<a", "c<b", "d<c", "e<d")
    assert chain(chain_of(some, nights=2)).since == "c"
    assert chain(chain_of(some, nights=4)).since == "a"
    assert chain(chain_of(some, nights=9)).since == "a"
    assert chain(chain_of(some, day="2026-10-03")).since == "c"
    assert chain_of(some, day="2026-10-05") is None
    found = chain(chain_of(some, SignedOffBuild("b", "2026-10-02")))
    assert (found.since, found.signed_off, found.accepted) == ("b", True, 2)
    assert not chain(chain_of(some, SignedOffBuild("x", "2026-10-02"))).signed_off


def test_a_release_that_never_was_the_baseline_counts_what_was_accepted_after_it() -> None:
    some = links("b<a", "r<b", "c<b", "d<c", "e<d")
    found = chain(chain_of(some, SignedOffBuild("r", "day")))
    assert (found.since, found.accepted) == ("r", 2)
    assert found.shift == pytest.approx(0.02 * 3 - 0.02)


def test_it_is_said_in_words() -> None:
    names = {"a": "4.3.0 abc123"}
    made = Chain("a", "2026-10-01", math.log(1.34), 0.026, 24)
    said = "since 2026-10-01 (4.3.0 abc123): 34 % slower (27 % to 41 %), 24 accepted builds"
    assert made.words(names) == said
    signed = Chain("a", "2026-10-01", math.log(0.98), 0.02, 1, signed_off=True)
    assert signed.words(names) == (
        "since 4.3.0 abc123 was signed off on 2026-10-01: "
        "2.0 % faster (5.8 % faster to 1.9 % slower), 1 accepted build"
    )
    faster = Chain("a", "d", math.log(0.8), 0.02, 2)
    assert "20 % less (17 % to 23 %)" in faster.words({}, way=("more", "less"))


@pytest.mark.parametrize(
    ("shift", "deviation", "said"),
    [
        (0.0, 0.02, "0.0 % slower (3.8 % faster to 4.0 % slower), 3"),
        (0.98, 0.5, "166 % slower (0.0 % to 610 %), 3"),  # nothing of it is faster
        (-0.98, 0.5, "62 % faster (0.0 % to 86 %), 3"),
        (math.log(1.1), 0.0, "10 % slower (10 % to 10 %), 3"),
        (math.log(1.0994), 0.0, "9.9 % slower (9.9 % to 9.9 %), 3"),
    ],
)
def test_an_interval_names_both_ways_only_where_it_has_both(
    shift: float, deviation: float, said: str
) -> None:
    words = Chain("a", "d", shift, deviation, 2).words({}, accepted=3)
    assert words == f"since d (a): {said} accepted builds"


def test_nights_that_do_not_say_their_build_link_nothing() -> None:
    found = chain(chain_of([*links("<a", "<b"), *links("c<b")]))
    assert (found.since, found.shift) == ("b", pytest.approx(0.02))


def test_builds_that_all_were_measured_against_each_other_are_a_ring() -> None:
    ring = [*links("b<a", "c<b"), Link("s", "c", "a", 0.01, 0.01, teaches=False)]
    found = chain(chain_of([*ring, *links("c<b")], nights=9))
    assert found.since == "a"
    assert found.deviation == pytest.approx(0.01 / math.sqrt(1 + 1 / 1.5))


@pytest.mark.parametrize(
    ("shift", "deviation", "accepted", "said"),
    [
        (0.10, 0.03, 3, True),
        (0.10, 0.04, 3, False),
        (0.12, 0.04, 3, False),  # just three deviations
        (0.04, 0.001, 3, False),
        (0.10, 0.03, 0, False),
        (-0.10, 0.01, 3, False),
    ],
)
def test_a_creep_is_slower_by_what_matters_and_beyond_the_noise(
    shift: float, deviation: float, accepted: int, said: bool
) -> None:
    gate = rules(creep_z=3.0, creep_change=0.05)
    assert is_creep(Chain("a", "d", shift, deviation, accepted), gate) is said
    assert not is_creep(None, gate)


def verdict(shift: float, **changes: Any) -> Verdict:
    blank = Verdict("n", "q5", CPU, Value.OK, "", "paired", 8, baseline_build="a", build="b")
    known: dict[str, Any] = {"shift": shift, "spread": 0.02, "pairs": 5, "noise": 0.01}
    return replace(blank, **known | changes)


class TestLink:
    def test_a_night_counts_by_its_first_pairs(self) -> None:
        fresh = {"fresh_pairs": 10, "ratio": 1.1, "lo": 1.0, "hi": 1.2}
        assert link_of(verdict(0.029, **fresh)) == Link("n", "b", "a", 0.029, 0.01)

    @pytest.mark.parametrize("shift", [0.031, -0.031])
    def test_a_wild_night_counts_by_its_fresh_pairs(self, shift: float) -> None:
        fresh = {"ratio": 1.0, "lo": math.exp(-0.0196), "hi": math.exp(0.0196)}
        found = link_of(verdict(shift, fresh_pairs=10, **fresh))
        assert found is not None
        assert (found.shift, found.deviation) == pytest.approx((0.0, 0.01))
        for few in (0, 3):
            assert link_of(verdict(shift, fresh_pairs=few, **fresh)) == Link(
                "n", "b", "a", shift, 0.01
            )

    def test_a_night_of_just_three_deviations_is_not_wild(self) -> None:
        fresh = {"fresh_pairs": 10, "ratio": 1.0, "lo": 0.9, "hi": 1.1}
        assert link_of(verdict(0.03, **fresh)) == Link("n", "b", "a", 0.03, 0.01)

    @pytest.mark.parametrize(
        ("changes", "is_fresh"),
        [
            ({"fresh_pairs": 4}, True),
            ({"ratio": None}, False),
            ({"lo": None}, False),
            ({"hi": None}, False),
        ],
    )
    def test_four_fresh_pairs_with_their_interval_are_enough(
        self, changes: dict[str, Any], is_fresh: bool
    ) -> None:
        fresh = {"fresh_pairs": 10, "ratio": 1.0, "lo": 0.9, "hi": 1.1} | changes
        found = link_of(verdict(0.5, **fresh))
        assert found is not None
        assert found.shift == pytest.approx(0.0 if is_fresh else 0.5)

    def test_without_a_noise_its_pairs_tell_the_deviation(self) -> None:
        found, exact = (link_of(verdict(0.0, noise=None, spread=x)) for x in (0.02, 0.0))
        assert found is not None
        assert exact is not None
        assert found.deviation == pytest.approx(0.02 * math.sqrt(1.08 / 5))
        assert exact.deviation == 0.004
        one = link_of(verdict(0.0, noise=None, pairs=1))
        assert one is not None
        assert one.deviation == pytest.approx(0.02 * math.sqrt(1.08))

    @pytest.mark.parametrize("changes", [{"shift": None}, {"baseline_build": ""}, {"spread": None}])
    def test_what_was_not_compared_is_no_link(self, changes: dict[str, Any]) -> None:
        assert link_of(verdict(**{"shift": 0.0} | changes)) is None


class TestNightsThatDoNotNameTheirCandidate:
    def lineage(self, *nights: tuple[str, str, bool]) -> Lineage:
        """Nights with a name, a baseline, and whether they teach."""
        made = Lineage()
        for name, baseline, teaches in nights:
            one = verdict(0.02, night=name, baseline_build=baseline, build="")
            made.add([one], rules(), teaches)
        return made

    def test_a_new_baseline_is_the_candidate_of_the_night_before(self) -> None:
        made = self.lineage(("n1", "a", True), ("x", "z", False), ("n2", "b", True))
        found = chain(made.chain(verdict(0.02, night="n3", baseline_build="c", build=""), 90))
        assert (found.since, found.accepted) == ("a", 2)
        assert found.shift == pytest.approx(0.06)

    def test_a_night_without_the_query_is_a_gap(self) -> None:
        made = self.lineage(("n1", "a", True))
        made.add([verdict(0.0, night="n2", query="q0")], rules())
        found = chain(made.chain(verdict(0.02, night="n3", baseline_build="b", build=""), 90))
        assert found.since == "b"

    def test_a_first_night_is_a_chain_of_its_own_link(self) -> None:
        found = chain(Lineage().chain(verdict(0.02), 90))
        assert (found.since, found.accepted, found.shift) == ("a", 0, pytest.approx(0.02))

    def test_it_begins_in_the_last_nights_that_are_asked_for(self) -> None:
        made = self.lineage(("n1", "a", True), ("n2", "b", True))
        tonight = verdict(0.02, night="n3", baseline_build="c", build="")
        assert chain(made.chain(tonight, 3)).since == "a"
        assert chain(made.chain(tonight, 2)).since == "b"

    def test_a_night_without_any_verdict_is_no_gap(self) -> None:
        made = self.lineage(("n1", "a", True))
        made.add([], rules())
        found = chain(made.chain(verdict(0.02, night="n3", baseline_build="b", build=""), 90))
        assert found.since == "a"

    def test_an_earlier_baseline_is_no_candidate(self) -> None:
        made = self.lineage(("n1", "a", True), ("n2", "b", True), ("n3", "a", True))
        found = chain(made.chain(verdict(0.02, night="n4", baseline_build="a", build=""), 90))
        assert (found.since, found.accepted) == ("a", 0)
        assert found.shift == pytest.approx(0.02)


class TestSuite:
    def test_it_is_the_mean_of_the_queries_since_the_commonest_build(self) -> None:
        chains = [Chain("a", "d", 0.1, 0.03, 2), Chain("a", "d", 0.2, 0.04, 3)]
        found = chain(suite_chain([*chains, Chain("b", "d", 9.0, 0.1, 1)]))
        assert (found.shift, found.deviation) == pytest.approx((0.15, 0.025))
        assert (found.since, found.accepted) == ("a", 3)
        assert suite_chain([]) is None

    def test_what_queries_have_in_common_widens_it(self) -> None:
        assert shared_noise(0.01, [0.01] * 4) == pytest.approx(2.0)
        assert shared_noise(0.001, [0.01] * 4) == 1.0
        assert shared_noise(None, [0.01]) == 1.0
        made = chain(suite_chain([Chain("a", "d", 0.1, 0.03, 2)], 2.0))
        assert made.deviation == pytest.approx(0.06)
