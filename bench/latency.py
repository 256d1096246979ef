"""Test how the shipped gate judges latency: `nexmark bench latency`.

Starts a broker and runs one query in rounds of three paced runs, each a fresh application: the
baseline, the control (the baseline once more), and the slowed arm, whose rows come later by a part
of the median latency. The order of the runs is the order of a night.

`bench.rounds` draws comparisons from the rounds. The command prints the noise, the smallest visible
change and the bars; the exit code is 1 if a bar is missed. With --figures every run is kept in a
file, and the same command continues where it stopped.
"""

from __future__ import annotations

import statistics
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from bench.arguments import Parser, whole
from bench.rounds import USUAL, Rounds
from nexmark.config import load, paths
from nexmark.config.load import load_gate
from nexmark.engines import resolve
from nexmark.errors import NexmarkError
from nexmark.kafka import broker
from nexmark.kafka.jars import connector
from nexmark.kafka.topics import KafkaCluster
from nexmark.labs.kept_runs import KeptRuns
from nexmark.latency.matching import MATCHINGS
from nexmark.latency.measuring import PacedRuns
from nexmark.model import P50, P99, Arm
from nexmark.terminal import show_line
from nexmark_jobs.host.processes import OWNER_VARIABLE
from nexmark_jobs.real_time import later_confs

_ATTEMPTS = 3


@dataclass(frozen=True)
class Asked:
    """The measurement that the command line asks for.

    ``rate`` is in events per second; ``seconds`` are measured after ``warm_up`` seconds; ``later``
    is the part of the median by which the rows of the slowed arm come later.
    """

    query: str
    trigger: str
    rate: int
    seconds: int
    warm_up: int
    rounds: int
    later: float

    def __str__(self) -> str:
        """Return the measurement as the file of runs names it."""
        size = f"{self.rate}/s {self.warm_up}+{self.seconds} s"
        return f"{self.query} {self.trigger} {size}, {self.later:.0%} later"


def rounds_of(asked: Asked, file: Path) -> Rounds:
    """Return the rounds of a measurement whose runs are kept in `file`."""
    return Rounds(KeptRuns(str(asked), file), asked.query, asked.rounds, (P50, P99))


@dataclass
class PacedRounds:
    """Runs the missing runs of the rounds; ``again`` counts the runs that were invalid."""

    asked: Asked
    rounds: Rounds
    runs: PacedRuns
    again: int = 0

    def measure(self) -> None:
        """Run one run that does not count, two runs that show the usual p50, then the rounds."""
        asked, kept = self.asked, self.rounds.runs
        for arm in ("first 0", "first 1", "first 2"):
            if (0, arm) not in kept.figures:
                self._run(0, arm, {})
        usual = statistics.mean(kept.figures[0, f"first {number}"][P50] for number in (1, 2))
        confs = later_confs(asked.query, asked.trigger, usual, asked.later)
        show_line(f"the slowed arm has {confs}")
        for number, arm in self.rounds.missing("latency"):
            self._run(number, arm, confs if arm == Arm.SLOWED else {})

    def _run(self, number: int, arm: str, confs: Mapping[str, str]) -> None:
        asked = self.asked
        for _ in range(_ATTEMPTS):
            figures = self.runs.run(
                asked.query, asked.trigger, asked.rate, asked.seconds, asked.warm_up, confs
            )
            if not figures.invalid:
                break
            show_line(f"INVALID, once more: {figures.invalid}")
            self.again += 1
        else:
            raise NexmarkError(f"{arm} of round {number}: INVALID {_ATTEMPTS} times; see above")
        show_line(f"round {number} {arm}: p50 {figures.p50:.2f} ms, p99 {figures.p99:.2f} ms")
        kept = {P50: figures.p50, P99: figures.p99, "lag_p99": figures.lag_p99}
        self.rounds.runs.keep(number, arm, kept)


@contextmanager
def paced_runs(engine: str) -> Iterator[PacedRuns]:
    """Yield the paced runs of an engine, with a broker of their own that ends with the context."""
    build = resolve(load().engines[engine].build, paths.builds_dir(), say=show_line)
    jars, brokers = connector(build.version, show_line), broker.of_this_machine("latency")
    try:
        kafka = KafkaCluster(brokers.up(1, broker.LATENCY_PORT, show_line))
        with tempfile.TemporaryDirectory(prefix="nexmark-latency-") as directory:
            mark = {OWNER_VARIABLE: brokers.mark}
            yield PacedRuns(build, jars, kafka, mark, Path(directory), show_line)
    finally:
        brokers.down()


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; return 0, or 1 if a bar is missed."""
    gate = load_gate()
    fewest = sum(gate.rounds[:2])
    engines = load().engines
    parser = Parser(prog="nexmark bench latency", description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--query", choices=tuple(MATCHINGS), default="q0")
    parser.add_argument("--trigger", choices=("micro-batch", "real-time"), default="micro-batch")
    parser.add_argument("--rate", type=whole(10, 100_000), default=1_000, help="events per second")
    parser.add_argument("--seconds", type=whole(2, 3600), default=10, help="of each run")
    parser.add_argument("--warm-up", type=whole(0, 600), default=10, help="seconds before")
    parser.add_argument("--rounds", type=whole(fewest, 1000), default=max(USUAL, fewest))
    parser.add_argument("--later", type=float, default=0.2, help="the seeded part of p50")
    parser.add_argument("--engine", choices=tuple(engines), default=next(iter(engines)))
    parser.add_argument("--figures", type=Path, help="a file for every run, or with some")
    given = parser.parse_args(argv)
    if not later_confs(given.query, given.trigger, 1, given.later):
        parser.error(f"--query: {given.query} has nothing in which its rows could wait; take q17")
    with tempfile.TemporaryDirectory() as directory:
        asked = Asked(
            query=given.query,
            trigger=given.trigger,
            rate=given.rate,
            seconds=given.seconds,
            warm_up=given.warm_up,
            rounds=given.rounds,
            later=given.later,
        )
        rounds = rounds_of(asked, given.figures or Path(directory) / "runs.jsonl")
        with paced_runs(given.engine) as runs:
            measuring = PacedRounds(asked, rounds, runs)
            measuring.measure()
    print(f"\n{asked}; {given.rounds} rounds; {measuring.again} runs were INVALID and run again")
    slowed = f"rows later by {given.later:.0%} of p50"
    return rounds.report(gate, gate.paced_metric, slowed)


if __name__ == "__main__":
    sys.exit(main())
