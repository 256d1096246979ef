"""Does the gate find real regressions? `python -m nexmark.detection` (`make bench-detection`).

Nights of pairs on real Spark through the real DAG, in a home of its own. First a build against
itself: from these nights the gate learns the noise, and the ones after that may not alarm. Then a
night for each cause, which only the candidate has. Last, each cause with many pairs: the true
effect. Prints what the gate said of each, and what it cost.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import yaml

from nexmark.config import load, paths
from nexmark.errors import NexmarkError
from nexmark.store import Store, open_store
from nexmark.store.models import VerdictRow

WORKLOAD = "detection"
#: Twenty batches of a second or so, of which sixteen count.
SIZE = {"events": 1_000_000, "tps": 10_000, "rows_per_batch": 50_000, "warmup_batches": 4}
VERIFY = {"events": 50_000, "tps": 1_000, "rows_per_batch": 25_000}
_LINE = "{:<32} {:<5} {:<22} {:<12} {:<22} {:<6} {}"
_STATE = "spark.sql.streaming.stateStore"
_ROCKSDB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"


@dataclass(frozen=True)
class Cause:
    """A reason to be slower, and the query that shows it."""

    name: str
    query: str
    conf: Mapping[str, str] = field(default_factory=dict)
    candidate: str = ""

    @property
    def options(self) -> list[str]:
        """What makes a night have it, as options of `nexmark.run`."""
        confs = [word for k, v in self.conf.items() for word in ("--candidate-conf", f"{k}={v}")]
        return [*confs, *(["--candidate", self.candidate] if self.candidate else [])]


CAUSES = (
    Cause("no whole-stage code generation", "q0", {"spark.sql.codegen.wholeStage": "false"}),
    Cause("24 shuffle partitions, not 2", "q5", {"spark.sql.shuffle.partitions": "24"}),
    Cause(
        "a sort before each aggregation", "q5", {"spark.sql.execution.useHashAggregate": "false"}
    ),
    Cause("RocksDB, not memory, for state", "q18", {f"{_STATE}.providerClass": _ROCKSDB}),
    Cause("an older Spark, 4.2.1", "q5", candidate="pypi:4.2.1"),
)


@dataclass(frozen=True)
class Counts:
    """Nights to learn from, nights to be silent in, and the pairs of a true effect."""

    learning: int
    silent: int
    true_pairs: int


@dataclass(frozen=True)
class Night:
    """What came of a night: the verdict on each query, and what it cost."""

    verdicts: Mapping[str, VerdictRow]
    minutes: float


class Bench:
    """Nights in a home of their own, each with the private Airflow of `make run`."""

    def __init__(self, home: Path, pairs: int, nights: int) -> None:
        """Copy the configuration, with a workload and a gate that learns from few nights."""
        self.home, self.conf, self.pairs = home / "home", home / "conf", pairs
        shutil.rmtree(home, ignore_errors=True)
        shutil.copytree(paths.conf_dir(), self.conf)
        self._edit("workloads.yaml", "workloads", {WORKLOAD: {**SIZE, "verify": VERIFY}})
        gate = {"pairs": pairs, "calibration_nights": nights, "self_test": 0}
        self._edit("gate.yaml", None, gate)

    def _edit(self, name: str, section: str | None, changes: Mapping[str, object]) -> None:
        path = self.conf / name
        content = yaml.safe_load(path.read_text())
        (content[section] if section else content).update(changes)
        path.write_text(yaml.safe_dump(content))

    def only_measure(self) -> None:
        """Let no night after this look into what it suspects: it has pairs enough."""
        self._edit("gate.yaml", None, {"calibration_nights": 60, "one_arm_nights": 60})

    def night(self, queries: Sequence[str], *options: str) -> Night:
        """Run a night; NexmarkError with its last words if it was not judged."""
        begin = time.monotonic()
        command = [sys.executable, "-m", "nexmark.run", "--workload", WORKLOAD]
        command += ["--mode", "paired", "--queries", ",".join(queries), *options]
        environment = {"NEXMARK_HOME": str(self.home), "NEXMARK_CONF": str(self.conf)}
        run = subprocess.run(
            command, env={**os.environ, **environment}, capture_output=True, text=True
        )
        name = re.search(r"Run (\S+/\S+)", run.stdout)
        if name is None:
            raise NexmarkError(
                f"a night ended before it was judged: {(run.stdout + run.stderr)[-500:]}"
            )
        with self._store() as store:
            rows = [row for row in store.verdicts(name[1]) if row.decides]
            if not any(row.baseline_build for row in rows):
                store.accept(name[1], "bench-detection", "the build that causes are held against")
        return Night({row.query: row for row in rows}, (time.monotonic() - begin) / 60)

    def _store(self) -> Store:
        return open_store(f"sqlite:///{self.home / 'results.db'}")


def measure(bench: Bench, causes: Sequence[Cause], counts: Counts) -> Iterator[str]:
    """Run all nights; yields a line on each as it has ended, and the table."""
    queries = list(dict.fromkeys(cause.query for cause in causes))
    bench.night(queries, "--repetitions", "3")
    for number in range(1, counts.learning + counts.silent + 1):
        night = bench.night(queries)
        red = [f"{query} {row.value}" for query, row in night.verdicts.items() if row.red]
        what = "to learn from" if number <= counts.learning else "judged"
        said = ", ".join(red) or "silent"
        yield f"A against A, night {number}, {what}: {said}, {night.minutes:.1f} min"
    found = []
    for cause in causes:
        found.append(bench.night([cause.query], *cause.options))
        row = found[-1].verdicts[cause.query]
        yield f"{cause.name}: {row.value}, {found[-1].minutes:.1f} min"
    bench.only_measure()  # last, since such nights would be taken for noise
    yield _LINE.format("cause", "query", "true effect", "verdict", "found", "pairs", "min")
    for cause, night in zip(causes, found, strict=True):
        many = bench.night([cause.query], *cause.options, "--repetitions", str(counts.true_pairs))
        true, row = many.verdicts[cause.query], night.verdicts[cause.query]
        pairs = f"{row.pairs or 0}+{row.fresh_pairs or 0}"
        yield _LINE.format(
            *(cause.name, cause.query, _ratio(true), row.value, _ratio(row), pairs),
            f"{night.minutes:.1f}",
        )


def _ratio(row: VerdictRow) -> str:
    if row.ratio is None or row.lo is None or row.hi is None:
        return "-"
    return f"{row.ratio:.3f} ({row.lo:.3f}-{row.hi:.3f})"


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the table; 1 with a line of words if a night could not be run."""
    parser = argparse.ArgumentParser(
        prog="nexmark.detection", description=(__doc__ or "").split("\n")[0]
    )
    parser.add_argument("--pairs", type=int, default=5, help="first pairs of each night (5)")
    parser.add_argument("--nights", type=int, default=4, help="A/A nights to learn from (4)")
    parser.add_argument("--silent", type=int, default=2, help="A/A nights after these (2)")
    parser.add_argument("--true-pairs", type=int, default=15, help="pairs for the true effect (15)")
    parser.add_argument("--query", action="append", help="only causes of this query")
    options = parser.parse_args(arguments)
    try:
        load()
        causes = [x for x in CAUSES if not options.query or x.query in options.query]
        bench = Bench(paths.home() / "detection", options.pairs, options.nights)
        load_average = os.getloadavg()[0]
        print(f"load {load_average:.1f}, {os.cpu_count()} cores", flush=True)
        counts = Counts(options.nights, options.silent, options.true_pairs)
        for line in measure(bench, causes, counts):
            print(line, flush=True)
    except NexmarkError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
