"""The benchmark of real causes: what it learns from, what it says of each, where it goes on.

Real store and real gate; in place of nights on Spark, nights that are recorded at once.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from bench.detection import __main__ as command
from bench.detection.bench import ATTEMPTS, JUDGING, MEASURING, Bench, Done, Settings
from bench.detection.causes import choose
from bench.detection.rows import CPU, effect
from nexmark.config import BUILD_DAG_ID, load
from nexmark.config.load import load_gate
from nexmark.errors import NexmarkError
from nexmark.model import Arm
from nexmark.store import BuildRecord
from nexmark.verdict.measured_night import Measured, MeasuredNight
from nexmark.verdict.nightly import going_on, judge_night
from nexmark.verdict.order import rounds_from
from tests.unit.store.night_builder import canary, paired, record_pair, validate
from tests.unit.verdict.gate_builder import around

SLOW = 1.2
PAIRS, NIGHTS = 4, 3  # the fewest nights that there may be


class Recorded(Bench):
    """Nights with a noise of 1 %; a night that has a cause is 20 % slower.

    A file `unsteady-...` in the directory makes the host get slower in one judged night.
    """

    def _run(self, verb: str, queries: Sequence[str], options: Sequence[str], conf: str) -> Done:
        given = dict(pairwise(options))
        slow = "--candidate-conf" in given or given.get("--build") == "pypi:4.2.1"
        pairs = int(given.get("--repetitions", self.settings.pairs))
        on_demand = verb == "build"
        number = len(list(self.directory.glob("ran-*")))
        (self.directory / f"ran-{number}").touch()
        night = paired(
            number,
            dag_id=BUILD_DAG_ID if on_demand else self.engine.dag_id,
            run_id=f"run{number}",
            build=BuildRecord("sha-430", "4.3.0", "pypi:4.3.0"),
            queries=list(queries),
            repetitions=pairs,
            baselines=dict.fromkeys(queries, "sha-430"),
            teaches=not (on_demand or "--candidate-conf" in given),
        )
        gate = load_gate(self.directory / conf / "gate.yaml")
        gate = gate if night.teaches else gate.for_comparison()
        rng = np.random.default_rng(number)
        with self.store() as store:
            store.record_night(night)
            validate(store, night.run, queries)
            if conf == JUDGING and (unsteady := next(self.directory.glob("unsteady-*"), None)):
                unsteady.unlink()
                group = {"metric": "cpu_s", "group": queries[0]}
                apart = [canary("before", 1, **group), canary("after", 9, **group)]
                store.record_canary(night.run, apart)

            def measure(query: str, stage: int, count: int) -> None:
                for pair in range(1, count + 1):
                    ratio = (SLOW if slow else 1.0) * math.exp(rng.normal(0, 0.01))
                    record_pair(
                        store,
                        night.run,
                        query,
                        pair,
                        stage=stage,
                        candidate=10 * ratio,
                        baseline=10,
                    )

            for query in queries:
                measure(query, 1, pairs)
            earlier = store.earlier(night.run, gate.remembered)
            for number, count in enumerate(rounds_from(pairs, gate)[1:], 2):
                for query in going_on(store.paired_night(night.run), earlier, gate, number):
                    measure(query, number, count)
            store.record_verdicts(
                night.run, judge_night(store.paired_night(night.run), earlier, gate)
            )
        return Done(night.run, 0.5)


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("NEXMARK_HOME", str(tmp_path))
    monkeypatch.setattr(command, "Bench", Recorded)
    return tmp_path


def run(*options: str) -> int:
    return command.main(["--pairs", str(PAIRS), "--nights", str(NIGHTS), "--more", "6", *options])


def test_each_cause_has_a_line_with_true_effect_verdict_pairs_and_time(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("--cause", "sort,older,codegen") == 0
    _, head, *lines = capsys.readouterr().out.splitlines()
    assert head.split()[:3] == ["cause", "query", "true"]
    assert [line.split()[:2] for line in lines] == [
        ["nothing", "q0"],
        ["nothing", "q5"],
        ["codegen", "q0"],
        ["sort", "q5"],
        ["older", "q5"],
    ]
    _, second, *_ = rounds_from(PAIRS, load_gate().for_comparison())
    for line in lines[:2]:
        assert " OK " in line
        assert line.split()[-2] == str(NIGHTS * PAIRS + PAIRS)
    for line in lines[2:]:
        assert " REGRESSION " in line
        assert 1.17 < float(line.split()[2]) < 1.23
        assert line.split()[-3:] == [f"{PAIRS}+{second}", str(PAIRS + second + 6), "0.5"]


def test_noise_is_learned_from_real_pairs_in_their_order(home: Path) -> None:
    assert run("--cause", "sort") == 0
    bench = Recorded(home / "detection", Settings("", PAIRS, NIGHTS))
    learned = bench.learn(["q5"])["q5"]
    with bench.store() as store:
        nights = [x for x in store.nights() if x.run_id.startswith("learned")][::-1]
        assert [night.run_id for night in nights] == [
            f"learned q5 {number + 1}" for number in range(NIGHTS)
        ]
        assert {night.dag_id for night in nights} == {load().newest.dag_id}
        cut = [
            row.cpu_s_per_mevent
            for night in nights
            for row in store.repetitions(night.id)
            if row.arm == Arm.CANDIDATE
        ]
        whole = [
            row.cpu_s_per_mevent
            for row in store.repetitions(learned.run)
            if row.arm == Arm.CANDIDATE
        ]
        assert cut == whole
        assert {x.value for night in nights for x in store.verdicts(night.id)} == {"OK"}
        assert [x.night_id for x in store.acceptances()] == [learned.run]


def test_without_nights_to_learn_from_each_night_is_judged_as_a_first_night(
    home: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[tuple[str, dict[str, str]]] = []
    record = Recorded._run

    def asking(
        self: Recorded, verb: str, queries: Sequence[str], options: Sequence[str], conf: str
    ) -> Done:
        asked.append((verb, dict(pairwise(options))))
        return record(self, verb, queries, options, conf)

    monkeypatch.setattr(Recorded, "_run", asking)
    assert command.main(["--pairs", str(PAIRS), "--more", "6", "--cause", "sort,older"]) == 0
    _, _, *lines = capsys.readouterr().out.splitlines()
    verdicts = ["OK", "REGRESSION", "REGRESSION"]
    assert [value in line for line, value in zip(lines, verdicts, strict=True)] == [True] * 3
    assert {verb for verb, _ in asked} == {"build"}
    builds = [(given["--build"], given["--against"]) for _, given in asked]
    itself, older = ("pypi:4.3.0", "pypi:4.3.0"), ("pypi:4.2.1", "pypi:4.3.0")
    assert builds == [itself, itself, itself, older, older]
    bench = Recorded(home / "detection", Settings("", PAIRS, 0))
    with bench.store() as store:
        assert len(store.nights()) == len(asked)
        assert store.acceptances() == []


def test_what_was_measured_is_not_measured_again(home: Path) -> None:
    assert run("--cause", "sort") == 0
    before = len(list((home / "detection").glob("ran-*")))
    assert run("--cause", "sort") == 0
    assert len(list((home / "detection").glob("ran-*"))) == before
    assert run("--cause", "sort,partitions") == 0  # the noise of q5 is known
    assert len(list((home / "detection").glob("ran-*"))) == before + 2
    assert run("--cause", "sort", "--fresh") == 0
    assert len(list((home / "detection").glob("ran-*"))) == before


def test_an_interrupted_benchmark_goes_on(
    home: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(self: Bench, cause: object, pairs: int) -> Done:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(Recorded, "more", interrupted)
        assert run("--cause", "sort") == 130
    assert "goes on where it was" in capsys.readouterr().out
    before = len(list((home / "detection").glob("ran-*")))
    assert run("--cause", "sort") == 0
    assert len(list((home / "detection").glob("ran-*"))) == before + 1


def test_other_settings_are_another_benchmark(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("--cause", "sort") == 0
    assert run("--cause", "sort", "--pairs", "5") == 2
    assert "begun with workload detection, pairs 4, nights 3; give these" in capsys.readouterr().err


def test_a_red_night_of_a_build_against_itself_fails(
    home: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def alarmed(*_: object) -> tuple[str, bool]:
        return "a line", True

    monkeypatch.setattr(command, "line", alarmed)
    assert run("--cause", "sort") == 1
    assert "red nights of a build against itself: 1" in capsys.readouterr().err


@pytest.mark.parametrize(("unsteady", "tried"), [(1, 1), (2, 2), (ATTEMPTS, ATTEMPTS)])
def test_a_night_on_a_host_that_was_not_steady_is_run_again(
    unsteady: int, tried: int, home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    bench = Recorded(home / "detection", Settings("", PAIRS, NIGHTS))
    bench.learn(["q5"])
    for number in range(unsteady):
        (home / "detection" / f"unsteady-{number}").touch()
    (cause,) = choose(["sort"], [])
    done = bench.judged(cause)
    told = capsys.readouterr().out.splitlines()
    assert len(told) == tried
    assert all(line.startswith("sort: INVALID, attempt ") and "canary" in line for line in told)
    assert done.minutes == 0.5 * min(tried + 1, ATTEMPTS)
    again = bench.judged(cause)
    with bench.store() as store:
        (row,) = [row for row in store.verdicts(again.run) if row.metric == CPU]
    assert row.value == "REGRESSION"
    assert (again == done) == (unsteady < ATTEMPTS)


def test_the_true_effect_is_that_of_all_pairs(home: Path) -> None:
    assert run("--cause", "sort") == 0
    bench = Recorded(home / "detection", Settings("", PAIRS, NIGHTS))
    with bench.store() as store:
        runs = [x.id for x in store.nights() if x.candidate_conf is None][:2]
        found = effect(store, runs, "q5", CPU)
        assert found is not None
        assert found.lo < found.ratio < found.hi
        assert effect(store, [], "q5", CPU) is None


def test_the_gate_of_nights_that_only_measure_has_one_round(home: Path) -> None:
    bench = Recorded(home, Settings("", PAIRS, NIGHTS))
    rng = np.random.default_rng(1)
    gates = {name: load_gate(bench.directory / name / "gate.yaml") for name in (JUDGING, MEASURING)}
    slower = MeasuredNight("n", (Measured("q5", CPU, around(1.5, PAIRS, rng)),))
    for gate in (gates[MEASURING], gates[MEASURING].for_comparison()):
        assert going_on(slower, [], gate, 2) == []
    for gate in (gates[JUDGING], gates[JUDGING].for_comparison()):
        assert going_on(slower, [], gate, 2) == ["q5"]
    assert {gate.pairs for gate in gates.values()} == {PAIRS}
    assert {gate.self_test for gate in gates.values()} == {0}


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--pairs", "2"], "--pairs 2: a night needs 3 at least; give more"),
        (["--nights", "2"], "--nights 2: the gate learns from 3 nights at least; give 3, or 0"),
        (["--pairs", "0"], "repetitions: 0 is not in 1 to 100"),
        (["--nights", "30"], "repetitions: 150 is not in 1 to 100"),
        (["--more", "101"], "at most 100 pairs"),
        (["--workload", "smal"], "did you mean 'small'?"),
    ],
)
def test_bad_options_are_one_line(
    options: list[str], said: str, home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert command.main(options) == 2
    error = capsys.readouterr().err
    assert said in error
    assert error.count("\n") == 1


def test_a_night_that_ends_before_it_is_judged_is_reported_with_its_last_words(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench = Bench(home, Settings("", PAIRS, NIGHTS))
    with pytest.raises(NexmarkError, match=r"a night ended before it was judged: .*'pypi'"):
        bench._run("build", ["q5"], ["--build", "pypi"], JUDGING)
