"""The CPU time of tasks decides; all CPU time of the executors is its guardrail."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from nexmark.model import CPU, SUITE, TASK_CPU, Value
from nexmark.verdict.measured_night import Measured, MeasuredNight, Pair
from nexmark.verdict.nightly import going_on, judge_night, replay
from nexmark.verdict.noise import Past
from nexmark.verdict.verdict import Verdict
from tests.unit.verdict.gate_builder import QUERIES, around, rules

RULES = rules(metric=TASK_CPU)
CV = {TASK_CPU: 0.02, CPU: 0.05}


def night(
    name: str = "tonight",
    ratio: float = 1.0,
    seed: int = 999,
    later: int = 0,
    cpu: tuple[float, ...] = (1.0, 1.0),
) -> MeasuredNight:
    """A quiet night with both metrics.

    Args:
        name: Of the night.
        ratio: By the CPU time of tasks, of q5.
        seed: Of the noise.
        later: The pairs of q5 after the first round.
        cpu: By all CPU time, of q5 in the first round and in later ones.
    """
    rng = np.random.default_rng(seed)
    first, after = cpu
    measured = []
    for query in QUERIES:
        for metric, ratios in ((TASK_CPU, (ratio, ratio)), (CPU, (first, after))):
            of_first, of_later = ratios if query == "q5" else (1.0, 1.0)
            pairs = around(of_first, 5, rng, cv=CV[metric])
            more = (around(of_later, later, rng, cv=CV[metric]),) if later and query == "q5" else ()
            measured.append(Measured(query, metric, pairs, more))
    return MeasuredNight(name, tuple(measured))


def quiet(count: int = 15) -> list[list[Verdict]]:
    """The verdicts of nights with nothing but noise."""
    return replay([night(f"n{number}", seed=number) for number in range(count)], RULES)


EARLIER = quiet()


def of_q5(some: MeasuredNight) -> dict[str, Verdict]:
    """The verdicts on q5 by metric."""
    verdicts = judge_night(some, EARLIER, RULES)
    return {verdict.metric: verdict for verdict in verdicts if verdict.query == "q5"}


def with_metrics(some: MeasuredNight, keep: dict[str, int | None]) -> MeasuredNight:
    """The night in which q5 has only the first pairs of a metric: all for None, no metric for 0."""
    measured = [
        replace(one, pairs=one.pairs[: keep.get(one.metric)]) if one.query == "q5" else one
        for one in some.measured
    ]
    return replace(some, measured=tuple(one for one in measured if one.pairs))


def test_the_cpu_time_of_tasks_decides_every_query_and_the_suite() -> None:
    """All CPU time informs."""
    verdicts = judge_night(night(), EARLIER, RULES)
    deciding = {verdict.query: verdict.metric for verdict in verdicts if verdict.decides}
    assert deciding == dict.fromkeys((*QUERIES, SUITE), TASK_CPU)


@pytest.mark.parametrize("pairs", [0, 4])
def test_a_query_without_it_in_every_pair_is_decided_by_all_cpu_time(pairs: int) -> None:
    """Both arms of a query are compared by the same metric; the other queries keep theirs."""
    some = with_metrics(night(), {TASK_CPU: pairs})
    verdicts = judge_night(some, EARLIER, RULES)
    deciding = {verdict.query: verdict.metric for verdict in verdicts if verdict.decides}
    assert deciding == dict.fromkeys((*QUERIES, SUITE), TASK_CPU) | {"q5": CPU}


def test_a_night_of_before_is_decided_by_all_cpu_time() -> None:
    """It has nothing else."""
    some = night()
    some = replace(some, measured=tuple(one for one in some.measured if one.metric == CPU))
    verdicts = judge_night(some, EARLIER, RULES)
    assert {verdict.metric for verdict in verdicts if verdict.decides} == {CPU}
    assert verdicts == judge_night(some, EARLIER, RULES.model_copy(update={"metric": CPU}))


def test_a_slowdown_that_only_all_cpu_time_shows_is_measured_on() -> None:
    """The CPU time of tasks is decided after the first round."""
    assert going_on(night(), EARLIER, RULES, 2) == []
    assert going_on(night(cpu=(1.2, 1.0)), EARLIER, RULES, 2) == ["q5"]


def test_later_pairs_confirm_it_and_all_cpu_time_decides() -> None:
    """The row of the tasks informs then: one row decides a query."""
    found = of_q5(night(later=10, cpu=(1.2, 1.2)))
    assert (found[CPU].value, found[CPU].decides, found[CPU].red) == (Value.REGRESSION, True, True)
    assert "the CPU time of tasks is OK: garbage collection" in found[CPU].reason
    assert (found[TASK_CPU].value, found[TASK_CPU].decides) == (Value.OK, False)


@pytest.mark.parametrize(
    ("later", "cpu", "value"),
    [
        (0, (1.2, 1.2), Value.WATCH),  # nothing was measured on
        (10, (1.2, 1.0), Value.OK),  # later pairs do not show it
        (10, (1.05, 1.05), Value.OK),  # it does not matter
    ],
)
def test_what_is_not_confirmed_or_does_not_matter_only_informs(
    later: int, cpu: tuple[float, float], value: Value
) -> None:
    """The night stays green."""
    found = of_q5(night(later=later, cpu=cpu))
    assert (found[CPU].value, found[CPU].decides) == (value, False)
    assert found[TASK_CPU].decides
    assert not found[TASK_CPU].red


def test_a_slowdown_of_the_tasks_is_decided_by_the_tasks() -> None:
    """All CPU time shows it, too, and stays a row that informs."""
    found = of_q5(night(ratio=1.2, later=10, cpu=(1.2, 1.2)))
    assert (found[TASK_CPU].value, found[TASK_CPU].decides) == (Value.REGRESSION, True)
    assert (found[CPU].value, found[CPU].decides) == (Value.WATCH, False)


def test_a_slowdown_that_the_tasks_have_shown_is_not_measured_on() -> None:
    """All CPU time would need more pairs, and the query is red without them."""
    three = rules(metric=TASK_CPU, rounds=(5, 5, 10), pursue_z=(1.4, 1.4))
    slower = night(ratio=1.2, later=5, cpu=(1.08, 1.08))
    assert going_on(night(later=5, cpu=(1.08, 1.08)), EARLIER, three, 3) == ["q5"]
    assert going_on(slower, EARLIER, three, 2) == ["q5"]
    assert going_on(slower, EARLIER, three, 3) == []


def test_the_guardrail_reads_only_rounds_that_would_have_been_measured() -> None:
    """Pairs of a round that nothing asked for are not read by any metric."""
    found = of_q5(night(later=10, cpu=(1.0, 1.5)))
    assert found[CPU].fresh_pairs == found[TASK_CPU].fresh_pairs == 0


def test_a_night_in_which_all_cpu_time_was_slower_teaches_no_noise_of_it() -> None:
    """The change was confirmed, whichever metric confirmed it."""
    slower = judge_night(night("slower", ratio=1.2, later=10, cpu=(1.3, 1.3)), EARLIER, RULES)
    for metric in (TASK_CPU, CPU):
        known, more = (
            Past(earlier, {"q5": metric}, RULES.mode).history(["q5"], {}, RULES.history_nights)
            for earlier in (EARLIER, [*EARLIER, slower])
        )
        assert np.array_equal(known.shift, more.shift, equal_nan=True)


def test_pairs_of_one_arm_are_no_pairs() -> None:
    """A figure of the candidate alone does not let the metric decide."""
    some = night()
    alone = [
        replace(one, pairs=tuple(Pair(pair.number, pair.candidate, None) for pair in one.pairs))
        if (one.query, one.metric) == ("q5", TASK_CPU)
        else one
        for one in some.measured
    ]
    found = of_q5(replace(some, measured=tuple(alone)))
    assert found[CPU].decides
    assert not found[TASK_CPU].decides
