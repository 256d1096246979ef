"""Test how the shipped gate judges recovery: `nexmark bench recovery`.

Runs one query in rounds of three runs and kills it half-way between two commits. The arms are the
baseline, the control (the baseline once more), and the slowed arm, whose remote storage has a
longer latency. `bench.rounds` draws comparisons from the rounds. The CPU time is of all processes
of a run. The command prints the noise, the smallest visible change and the bars: no alarm between
equal arms; the slowed arm is found by its restore and not by its CPU time. The exit code is 1 if a
bar is missed. With --figures every run is kept in a file, and the same command continues where it
stopped.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from bench.arguments import Parser, whole
from bench.rounds import USUAL, Rounds
from nexmark.cli.recovery_verbs import marked_processes
from nexmark.config import load, paths
from nexmark.config.load import load_gate
from nexmark.engines import Build, resolve
from nexmark.engines.launcher import Launcher, dump_events
from nexmark.errors import NexmarkError
from nexmark.labs.kafka_tools import children_cpu_s
from nexmark.labs.kept_runs import KeptRuns
from nexmark.model import COMMIT, CPU, INTERRUPTION, RESTORE, Arm
from nexmark.night.kinds.recovery import figures_of
from nexmark.night.run_directory import RecoverySplits
from nexmark.recovery.kill_plan import Kill, spread_kills
from nexmark.recovery.recovery_run import RecoveryOptions, recover
from nexmark.recovery.remote_storage import RemoteStorage
from nexmark.terminal import show_line
from nexmark_jobs.host.processes import OWNER_VARIABLE, owned

METRICS = (RESTORE, COMMIT, INTERRUPTION, CPU)


@dataclass(frozen=True)
class KilledQueries:
    """Runs queries with kills, with all files below the directory `work`.

    `mark` is the environment variable that marks their processes.
    """

    work: Path
    mark: Mapping[str, str]

    def run(
        self, build: Build, options: RecoveryOptions, plan: Sequence[Kill] | None = None
    ) -> dict[str, Any]:
        """Run a query once; return the outcome of `recover` with the CPU time of all processes."""
        events, out = self.events(build, options), self.work / "out"
        before = children_cpu_s()
        try:
            outcome = recover(build, options, out, self.mark, show_line, plan, events)
        finally:
            shutil.rmtree(out, ignore_errors=True)
        return outcome | {CPU: (children_cpu_s() - before) * 1e6 / options.events}

    def left(self) -> list[str]:
        """Return the processes and the files, without the input, that the runs have left behind."""
        processes = [process.command for process in owned(self.mark[OWNER_VARIABLE])]
        files = [each.name for each in self.work.iterdir() if not each.name.startswith("input")]
        return processes + files

    def events(self, build: Build, options: RecoveryOptions) -> Path:
        """Return the directory of the events for the reference; write them at the first call."""
        place = self.work / "".join(["input", *options.input])
        if not (place / "done").exists():
            shutil.rmtree(place, ignore_errors=True)
            place.mkdir()
            launcher = Launcher(build, {}, place, self.mark)
            dump_events(launcher, options.input, place / "events", "parquet")
            (place / "done").touch()
        return place / "events"


@contextmanager
def killed_queries(what: str) -> Iterator[KilledQueries]:
    """Yield a `KilledQueries` whose directory has all temporary files of this process."""
    with (
        tempfile.TemporaryDirectory(prefix="nexmark-kills-", ignore_cleanup_errors=True) as work,
        marked_processes(f"bench {what} {work}") as mark,
    ):
        usual, tempfile.tempdir = tempfile.tempdir, work
        try:
            yield KilledQueries(Path(work), mark)
        finally:
            tempfile.tempdir = usual


def build_of(engine: str) -> Build:
    """Return the build of an engine."""
    return resolve(load().engines[engine].build, paths.builds_dir(), say=show_line)


def right(outcome: Mapping[str, Any], kills: int) -> Mapping[str, Any]:
    """Return the outcome of a run.

    Raises:
        NexmarkError: The final table is wrong, or there were fewer than `kills` kills.
    """
    if not outcome["right"] or len(outcome["kills"]) < kills:
        wrong = outcome["failures"] or [f"reached its end after {len(outcome['kills'])} kills"]
        raise NexmarkError(f"{outcome['query']}: {'; '.join(wrong)}")
    return outcome


def options_parser(prog: str, text: str | None) -> Parser:
    """Return a parser with the options that benchmarks of recovery share."""
    engines = tuple(load().engines)
    parser = Parser(prog=f"nexmark bench {prog}", description=(text or "").split("\n", 1)[0])
    parser.add_argument("--query", default="q20")
    parser.add_argument("--events", type=whole(1_000, 10**9), default=20_000)
    parser.add_argument("--rows-per-batch", type=whole(100, 10**8), default=4_000)
    parser.add_argument("--engine", choices=engines, default=engines[0])
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; return 0, or 1 if a bar is missed."""
    gate = load_gate()
    fewest = sum(gate.rounds[:2])
    parser = options_parser("recovery", __doc__)
    parser.add_argument("--kill", choices=("driver", "executor", "worker"), default="driver")
    parser.add_argument("--rounds", type=whole(fewest, 1000), default=max(USUAL, fewest))
    parser.add_argument("--latency-ms", type=whole(1, 1000), default=20)
    parser.add_argument("--slower", type=float, default=2.0, help="times the latency")
    parser.add_argument("--figures", type=Path, help="a file for every run, or with some")
    given = parser.parse_args(argv)
    storage = RemoteStorage(given.latency_ms, 20)
    options = RecoveryOptions(
        query=given.query,
        kills=1,
        events=given.events,
        tps=1_000,
        seed=1,
        rows_per_batch=given.rows_per_batch,
        state="rocksdb",
        changelog=False,
        kill=given.kill,
        remote=storage,
    )
    slow = replace(options, remote=replace(storage, latency_ms=given.slower * storage.latency_ms))
    plan = spread_kills(-(-given.events // given.rows_per_batch), 0.5, 1)
    of = f"{given.query} {given.events}/{given.rows_per_batch} {given.engine}, "
    of += f"{given.kill} killed, {given.latency_ms} ms, {given.slower:g} times slower"
    with killed_queries("recovery") as queries:
        kept = KeptRuns(of, given.figures or queries.work / "input.jsonl")
        rounds = Rounds(kept, given.query, given.rounds, METRICS)
        for number, arm in rounds.missing("recovery"):
            of_arm = slow if arm == Arm.SLOWED else options
            outcome = right(queries.run(build_of(given.engine), of_arm, plan), 1)
            figures = figures_of(RecoverySplits.model_validate(outcome)) | {CPU: outcome[CPU]}
            kept.keep(number, arm, figures)
            shown = ", ".join(f"{name} {value:.2f}" for name, value in figures.items())
            show_line(f"round {number} {arm}: {shown}")
    print(f"\n{of}; {given.rounds} rounds")
    slowed = f"latency times {given.slower:g}"
    return rounds.report(gate, gate.recovery_metric, slowed, quiet=[CPU])


if __name__ == "__main__":
    sys.exit(main())
