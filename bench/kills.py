"""Is a query right after kills? `nexmark bench kills`.

Runs each query on each engine with each kind of state, with two seeds, and kills the driver, an
executor, or both at random moments. Prints how many runs were killed, what the kills hit, and how
many rows were written again (only Kafka's sink may do that; equal rows then count once). Prints the
bars: no wrong table, no run that failed by itself, nothing left behind. With --figures every run is
kept in a file, and the same command continues where it stopped; --runs 0 prints what is there.
"""

from __future__ import annotations

import random
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

from bench.arguments import Parser, whole
from bench.gate import GateBar
from bench.recovery import KilledQueries, build_of, killed_queries
from nexmark.config import load
from nexmark.engines import Build
from nexmark.errors import NexmarkError
from nexmark.labs.kept_runs import KeptRuns
from nexmark.recovery.recovery_run import RecoveryOptions
from nexmark.terminal import columns, show_line

QUERIES = ("q4", "q5", "q9", "q11", "q16", "q18", "q20")
STATES = ("rocksdb", "rocksdb+changelog", "hdfs")
KILLS = ("driver", "executor", "both")
WANTED = 200
"""The least number of killed runs."""
_EVENTS, _TPS, _ROWS = 6_000, 100, 1_000
_NONE = {"wrong": "were wrong", "failed": "failed by themselves", "left": "left something behind"}


@dataclass(frozen=True)
class Case:
    """A run that is killed: what runs, on which engine, with which state, and what a kill hits."""

    query: str
    engine: str
    state: str
    kill: str
    seed: int

    @property
    def name(self) -> str:
        """Return the name of the case without its seed."""
        return f"{self.query} {self.engine} {self.state} {self.kill}"

    def options(self, kills: int, servers: str | None = None) -> RecoveryOptions:
        """Return the options of the run, with `kills` kills."""
        state, _, changelog = self.state.partition("+")
        return RecoveryOptions(
            query=self.query,
            kills=kills,
            events=_EVENTS,
            tps=_TPS,
            seed=self.seed,
            rows_per_batch=_ROWS,
            state=state,
            changelog=bool(changelog),
            kill=self.kill,  # type: ignore[arg-type]
            servers=servers,
            untimed=True,
        )


def cases(engines: Sequence[str], seeds: int) -> list[Case]:
    """Return all cases, seed by seed.

    The cases of a seed are shuffled, so that the first ones are of all kinds.
    """
    shuffled = []
    for seed in range(1, seeds + 1):
        kinds = list(product(QUERIES, engines, STATES, KILLS))
        random.Random(seed).shuffle(kinds)
        shuffled += [Case(*kind, seed) for kind in kinds]
    return shuffled


def ended(queries: KilledQueries, build: Build, options: RecoveryOptions) -> dict[str, Any]:
    """Run a case; return whether it failed or was wrong, its kills, and what it left behind."""
    queries.events(build, options)  # a failure here is not a failure of the query
    try:
        outcome = queries.run(build, options)
    except NexmarkError as error:
        figures: dict[str, Any] = {"failed": str(error)[:500], "wrong": "", "kills": []}
    else:
        moments = [kill["moment"] for kill in outcome["kills"]]
        figures = {"failed": "", "wrong": "; ".join(outcome["failures"])[:500], "kills": moments}
        figures["repeated"] = outcome["repeated_rows"]
    return figures | {"left": queries.left()}


def report(runs: Mapping[tuple[int, str], Mapping[str, Any]]) -> int:
    """Print the table, the runs that were not right, and the bars; return 1 if a bar is missed.

    `runs` has what `ended` returned, by the seed and the name of the case.
    """
    heads = ("engine", "state", "killed", "runs", "kills", "wrong", "failed", "left", "repeated")
    rows: dict[tuple[str, ...], Counter[str]] = {}
    moments: Counter[str] = Counter()
    for (_, name), run in runs.items():
        counts = {
            "runs": min(1, len(run["kills"])),
            "kills": len(run["kills"]),
            "repeated": run.get("repeated") or 0,
            **{key: int(bool(run[key])) for key in ("wrong", "failed", "left")},
        }
        rows.setdefault(tuple(name.split()[1:]), Counter()).update(counts)
        moments.update(run["kills"])
    total = sum(rows.values(), Counter())
    lines = [[*key, *(str(row[head]) for head in heads[3:])] for key, row in sorted(rows.items())]
    lines.append(["all", "", "", *(str(total[head]) for head in heads[3:])])
    print(f"\n{columns(heads, lines)}\n")
    print("kills hit: " + ", ".join(f"{what} {count}" for what, count in moments.most_common()))
    for (seed, name), run in runs.items():
        for key in ("wrong", "failed", "left"):
            if run[key]:
                print(f"{name}, seed {seed}: {key}: {run[key]}")
    bars = [GateBar("killed runs", total["runs"], WANTED, at_least=True)]
    bars += [GateBar(f"runs that {what}", total[key], 0) for key, what in _NONE.items()]
    print("\n".join(map(str, bars)))
    return 0 if all(bar.met for bar in bars) else 1


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; return 0, or 1 if a bar is missed."""
    known = tuple(load().engines)
    parser = Parser(prog="nexmark bench kills", description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--engines", nargs="+", choices=known, default=[known[0], known[-1]])
    parser.add_argument("--kills", type=whole(1, 20), default=5, help="of each run")
    parser.add_argument("--seeds", type=whole(1, 100), default=2)
    parser.add_argument("--runs", type=whole(0, 10_000), help="at most, of the runs that are left")
    parser.add_argument(
        "--bootstrap-servers", metavar="LIST", help="rows go to Kafka, in place of parquet"
    )
    parser.add_argument("--figures", type=Path, help="a file for every run, or with some")
    given = parser.parse_args(argv)
    with killed_queries("kills") as queries:
        servers = given.bootstrap_servers
        of = f"{given.kills} kills in {_EVENTS} events" + (" to Kafka" if servers else "")
        kept = KeptRuns(of, given.figures or queries.work / "input.jsonl")
        left = [
            case
            for case in cases(given.engines, given.seeds)
            if (case.seed, case.name) not in kept.figures
        ]
        for number, case in enumerate(left[: given.runs], 1):
            show_line(f"{number} of {len(left)}: {case.name}, seed {case.seed}")
            options = case.options(given.kills, servers)
            kept.keep(case.seed, case.name, ended(queries, build_of(case.engine), options))
    return report(kept.figures)


if __name__ == "__main__":
    sys.exit(main())
