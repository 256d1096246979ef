"""The study of noise: its statistics, its order, its readings of threads, its tables."""

from __future__ import annotations

import json
import math
import re
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bench import noise
from bench.beside import Beside
from bench.noise_statistics import (
    Components,
    after_covariates,
    best_design,
    between_groups,
    components,
    design,
    deviation,
    matched_medians,
)
from bench.noise_table import log_batches, pairs
from bench.thread_times import CLASSES, ThreadSeries, ThreadTimes, class_of
from nexmark.labs.kept_runs import KeptRuns
from nexmark.measure.host_samples import MeasurementError

OF = "noise of compare spark-4.3.0"
NAMED_THREADS = """
import sys, threading, time
def work(name, cpu_s):
    path = f"/proc/self/task/{threading.get_native_id()}/comm"
    with open(path, "w") as file:
        file.write(name)
    while time.thread_time() < cpu_s:
        pass
    if name == "Short-lived":
        return
    time.sleep(60)
for name, cpu_s in {"Executor task launch": 0.4, "C2 CompilerThread0": 0.2, "G1 Conc#0": 0.1,
                    "Signal Dispatcher": 0.15, "Short-lived": 0.3}.items():
    threading.Thread(target=work, args=(name, cpu_s), daemon=True).start()
time.sleep(0.2)
print("ready", flush=True)
time.sleep(60)
"""


class TestStatistics:
    def test_the_parts_of_a_known_variance_are_seen(self) -> None:
        drawn = np.random.default_rng(1)
        positions = drawn.normal(0, 0.5, 30)  # the batches differ much: they read other events
        applications = drawn.normal(0, 0.05, (400, 1))
        table = 2 + positions + applications + drawn.normal(0, 0.1, (400, 30))
        parts = components(table.tolist())
        assert parts is not None
        assert parts.application == pytest.approx(float(applications.std()), rel=0.05)
        assert parts.batch == pytest.approx(0.1, rel=0.05)

    def test_blocks_of_batches_say_the_same_of_a_batch(self) -> None:
        drawn = np.random.default_rng(2)
        table = drawn.normal(0, 0.05, (400, 1)) + drawn.normal(0, 0.1, (400, 32))
        blocks = table.reshape(400, 8, 4).mean(axis=2)
        parts = components(blocks.tolist())
        assert parts is not None
        assert parts.by_batch(4).batch == pytest.approx(0.1, rel=0.05)
        assert parts.by_batch(4).application == pytest.approx(0.05, rel=0.1)

    def test_no_part_of_the_variance_is_of_applications_where_they_are_equal(self) -> None:
        table = np.random.default_rng(3).normal(0, 0.1, (300, 40))
        parts = components(table.tolist())
        assert parts is not None
        assert parts.application < 0.01

    def test_too_few_say_nothing(self) -> None:
        assert components([[1.0, 2.0], [1.0, 2.0]]) is None
        assert components([[1.0], [2.0], [3.0]]) is None
        assert deviation([1.0, 2.0]) is None

    def test_what_pieces_differ_by_is_more_than_their_members_explain(self) -> None:
        drawn = np.random.default_rng(4)
        sizes = [3, 5, 8] * 100
        groups = [group for group, size in enumerate(sizes) for _ in range(size)]
        means = drawn.normal(0, 0.08, len(sizes))
        logs = [means[group] + drawn.normal(0, 0.05) for group in groups]
        assert between_groups(logs, groups) == pytest.approx(0.08, rel=0.15)
        equal = between_groups(drawn.normal(0, 0.05, len(groups)).tolist(), groups)
        assert equal is not None
        assert equal < 0.015
        assert between_groups(logs[:3], groups[:3]) is None

    def test_a_covariate_takes_away_what_it_explains_and_no_more(self) -> None:
        drawn = np.random.default_rng(5)
        machine = drawn.normal(0, 0.06, 200)
        logs = 0.8 * machine + drawn.normal(0, 0.03, 200)
        assert deviation(logs) == pytest.approx(0.057, rel=0.15)
        left = after_covariates(logs.tolist(), machine.reshape(-1, 1).tolist())
        assert left == pytest.approx(0.03, rel=0.15)
        through_origin = after_covariates(
            logs.tolist(), machine.reshape(-1, 1).tolist(), through_origin=True
        )
        assert through_origin == pytest.approx(0.03, rel=0.15)

    def test_a_covariate_that_says_nothing_makes_it_worse_not_better(self) -> None:
        """A fit that had seen each value would look better with every covariate more."""
        drawn = np.random.default_rng(6)
        more = 0
        for _ in range(50):
            logs = drawn.normal(0, 0.05, 12).tolist()
            left = after_covariates(logs, drawn.normal(0, 1, (12, 4)).tolist())
            usual = deviation(logs)
            assert left is not None
            assert usual is not None
            more += left > usual
        assert more > 30

    def test_a_batch_that_was_hit_does_not_move_the_median_of_matched_batches(self) -> None:
        usual = [math.log(value) for value in (1.0, 2.0, 3.0, 4.0, 5.0)]
        hit = [*usual[:2], usual[2] + 1.5, *usual[3:]]
        slower = [value + 0.1 for value in usual]
        assert matched_medians([usual, usual, hit, slower]) == pytest.approx([0, 0, 0, 0.1])

    def test_the_best_length_is_the_one_that_theory_names(self) -> None:
        """The least variance for a cost is at sqrt(batch^2 / application^2 * start / a batch)."""
        parts = Components(0.02, 0.1)
        best = best_design(parts, start_s=20, batch_s=2, budget_s=1e6)
        assert best is not None
        assert best.batches == pytest.approx(math.sqrt(25 * 10), abs=1)
        assert best.applications == int(1e6 // (20 + 2 * best.batches))
        one = design(parts, 20, 2, 100, 40)
        assert one is not None
        assert one.applications == 1
        assert one.deviation == pytest.approx(math.sqrt(2 * (0.0004 + 0.01 / 40)))
        assert design(parts, 20, 2, 99, 40) is None


class TestThreads:
    @pytest.mark.parametrize(
        ("name", "kind"),
        [
            ("Executor task l", "tasks"),
            ("Executor task i", "tasks"),
            ("GC Thread#1", "gc"),
            ("G1 Main Marker", "gc"),
            ("C1 CompilerThre", "jit"),
            ("C2 CompilerThre", "jit"),
            ("stream executio", "stream"),
            ("rpc-server-4-1", "other"),
        ],
    )
    def test_a_thread_is_known_by_its_name(self, name: str, kind: str) -> None:
        assert class_of(name) == kind

    def test_the_cpu_of_a_real_process_is_in_the_classes_of_its_threads(self) -> None:
        with subprocess.Popen([sys.executable, "-c", NAMED_THREADS], stdout=subprocess.PIPE) as it:
            try:
                assert it.stdout is not None
                it.stdout.readline()
                times = ThreadTimes(it.pid)
                wanted = {"tasks": 0.4, "jit": 0.2, "gc": 0.1}
                until = time.monotonic() + 60
                while time.monotonic() < until:
                    assert times.read(time.time())
                    used = times.series().whole()
                    if all(used[kind] >= cpu_s - 0.02 for kind, cpu_s in wanted.items()):
                        break
                    time.sleep(0.1)
            finally:
                it.kill()
        for kind, cpu_s in wanted.items():
            assert used[kind] == pytest.approx(cpu_s, abs=0.06), kind
        # The short-lived thread is unseen, but for what was read while it lived.
        assert used["other"] >= 0.13
        assert used["other"] + used["unseen"] >= 0.4
        assert not ThreadTimes(it.pid).read(0.0)

    def test_a_period_is_between_readings_or_ends_just_after_the_last_one(self) -> None:
        zeros = dict.fromkeys(CLASSES, (0.0, 0.0, 0.0))
        series = ThreadSeries((10.0, 11.0, 13.0), {**zeros, "jit": (1.0, 2.0, 6.0)})
        assert series.between("jit", 10.5, 12.0) == pytest.approx(2.5)
        assert series.between("jit", 10.5, 14.5) == pytest.approx(4.5)
        with pytest.raises(MeasurementError, match=r"do not cover 15\.1"):
            series.between("jit", 10.5, 15.1)
        with pytest.raises(MeasurementError, match=r"do not cover 9\.9"):
            series.between("jit", 9.9, 12.0)

    def test_beside_a_process_its_threads_are_read_and_pieces_of_work_done(self) -> None:
        beside, begin = Beside("no cluster has this mark", 1), time.time()
        with subprocess.Popen([sys.executable, "-c", "while True: pass"]) as it:
            try:
                with beside.watching(it.pid):
                    time.sleep(14)
            finally:
                it.kill()
        assert beside.driver is not None
        assert beside.driver.whole()["other"] > 1
        pieces = beside.pieces(begin, time.time())
        assert pieces["pieces"] == 3
        assert 0 < pieces["cpu_s"] < 0.1
        assert 0 < pieces["cpu_memory_s"] < 0.5
        assert beside.pieces(begin, begin + 9) == {}


def test_two_runs_of_an_arm_follow_each_other_and_arms_take_turns() -> None:
    expected = [
        *((1, "a"), (2, "a"), (1, "b"), (2, "b")),
        *((3, "b"), (4, "b"), (3, "a"), (4, "a")),
        *((5, "a"), (5, "b")),
    ]
    assert list(noise.order(5, ["a", "b"])) == expected
    assert noise.missing({(1, "a"): {}, (4, "b"): {}}, 5, ["a", "b"]) == [
        each for each in expected if each not in {(1, "a"), (4, "b")}
    ]


def made_up(number: int, piece: int, *, slower: float = 0.0) -> dict[str, Any]:
    """An application whose CPU differs by `slower`, as the pieces of work beside it show."""
    draws = np.random.default_rng(number)
    factor = math.exp(slower + draws.normal(0, 0.01))
    batches = [2.0 * factor * math.exp(draws.normal(0, 0.02)) for _ in range(8)]
    cpu_s = sum(batches)
    threads = dict.fromkeys(CLASSES, 0.0) | {"tasks": 0.7 * cpu_s, "jit": 0.2 * cpu_s, "gc": 1.0}
    timings = {"cpu_s": 0.01 * math.exp(slower), "cpu_memory_s": 0.02}
    return {
        **{"piece": piece, "date": "2026-11-27T19:00:00+00:00", "seconds": 50.0},
        **{"events": 8_000_000, "wall_steady_s": cpu_s / 2, "cpu_steady_s": cpu_s},
        **{"cpu_application_s": cpu_s + 10, "driver_steady_s": 1.0, "driver_application_s": 8.0},
        **{"task_steady_s": 0.7 * cpu_s, "task_application_s": 0.7 * cpu_s + 3},
        **{"batch_cpu_s": batches, "batch_task_s": [0.7 * each for each in batches]},
        **{"batch_ms": [4100.0] * 8, "sampler_cpu_s": 0.5},
        **{"threads_steady": threads, "threads_application": threads},
        **{"driver_threads_steady": threads, "driver_threads_application": threads},
        **{"canary": timings, "beside": {**timings, "pieces": 9.0}},
    }


def kept_file(tmp_path: Path, runs: Sequence[int]) -> Path:
    file = tmp_path / "noise.jsonl"
    kept = KeptRuns(OF, file)
    for number in runs:
        slower = 0.1 * math.sin(number)
        kept.keep(number, "q0 usual", made_up(number, 1 + number // 9, slower=slower))
    return file


def test_the_table_of_kept_applications_names_each_part(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = kept_file(tmp_path, range(1, 21))
    command = ["--figures", str(file), "--runs", "20", "--queries", "q0"]
    assert noise.main(command) == 0
    out = capsys.readouterr().out
    assert f"{OF}, 20 applications; all that was asked for" in out
    assert "q0 usual: 20 applications in 3 pieces, 50 s each" in out
    lines = {cells[0]: cells for line in out.splitlines() if (cells := re.split("  +", line))}
    before, after = lines["executors, steady"][2], lines["executors, steady"][6]
    assert float(before.rstrip("%")) > 5
    assert float(after.rstrip("%")) < 2
    assert float(lines["jit"][1].rstrip("%")) == pytest.approx(20 / 0.96, abs=1)  # of 0.9 and gc
    assert "(best)" in out
    assert "(as now)" in out
    assert "tasks of the event log are 70.0% of the executors' CPU" in out
    apart = lines["executors, steady"][3]
    assert f"of 1 queries: {apart} by all CPU time of the executors, {apart} by the tasks'" in out
    assert "correlation 1.00" in out


def test_what_a_file_has_is_not_run_again_and_a_piece_ends_before_its_time_is_up(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """An application of 50 s does not fit what is left of a piece, so none begins."""
    file = kept_file(tmp_path, range(1, 7))
    before = file.read_text()
    todo = noise.missing(KeptRuns(OF, file).figures, 8, ["q0 usual"])
    assert todo == [(7, "q0 usual"), (8, "q0 usual")]
    begin = time.monotonic()
    piece = noise.Piece(KeptRuns(OF, file), todo, begin, 1)
    assert piece.has_time_for("q0 usual", begin + 9)
    assert not piece.has_time_for("q0 usual", begin + 11)
    assert not piece.has_time_for("q5 usual", begin + 11)
    lines = [json.loads(line) | {"seconds": 61.0} for line in before.splitlines()]
    file.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    command = ["--figures", str(file), "--runs", "8", "--queries", "q0", "--minutes", "1"]
    assert noise.main(command) == 0
    assert "2 are left, about 2 minutes: the same command goes on" in capsys.readouterr().out


def test_figures_of_another_workload_are_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = kept_file(tmp_path, [1])
    assert noise.main(["--figures", str(file), "--runs", "0", "--workload", "small"]) == 2
    assert "not of noise of small spark-4.3.0" in capsys.readouterr().err


def test_neighbours_followed_each_other_and_both_are_of_one_piece() -> None:
    runs = {number: {"piece": 1 if number < 6 else 2} for number in (1, 2, 3, 4, 5, 6, 7, 9, 10)}
    assert pairs(runs, apart=False) == [(1, 2), (3, 4), (9, 10)]
    assert pairs(runs, apart=True) == [(2, 3), (4, 5), (6, 7)]


def test_batches_are_compared_in_blocks_and_a_batch_without_tasks_in_none() -> None:
    first = {"batch_cpu_s": [1.0, 2.0, 3.0, 4.0, 5.0], "batch_task_s": [1.0, 0.0, 1.0]}
    other = {"batch_cpu_s": [2.0, 2.0, 2.0, 2.0, 2.0], "batch_task_s": [1.0, 2.0, 3.0]}
    runs = [{**each, "batch_ms": [2500.0] * 5} for each in (first, other)]
    assert np.exp(log_batches(runs, "batch_cpu_s")) == pytest.approx(np.array([[3, 7], [4, 4]]))
    assert np.exp(log_batches(runs, "batch_task_s")) == pytest.approx(np.array([[1, 1], [1, 3]]))


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (["--queries", "q0,q99"], "'q99' is unknown"),
        (["--heap", "big"], "'big' is unknown; known: usual, fixed"),
        (["--minutes", "0"], "'0' is not a whole number"),
    ],
)
def test_wrong_arguments_are_refused_in_one_line(
    arguments: list[str], problem: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        noise.main(arguments)
    err = capsys.readouterr().err
    assert problem in err
    assert err.count("\n") == 1


def test_a_fixed_heap_begins_with_all_of_it() -> None:
    assert noise.heap_confs("usual", "2g", "768m") == {}
    assert noise.heap_confs("fixed", "2g", "768m") == {
        "spark.executor.defaultJavaOptions": "-Xms2g -XX:+AlwaysPreTouch",
        "spark.driver.defaultJavaOptions": "-Xms768m -XX:+AlwaysPreTouch",
    }
