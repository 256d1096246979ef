"""The benchmarks of killed queries: what is run, what counts, what is printed."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from bench import affinity, kills
from bench.gate import GateBar
from nexmark.labs.kept_runs import KeptRuns
from nexmark.recovery.splits import commit_splits

ENGINES = ("spark-4.3.0", "spark-3.5.9")


def test_cases_are_more_than_wanted_and_a_part_of_them_has_some_of_each_kind() -> None:
    found = kills.cases(ENGINES, 2)
    assert len(set(found)) == len(found) >= kills.WANTED
    first = found[:60]
    for values in (kills.QUERIES, kills.STATES, kills.KILLS, ENGINES):
        counts = Counter(word for case in first for word in case.name.split() if word in values)
        assert set(counts) == set(values)
    changelog = next(case for case in found if case.state == "rocksdb+changelog").options(5)
    assert (changelog.state, changelog.changelog, changelog.kills) == ("rocksdb", True, 5)


def run(**changed: object) -> dict[str, object]:
    return {"failed": "", "wrong": "", "kills": ["batch", "upload"], "left": [], **changed}


@pytest.mark.parametrize(
    ("bad", "says"),
    [
        ({}, ""),
        ({"wrong": "3 rows are missing"}, "runs that were wrong: 1.000"),
        ({"failed": "q4: no end", "kills": []}, "runs that failed by themselves: 1.000"),
        ({"left": ["StateStoreId"]}, "runs that left something behind: 1.000"),
    ],
)
def test_what_is_wrong_is_counted_and_named(
    bad: dict[str, object], says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    found = {(seed, "q4 spark-4.3.0 hdfs both"): run() for seed in range(kills.WANTED)}
    found[900, "q4 spark-4.3.0 hdfs driver"] = run(**bad)
    assert kills.report(found) == bool(bad)
    told = capsys.readouterr().out
    lines = [line.split() for line in told.splitlines()]
    assert ["spark-4.3.0", "hdfs", "both", "200", "400", "0", "0", "0", "0"] in lines
    assert says in told
    if bad:
        assert "q4 spark-4.3.0 hdfs driver, seed 900: " in told


def test_too_few_killed_runs_miss_the_bar(capsys: pytest.CaptureFixture[str]) -> None:
    assert kills.report({(1, "q4 spark-4.3.0 hdfs both"): run()}) == 1
    assert str(GateBar("killed runs", 1, kills.WANTED, at_least=True)) in capsys.readouterr().out


def test_runs_that_a_file_has_are_not_run_again(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "runs.jsonl"
    kept = KeptRuns("5 kills in 6000 events", file)
    for case in kills.cases(ENGINES, 2):
        kept.keep(case.seed, case.name, run())
    assert kills.main(["--figures", str(file)]) == 0
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert ["all", "252", "504", "0", "0", "0", "0"] in lines


def operator(name: str, instances: int) -> dict[str, object]:
    numbers = {"numRowsTotal": 1, "memoryUsedBytes": 1, "numShufflePartitions": 2}
    metrics = {"rocksdbNumLoadedFromDfs": 1}
    return {
        **{"operatorName": name, "numStateStoreInstances": instances, "customMetrics": metrics},
        **numbers,
    }


def test_the_hit_rate_counts_the_stores_whose_loads_are_told() -> None:
    """Of a join in the formats 1 and 2 the metrics are of half of its stores."""
    join = operator("symmetricHashJoin", 8)
    operators = [join, join, operator("dedupe", 2), operator("stateStoreSave", 2)]
    told = [{"batchId": batch, "stateOperators": [each]} for batch, each in enumerate(operators)]
    lines = commit_splits(told)
    found = [(line["stores"], line["stores_loaded"]) for line in lines]
    assert found == [(4, 1), (4, 1), (2, 1), (2, None)]
    killed = {"kills": [{"batch": 1}], "commit": lines}
    assert affinity.stores(killed) == {"needed": 6, "loaded": 2}
    row = affinity.row("executor wait-0s", [affinity.stores(killed) | {"restore_s": 1.0}])
    assert row == ["executor", "wait-0s", "6", "2", "67%", "1.00 [1.00, 1.00]", ""]
    silent = affinity.row("none wait-0s", [{"needed": 0, "loaded": 0}])
    assert silent[4] == "not reported"
