"""Growth of a soak night: what is shown twice is red, with what it is made up of."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest

from nexmark.config import Gate, load
from nexmark.model import (
    BATCH_CPU,
    BATCH_CPU_GROWTH,
    GROWTH,
    HEAP_GROWTH,
    THREAD_GROWTH,
    Value,
)
from nexmark.verdict.growth import (
    LineOfPair,
    LineOverPairs,
    Slope,
    figures_of,
    growth_of,
    lines_of,
)
from nexmark.verdict.measured_night import Aged, Canary, Measured, MeasuredNight, Pair
from nexmark.verdict.nightly import going_on, judge_night
from nexmark.verdict.verdict import Verdict

WARMUP, EVERY, SAMPLES = 300, 100, 20
Samples = list[dict[str, Any]]


@pytest.fixture(scope="module")
def rules() -> Gate:
    return load().gate.model_copy(update={"metric": GROWTH})


def repetition(
    draws: random.Random,
    *,
    heap: float = 0.0,
    threads: float = 0.0,
    files: float = 0.0,
    cpu_percent: float = 0.0,
    steps: Callable[[int], float] = lambda _: 0.0,
) -> Samples:
    """A repetition whose driver grows by so much in 1,000 batches; its noise is as measured."""
    samples, cpu_s = [], 0.0
    for number in range(1, SAMPLES + 1):
        batch = number * EVERY
        cpu_s += EVERY * 0.1 * (1 + cpu_percent / 100 * batch / 1000) * draws.gauss(1, 0.01)
        filling = min(batch, WARMUP) / WARMUP
        grown = heap * 1e6 * batch / 1000 + steps(batch)
        driver = {
            "role": "driver",
            "name": "driver",
            "heap_bytes": 60e6 + 20e6 * filling + grown + draws.gauss(0, 0.2e6),
            "classes": {"byte[]": 3e7, "org.example.Kept": grown},
            "threads": 280 + int(threads * batch / 1000) + draws.randint(0, 2),
            "thread_names": {"task": 280, "leaked": int(threads * batch / 1000)},
            "open_files": 300 + int(files * batch / 1000) + draws.randint(0, 1),
            "file_places": {"socket": 300, "/data/logs": int(files * batch / 1000)},
            "metaspace_bytes": 1e8,
            "code_cache_bytes": 5e7,
            "other_memory_bytes": None,
            "outside_heap_bytes": 3e8,
            "cpu_s": [cpu_s, cpu_s],
        }
        executor = driver | {
            "role": "executor",
            "name": "executor 0",
            "heap_bytes": 40e6 + draws.gauss(0, 0.2e6),
            "threads": 90,
            "open_files": 100,
            "cpu_s": [0.0, 0.0],
        }
        samples.append(
            {
                "batch": batch,
                "dropped": 0,
                "processes": [driver, executor],
                "directories": {"checkpoint": [200, 60_000]},
            }
        )
    return samples


def judged(rules: Gate, pairs: Sequence[tuple[Samples | None, Samples | None]]) -> Verdict:
    (verdict,) = judge_night(night(pairs), [], rules)
    return verdict


def night(pairs: Sequence[tuple[Samples | None, Samples | None]]) -> MeasuredNight:
    aged = tuple(Aged(place, 1, *pair) for place, pair in enumerate(pairs, 1))
    return MeasuredNight(
        "night",
        (),
        expected=("q5",),
        baseline={"q5": "b"},
        aged={"q5": aged},
        warmup=WARMUP,
    )


def pair(
    draws: random.Random, leak: Mapping[str, Any], both: Mapping[str, Any] | None = None
) -> tuple[Samples, Samples]:
    return repetition(draws, **{**(both or {}), **leak}), repetition(draws, **(both or {}))


@pytest.mark.parametrize(
    ("leak", "named"),
    [
        ({"heap": 6.0}, ["live heap of the driver", "org.example.Kept", "MB"]),
        ({"threads": 10.0}, ["threads of the driver", "leaked"]),
        ({"files": 10.0}, ["open files of the driver", "/data/logs"]),
        ({"cpu_percent": 8.0}, ["CPU time of a batch", "%"]),
    ],
)
def test_what_grows_in_two_pairs_is_a_regression_by_name(
    rules: Gate, leak: Mapping[str, float], named: Sequence[str]
) -> None:
    draws = random.Random(1)
    once = judged(rules, [pair(draws, leak)])
    assert (once.value, once.bad) == (Value.SUSPECT, True)
    assert "a second pair has to show it" in once.reason
    twice = judged(rules, [pair(draws, leak), pair(draws, leak)])
    assert (twice.value, twice.metric, twice.decides) == (Value.REGRESSION, GROWTH, True)
    assert [word for word in named if word not in twice.reason] == []
    assert (twice.candidate or 0) > 2 > (twice.baseline or 0)


def test_what_one_pair_shows_alone_is_not_red(rules: Gate) -> None:
    draws = random.Random(2)
    verdict = judged(rules, [pair(draws, {"heap": 6.0}), pair(draws, {}), pair(draws, {})])
    assert not verdict.bad


@pytest.mark.parametrize(
    ("second", "refuted"), [(Slope(1.0, -1.5, 3.5), True), (Slope(4.4, 1.9, 6.9), False)]
)
def test_a_growth_that_one_noisy_pair_shows_stays_if_both_together_show_it(
    second: Slope, refuted: bool
) -> None:
    """Neither pair alone excludes a growth above the limit of 2."""
    line = lines_of(repetition(random.Random(1)))[0]
    still = Slope(0.0, -2.0, 2.0)
    growths = (Slope(5.0, 2.5, 7.5), second)
    aged = Aged(1, 1, None, None)
    pairs = tuple(LineOfPair(aged, line, 2.0, candidate, still) for candidate in growths)
    over = LineOverPairs(pairs)
    assert (over.shown, over.excluded, over.refuted) == (1, False, refuted)


def test_growth_of_both_arms_is_a_note(rules: Gate) -> None:
    draws = random.Random(3)
    verdict = judged(rules, [pair(draws, {}, {"heap": 9.0})])
    assert verdict.value is Value.OK
    assert "live heap of the driver grows in both arms" in verdict.reason


def test_the_candidate_is_red_beside_a_baseline_that_grows_less(rules: Gate) -> None:
    draws = random.Random(4)
    pairs = [pair(draws, {"heap": 18.0}, {"heap": 9.0}) for _ in range(2)]
    assert judged(rules, pairs).value is Value.REGRESSION


def test_a_step_is_no_growth(rules: Gate) -> None:
    """A buffer that grows once; the slope of least squares would be above the limit."""
    draws = random.Random(5)
    leak = {"steps": lambda batch: 4e6 if batch > 1800 else 0.0}
    assert judged(rules, [pair(draws, leak), pair(draws, leak)]).value is Value.OK


def test_what_fills_in_the_warm_up_is_no_growth(rules: Gate) -> None:
    samples = repetition(random.Random(6))
    figures = figures_of(samples, WARMUP, rules)
    assert abs(figures[HEAP_GROWTH]) < 0.5
    assert figures_of(samples[:6], 0, rules)[HEAP_GROWTH] > 0.5
    assert figures[BATCH_CPU] == pytest.approx(0.1, rel=0.05)
    assert figures.keys() >= {GROWTH, THREAD_GROWTH, BATCH_CPU_GROWTH}


def test_a_night_goes_on_with_what_is_not_decided(rules: Gate) -> None:
    draws = random.Random(7)
    for leak, goes_on in (({"heap": 6.0}, True), ({}, False)):
        assert bool(going_on(night([pair(draws, leak)]), [], rules, 2)) is goes_on
    decided = night([pair(draws, {"heap": 6.0}) for _ in range(2)])
    assert going_on(decided, [], rules, 3) == []


@pytest.mark.parametrize(
    ("pairs", "value", "why"),
    [
        ([], Value.MISSING, "not measured"),
        ([(None, None)], Value.MISSING, "not measured"),
    ],
)
def test_a_query_without_a_pair_is_missing(
    rules: Gate, pairs: Sequence[tuple[None, None]], value: Value, why: str
) -> None:
    verdict = judged(rules, pairs)
    assert (verdict.value, verdict.reason) == (value, why)


def test_a_query_that_is_wrong_or_has_no_baseline_says_so(rules: Gate) -> None:
    alone = replace(night([(repetition(random.Random(8)), None)]), baseline={})
    (verdict,) = judge_night(alone, [], rules)
    assert verdict.value is Value.NO_BASELINE
    (verdict,) = judge_night(replace(alone, invalid={"q5": "wrong rows"}), [], rules)
    assert (verdict.value, verdict.reason) == (Value.INVALID, "wrong rows")


def test_the_cost_of_measuring_is_not_the_batches(rules: Gate) -> None:
    """The CPU time between two samples begins when the first one has been taken."""
    samples = repetition(random.Random(9))
    for place, sample in enumerate(samples):
        for jvm in sample["processes"]:
            jvm["cpu_s"] = [value + 100.0 * place for value in jvm["cpu_s"]]
            jvm["cpu_s"][1] += 100.0
    assert figures_of(samples, WARMUP, rules)[BATCH_CPU] == pytest.approx(0.1, rel=0.05)


def test_lines_have_a_figure_for_each_role_and_directory() -> None:
    lines = {line.name: line for line in lines_of(repetition(random.Random(10)))}
    assert len(lines["live heap of the driver"].values) == SAMPLES
    assert lines["live heap of the executor"].values[0] == pytest.approx(40, abs=2)
    assert lines["files below the checkpoint"].values[0] == 200
    assert "direct memory of the driver" not in lines  # the JVM did not count it
    few = replace(lines["threads of the driver"], batches=(400, 500), values=(1.0, 2.0))
    assert growth_of(few, 0) is None


@pytest.mark.parametrize("drift", [0.0, 0.8])
def test_equal_builds_are_hardly_ever_red(rules: Gate, drift: float) -> None:
    """Nights with noise, and with noise that stays from sample to sample."""
    draws, red = random.Random(11), 0
    for _ in range(15):
        walks = [_walk(draws, drift) for _ in range(2)]
        pairs = [
            (repetition(draws, steps=walk), repetition(draws, steps=_walk(draws, drift)))
            for walk in walks
        ]
        red += judged(rules, pairs[:1]).value is Value.SUSPECT and judged(rules, pairs).bad
    assert red == 0


def _walk(draws: random.Random, stays: float) -> Callable[[int], float]:
    level, levels = 0.0, dict[int, float]()
    for number in range(1, SAMPLES + 1):
        level = stays * level + draws.gauss(0, 0.3e6 if stays else 0)
        levels[number * EVERY] = level
    return levels.__getitem__


def test_the_batch_since_which_it_grows_is_said(rules: Gate) -> None:
    """A leak that begins after 1,000 batches, and one that begins at once."""
    draws = random.Random(12)
    for begin, since in ((1000, range(1100, 1301)), (0, range(400, 501))):
        leak = {"steps": lambda batch, begin=begin: 30e6 * max(batch - begin, 0) / 1000}
        verdict = judged(rules, [pair(draws, leak), pair(draws, leak)])
        assert verdict.value is Value.REGRESSION
        said = re.search(r" per 1,000 batches since batch ([\d,]+), baseline ", verdict.reason)
        assert said is not None, verdict.reason
        assert int(said[1].replace(",", "")) in since


def test_the_largest_growth_is_of_what_is_counted(rules: Gate) -> None:
    """The CPU time of a batch has a limit of 1 %, and moves by more than that without a cause."""
    samples = repetition(random.Random(13), cpu_percent=40.0)
    figures = figures_of(samples, WARMUP, rules)
    assert figures[BATCH_CPU_GROWTH] > 20
    assert figures[GROWTH] < 1


@pytest.mark.parametrize(("computing", "judges"), [(1.0, True), (1.3, False), (3.0, False)])
def test_an_unsteady_host_says_nothing_of_the_cpu_time_of_a_batch(
    rules: Gate, computing: float, judges: bool
) -> None:
    draws = random.Random(14)
    pairs = [pair(draws, {"cpu_percent": 8.0}) for _ in range(2)]
    canary = Canary("cpu_s", (1.0,), (computing,), "here", "q5")
    some = replace(night(pairs), canary=(canary,), groups={"q5": "q5"})
    (verdict,) = judge_night(some, [], rules)
    assert (verdict.value is Value.REGRESSION) is judges
    assert ("the CPU time of a batch is not judged: canary" in verdict.reason) is not judges


def test_the_duration_of_a_batch_is_drawn_and_not_judged(rules: Gate) -> None:
    draws = random.Random(15)
    candidate, baseline = pair(draws, {})
    for sample in candidate:
        sample["batch_ms"] = 100.0 * (1 + sample["batch"] / 1000)
    lines = {line.name: line for line in lines_of(candidate)}
    duration = lines["duration of a batch"]
    assert duration.batches[:2] == (EVERY // 2, EVERY // 2 + EVERY)  # half-way
    growth = growth_of(duration, WARMUP)
    assert growth is not None
    assert growth.slope == pytest.approx(100 / 2.15, rel=0.05)  # in percent of the median
    assert "duration of a batch" not in {line.name for line in lines_of(baseline)}
    assert judged(rules, [(candidate, baseline)]).value is Value.OK


def test_a_pair_without_a_figure_does_not_lend_its_causes_to_another(rules: Gate) -> None:
    """The first pair has too few samples; the pairs that show the growth name its causes."""
    draws = random.Random(16)
    few = pair(draws, {})
    some = [(few[0][:2], few[1][:2]), *(pair(draws, {"heap": 6.0}) for _ in range(2))]
    verdict = judged(rules, some)
    assert verdict.value is Value.REGRESSION
    assert "org.example.Kept" in verdict.reason


def test_suspects_are_measured_on_before_what_is_undecided(rules: Gate) -> None:
    draws = random.Random(17)
    vague = pair(draws, {"steps": lambda batch: draws.gauss(0, 6e6)})
    both = {"q0": [vague], "q5": [pair(draws, {"heap": 6.0})]}
    aged = {query: tuple(Aged(1, 1, *each) for each in of) for query, of in both.items()}
    some = replace(night([]), expected=("q0", "q5"), aged=aged, baseline=dict.fromkeys(both, "b"))
    assert [each.value for each in judge_night(some, [], rules)] == ["UNDECIDED", "SUSPECT"]
    assert going_on(some, [], rules, 2) == ["q5", "q0"]


def test_a_batch_that_costs_more_is_said_beside_the_verdict(rules: Gate) -> None:
    """Its fixed cost informs: the growth decides."""
    draws = random.Random(18)
    for ratio, count, value in ((1.0, 3, Value.OK), (2.0, 3, Value.WATCH), (2.0, 1, Value.OK)):
        pairs = [Pair(number, 0.2 * ratio, 0.2) for number in range(1, count + 1)]
        some = night([pair(draws, {}) for _ in range(count)])
        some = replace(some, measured=(Measured("q5", BATCH_CPU, tuple(pairs)),))
        growth, cost = judge_night(some, [], rules)
        assert (growth.value, growth.decides) == (Value.OK, True)
        assert (cost.metric, cost.value, cost.decides) == (BATCH_CPU, value, False)
        assert cost.ratio == pytest.approx(ratio)
        assert (cost.lo is None) is (count == 1)
        assert "nan" not in cost.reason
