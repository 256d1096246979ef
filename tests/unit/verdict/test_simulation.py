"""The simulation runs the shipped gate, and the shipped settings meet the bars."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from bench.gate import (
    ACCEPTING,
    BAR_WORLD,
    FIRST_WORLDS,
    HAPPENING,
    WorldTally,
    bar_of_creeps,
    bar_of_world,
    bars,
    bars_of_first,
    main,
    simulate,
    simulate_creeps,
    simulate_first_nights,
)
from bench.simulated_nights import QUERIES as SIMULATED
from bench.simulated_nights import World
from nexmark.config.load import load_gate
from nexmark.model import SUITE
from nexmark.verdict.decision import decide
from nexmark.verdict.measured_night import Measured, MeasuredNight, Pair
from nexmark.verdict.nightly import judge_night, replay
from nexmark.verdict.noise import Drift, Learned, about_own_level, suite_shifts
from tests.unit.verdict.gate_builder import CPU, rules


def test_what_is_simulated_is_what_judges_a_night() -> None:
    """The arrays of many suites and the verdicts of one night come to the same."""
    rng, gate = np.random.default_rng(5), rules()
    queries, nights = 9, 14
    logs = rng.normal(0, 0.04, (queries, nights, 5))
    ratios, again = rng.normal(0, 0.04, (queries, 5)), rng.normal(0, 0.04, (queries, 10))
    ratios[2] += 0.15
    again[2] += 0.15
    ratios[4] -= 0.15

    def pairs(row: np.ndarray) -> tuple[Pair, ...]:
        return tuple(Pair(i, math.exp(x), 1.0) for i, x in enumerate(row))

    before = [
        MeasuredNight(
            f"n{night}",
            tuple(Measured(f"q{q}", CPU, pairs(logs[q, night])) for q in range(queries)),
        )
        for night in range(nights)
    ]
    judged = replay(before, gate)
    rows = tuple(
        Measured(f"q{q}", CPU, pairs(ratios[q]), (pairs(again[q]),)) for q in range(queries)
    )
    verdicts = {x.query: x for x in judge_night(MeasuredNight("tonight", rows), judged, gate)}

    shift = np.array(
        [[v.shift for v in found if v.query == f"q{q}"] for q in range(queries) for found in judged]
    )
    table = shift.reshape(queries, nights)
    spreads = np.array(
        [
            [next(v.spread for v in found if v.query == f"q{q}") for found in judged]
            for q in range(queries)
        ]
    )
    last = {v.query: v for v in judged[-1]}
    drift = Drift(
        np.array([last[f"q{q}"].drift_slower for q in range(queries)]),
        np.array([last[f"q{q}"].drift_faster for q in range(queries)]),
    )
    changed = np.array(
        [
            [next(v.value.value for v in found if v.query == f"q{q}") for found in judged]
            for q in range(queries)
        ]
    )
    table = np.where(np.isin(changed, ["REGRESSION", "FASTER"]), np.nan, table)
    spreads = np.where(np.isnan(table), np.nan, spreads)
    own = about_own_level(table, np.zeros(nights, dtype=int))
    history = Learned(
        table, spreads, np.where(np.isnan(table), np.nan, 5.0), suite_shifts(own), drift
    )
    many = Learned(
        *(np.stack([x, x]) for x in (history.shift, history.spread, history.pairs, history.suite)),
        Drift(np.stack([drift.slower] * 2), np.stack([drift.faster] * 2)),
    )
    steady = np.zeros((2, queries))
    decision = decide(
        np.stack([ratios, ratios]), many, lambda picked, number: again[picked[-1]], gate, steady
    )
    for suite in (0, 1):
        for q in range(queries):
            value = verdicts[f"q{q}"].value
            assert (decision.confirmed[suite, q] > 0) == (value == "REGRESSION")
            assert decision.first.noise[suite, q] == pytest.approx(verdicts[f"q{q}"].noise)
        assert decision.suite_noise[suite] == pytest.approx(verdicts[SUITE].noise)
        assert decision.suite_shift[suite] == pytest.approx(verdicts[SUITE].shift)
    assert verdicts["q2"].value == "REGRESSION"


CHANCE = 0.03
"""A bar is met within this in some two thousand nights: two standard errors of a share of 75 %."""


def test_the_shipped_settings_meet_the_bars() -> None:
    found = simulate(World(BAR_WORLD, 0.05), load_gate(), 2000, 1)
    missed = (bar for bar in bars(found) if not bar.met)
    assert [str(bar) for bar in missed if abs(bar.measured / bar.limit - 1) > CHANCE] == []


@pytest.mark.parametrize(
    ("kind", "world"),
    [("night", "CV 5 %"), ("night", "CV 10 %"), ("comparison", "CV 5 %"), ("comparison", "CV 2 %")],
)
def test_they_meet_the_bars_of_a_first_night(kind: str, world: str) -> None:
    gate = load_gate()
    gate = gate.for_comparison() if kind == "comparison" else gate
    (chosen,) = (each for each in FIRST_WORLDS if each.name == world)
    found = simulate_first_nights(chosen, gate, kind, 400, 1)
    assert [str(bar) for bar in bars_of_first(found) if not bar.met] == []


@pytest.mark.parametrize("world", HAPPENING, ids=lambda world: world.name)
def test_they_meet_the_bars_of_worlds_in_which_more_happens(world: World) -> None:
    found = simulate(world, load_gate(), 1200, 1)
    assert [str(bar) for bar in bar_of_world(found) if not bar.met] == []


def test_builds_that_are_accepted_seldom_make_a_false_creep_and_a_real_one_is_seen() -> None:
    found = simulate_creeps(ACCEPTING[0], load_gate(), 960, 1)
    assert bar_of_creeps(found).met
    assert min(found.found) > 0.6
    careless = simulate_creeps(
        ACCEPTING[0], load_gate().model_copy(update={"creep_z": 1.0}), 240, 1
    )
    assert not bar_of_creeps(careless).met


def test_a_careless_gate_misses_them() -> None:
    careless = load_gate().model_copy(
        update={"false_reds": 0.5, "confirm_z": 0.5, "suite_z": 1.0, "pursue_z": (-3.0,) * 7}
    )
    found = simulate(World(BAR_WORLD, 0.05), careless, 80, 1)
    missed = {bar.text for bar in bars(found) if not bar.met}
    assert {text for text in missed if "seen" not in text} == {
        "false alarms per night",
        "machine time, one arm = 1",
        "alarms in the night the host becomes 8 % slower",
    }


def test_a_deaf_gate_misses_them() -> None:
    deaf = load_gate().model_copy(update={"confirm_z": 20.0})
    found = simulate(World(BAR_WORLD, 0.05), deaf, 80, 1)
    missed = {bar.text for bar in bars(found) if not bar.met}
    assert {text for text in missed if "seen" in text} == {
        "20 % more garbage seen within 7 nights",
        *(f"{percent} % slower seen in its first night" for percent in (5, 10, 20)),
    }
    assert found.alarms == 0


def test_the_cost_counts_both_arms_of_every_pair() -> None:
    """Who measures everybody in both rounds pays 2 * (5 + 10) / 5 nights of one arm."""
    jumpy = rules(pursue_faster_z=1e-6, matters=1e-6)
    found = simulate(World("jumpy", 0.05), jumpy, 40, 1)
    assert found.cost == pytest.approx(6.0)


def test_runs_have_the_spread_that_their_world_says() -> None:
    rng = np.random.default_rng(1)
    world = World("plain", 0.05, spikes=0.0)
    times = world.runs(np.full((4000,), 0.05), 5, rng)
    assert times.std() == pytest.approx(0.05 * math.sqrt(1.09), rel=0.03)
    ratios = times[..., 0] - times[..., 1]
    assert ratios.std() == pytest.approx(0.05 * math.sqrt(2 * (0.5 + 0.09)), rel=0.03)
    shared = replace(world, fresh_jvm=False).runs(np.full((4000,), 0.05), 5, rng)
    nightly = (shared[..., 0] - shared[..., 1]).mean(axis=-1)
    assert nightly.std() > 1.15 * ratios.mean(axis=-1).std()
    assert world.scale().shape == (SIMULATED,)


def test_the_table_and_the_bars_are_printed(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("bench.gate.WORLDS", (World(BAR_WORLD, 0.05),))
    monkeypatch.setattr("bench.gate.HAPPENING", HAPPENING[:1])
    monkeypatch.setattr("bench.gate.FIRST_WORLDS", FIRST_WORLDS[1:2])
    options = ["--nights", "40", "--seed", "3", "--figures", str(tmp_path / "gate.jsonl")]
    code = main(options)
    text = capsys.readouterr().out
    assert f"gate version {rules().version}" in text
    for words in (BAR_WORLD, HAPPENING[0].name, "10% slower", "(bar: <= 0.02)"):
        assert words in text
    assert code == (1 if "MISSED" in text else 0)
    _goes_on_where_it_was_stopped(options, tmp_path / "gate.jsonl", text, capsys)


def _goes_on_where_it_was_stopped(
    options: list[str], file: Path, text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """All but one world is kept: the tables are the same as before."""
    lines = file.read_text().splitlines()
    file.write_text("\n".join(lines[1:]) + "\n")
    main(options)
    again = capsys.readouterr().out
    assert again.splitlines()[:-1] == text.splitlines()[:-1]  # the last one says the seconds
    assert sorted(file.read_text().splitlines()) == sorted(lines)
    assert main([*options, "--seed", "4"]) == 2
    assert "name another file" in capsys.readouterr().err


@pytest.mark.parametrize("arguments", [["--nights", "0"], ["--nights", "x"], ["--seed", "-1"]])
def test_a_wrong_argument_is_one_line(
    arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit, match="2"):
        main(arguments)
    assert capsys.readouterr().err.count("\n") == 1


def test_bars_say_what_was_measured() -> None:
    found = ((0.1, 0.5, 0.6), (0.75, 0.9, 0.9), (0.97, 1.0, 1.0), (0.99, 1.0, 1.0))
    rates = (0.01, 0.0, 0.015, 0.005, 0.0, 0.0, 2.34, 0.05, 0.9)
    tally = WorldTally(BAR_WORLD, 100, *rates, garbage=(0.5, 0.97, 1.0), detected=found)
    assert [bar.met for bar in bars(tally)] == [False, True, False, True, False, True, True]
    assert "MISSED  false alarms per night: 0.030 (bar: <= 0.02)" in str(bars(tally)[0])
