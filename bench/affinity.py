"""Does a restarted task find its state nearby? `nexmark bench affinity`.

Runs a query on two executors, and kills none, an executor or a worker, with `spark.locality.wait`
3 s and 0 s and with `unloadOnCommit`. Prints how many stores the batches from the kill on needed,
how many of them were loaded from the checkpoint (Spark 4.2 and newer count them), and what the kill
cost. With --figures every run is kept in a file, and the same command continues where it stopped.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import Any

from bench.arguments import whole
from bench.recovery import build_of, killed_queries, options_parser, right
from nexmark.labs.kept_runs import KeptRuns
from nexmark.model import INTERRUPTION, RESTORE, Spread
from nexmark.night.kinds.recovery import figures_of
from nexmark.night.run_directory import RecoverySplits
from nexmark.recovery.kill_plan import spread_kills
from nexmark.recovery.recovery_run import RecoveryOptions
from nexmark.recovery.remote_storage import RemoteStorage
from nexmark.terminal import columns, show_line

SETTINGS = {
    "wait-3s": {"spark.locality.wait": "3s"},
    "wait-0s": {"spark.locality.wait": "0s"},
    "unload": {"spark.sql.streaming.stateStore.unloadOnCommit": "true"},
}
"""The Spark confs of each setting that is compared."""
KILLS = ("none", "executor", "worker")


def stores(outcome: Mapping[str, Any]) -> dict[str, int]:
    """Return how many state stores the batches from the kill on needed, and how many they loaded.

    Without a kill, all batches count. Operators whose loads Spark does not report do not count.
    """
    first = min((kill["batch"] for kill in outcome["kills"]), default=1)
    lines = [
        line
        for line in outcome["commit"]
        if line["batch"] >= first and line["stores_loaded"] is not None
    ]
    return {
        "needed": sum(line["stores"] or 0 for line in lines),
        "loaded": sum(line["stores_loaded"] for line in lines),
    }


def row(name: str, runs: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return a row of the table: kill, setting, stores needed and loaded, hit rate, costs.

    `name` is the kill and the setting, `runs` are the figures of their runs.
    """
    needed, loaded = (sum(run[key] for run in runs) for key in ("needed", "loaded"))
    hits = f"{1 - loaded / needed:.0%}" if needed else "not reported"
    costs = [[run[metric] for run in runs if metric in run] for metric in (RESTORE, INTERRUPTION)]
    spreads = [str(Spread.of(values)) if values else "" for values in costs]
    return [*name.split(), str(needed), str(loaded), hits, *spreads]


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; return 0. A wrong argument ends with exit code 2."""
    parser = options_parser("affinity", __doc__)
    parser.add_argument("--rounds", type=whole(1, 100), default=5)
    parser.add_argument("--figures", type=Path, help="a file for every run, or with some")
    given = parser.parse_args(argv)
    batches = -(-given.events // given.rows_per_batch)
    of = f"affinity of {given.query} {given.events}/{given.rows_per_batch} {given.engine}"
    with killed_queries("affinity") as queries:
        kept = KeptRuns(of, given.figures or queries.work / "input.jsonl")
        for number, kill, setting in product(range(1, given.rounds + 1), KILLS, SETTINGS):
            arm = f"{kill} {setting}"
            if (number, arm) in kept.figures:
                continue
            plan = spread_kills(batches, 0.5, 1) if kill != "none" else []
            options = RecoveryOptions(
                query=given.query,
                kills=len(plan),
                events=given.events,
                tps=1_000,
                seed=1,
                rows_per_batch=given.rows_per_batch,
                state="rocksdb",
                changelog=False,
                kill="worker" if kill == "worker" else "executor",
                remote=RemoteStorage(latency_ms=20, mb_per_s=20),
                conf=SETTINGS[setting],
            )
            outcome = right(queries.run(build_of(given.engine), options, plan), len(plan))
            figures = figures_of(RecoverySplits.model_validate(outcome))
            kept.keep(number, arm, stores(outcome) | figures)
            show_line(f"round {number} {arm}: {kept.figures[number, arm]}")
    rows = [
        row(arm, [run for (_, name), run in kept.figures.items() if name == arm])
        for arm in dict.fromkeys(name for _, name in kept.figures)
    ]
    print(f"\n{of}, {given.rounds} rounds\n")
    heads = ("killed", "setting", "stores needed", "loaded", "hit rate")
    print(columns((*heads, "restore s", "interruption s"), rows))
    return 0


if __name__ == "__main__":
    sys.exit(main())
