"""What the shipped gate makes of latency: `nexmark bench latency`.

Starts a broker and runs one query in rounds of three paced runs, each a fresh application: the
baseline, the control (the same once more), and the slowed arm, whose rows come later by a part of
the median. Their order is a night's.

A comparison is what a night does with a query: as many first pairs as gate.yaml says, and fresh
ones if they make it a suspect, judged by the gate, which has learned the noise from the other
comparisons. Comparisons draw their pairs from all rounds; which run of an A/A pair is called the
candidate is drawn, too. They share runs, the less the more --rounds there are. An alarm is a
REGRESSION.

Prints noise, smallest visible change and the bars; exit code 1 when one is missed. With --figures
every run is kept in a file, and the same command continues where it stopped.
"""

from __future__ import annotations

import json
import math
import random
import statistics
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from bench.arguments import Parser, whole
from bench.gate import GateBar
from nexmark.config import Gate, load, paths
from nexmark.config.load import load_gate
from nexmark.engines import local_environment, resolve
from nexmark.errors import NexmarkError
from nexmark.kafka import broker
from nexmark.kafka.jars import connector
from nexmark.kafka.topics import KafkaCluster
from nexmark.latency.matching import MATCHINGS
from nexmark.latency.paced_run import PacedRuns
from nexmark.model import P50, P99, Arm, Value
from nexmark.terminal import columns, say
from nexmark.verdict.measured_night import Measured, MeasuredNight, Pair, QueryVerdict
from nexmark.verdict.nightly import judge_night
from nexmark.verdict.order import arm_order, fresh_pairs
from nexmark_jobs.host.processes import OWNER_VARIABLE
from nexmark_jobs.real_time import later_confs

ARMS = (Arm.BASELINE, Arm.CONTROL, Arm.SLOWED)
COMPARISONS = 20
FOUND = 0.9
"""The part of the seeded slowdowns that has to be found."""
_ATTEMPTS = 3


@dataclass(frozen=True)
class Asked:
    """What is measured, and where every run is kept."""

    query: str
    trigger: str
    rate: int
    seconds: int
    warm_up: int
    rounds: int
    later: float
    file: Path


@dataclass
class Runs:
    """The runs so far: a line of JSON each, with round and arm."""

    asked: Asked
    found: dict[tuple[int, str], dict[str, float]] = field(default_factory=dict)
    again: int = 0

    def read(self) -> None:
        """Take what an earlier command has measured; NexmarkError if that asked for others."""
        for line in self.asked.file.read_text().splitlines() if self.asked.file.exists() else ():
            kept = json.loads(line)
            if kept["of"] != self._of():
                raise NexmarkError(
                    f"{self.asked.file}: holds runs of {kept['of']}, not of {self._of()}; name "
                    "another file"
                )
            self.found[kept["round"], kept["arm"]] = kept

    def measure(self, runs: PacedRuns) -> None:
        """Run what is missing: a first run that does not count, two that tell p50, the rounds."""
        for number in range(3):
            self._run(runs, 0, f"first {number}", {})
        asked = self.asked
        confs = later_confs(asked.query, asked.trigger, self.usual, asked.later)
        say(f"the slowed arm has {confs}")
        for number, arm in arm_order(self.asked.rounds, ARMS, "latency"):
            self._run(runs, number, arm, confs if arm == Arm.SLOWED else {})

    @property
    def usual(self) -> float:
        """The p50 of the runs before the rounds."""
        return statistics.mean(self.found[0, f"first {number}"][P50] for number in (1, 2))

    def ratios(self, over: str, under: str, metric: str) -> list[float]:
        """The log ratio of each round."""
        return [
            math.log(self.found[number, over][metric] / self.found[number, under][metric])
            for number in range(1, self.asked.rounds + 1)
        ]

    def pair(self, number: int, place: int, arms: tuple[str, str], metric: str) -> Pair:
        """Round `number` as pair `place` of a comparison."""
        candidate, baseline = (self.found[number, arm][metric] for arm in arms)
        return Pair(place, candidate, baseline)

    def _run(self, runs: PacedRuns, number: int, arm: str, confs: Mapping[str, str]) -> None:
        if (number, arm) in self.found:
            return
        asked = self.asked
        for _ in range(_ATTEMPTS):
            figures = runs.run(
                asked.query, asked.trigger, asked.rate, asked.seconds, asked.warm_up, confs
            )
            if not figures.invalid:
                break
            say(f"INVALID, once more: {figures.invalid}")
            self.again += 1
        else:
            raise NexmarkError(f"{arm} of round {number}: INVALID {_ATTEMPTS} times; see above")
        kept = {P50: figures.p50, P99: figures.p99, "lag_p99": figures.lag_p99}
        say(f"round {number} {arm}: p50 {figures.p50:.2f} ms, p99 {figures.p99:.2f} ms")
        self.found[number, arm] = kept
        with self.asked.file.open("a") as file:
            print(json.dumps({"of": self._of(), "round": number, "arm": arm, **kept}), file=file)

    def _of(self) -> str:
        a = self.asked
        return f"{a.query} {a.trigger} {a.rate}/s {a.warm_up}+{a.seconds} s, {a.later:.0%} later"


def comparisons(runs: Runs, arms: tuple[str, str], rules: Gate) -> Iterator[MeasuredNight]:
    """Twenty nights with pairs drawn from the rounds; of A/A pairs the candidate is drawn."""
    drawn = random.Random(f"{arms}")
    first, fresh = rules.pairs, fresh_pairs(rules.pairs, rules)
    for name in range(COMPARISONS):
        rounds = drawn.sample(range(1, runs.asked.rounds + 1), first + fresh)
        turned = [drawn.random() < 0.5 and Arm.SLOWED not in arms for _ in rounds]
        measured = []
        for metric in (P50, P99):
            pairs = [
                runs.pair(number, place, arms[::-1] if turn else arms, metric)
                for place, (number, turn) in enumerate(zip(rounds, turned, strict=True), 1)
            ]
            measured.append(
                Measured(runs.asked.query, metric, tuple(pairs[:first]), tuple(pairs[first:]))
            )
        yield MeasuredNight(f"{' '.join(arms)} {name}", tuple(measured))


def judged(runs: Runs, metric: str, gate: Gate) -> tuple[list[QueryVerdict], list[QueryVerdict]]:
    """The verdicts on the A/A comparisons and on the seeded ones, where `metric` decides."""
    rules = gate.model_copy(update={"metric": metric, "mode": "paired"})
    control = list(comparisons(runs, (Arm.CONTROL, Arm.BASELINE), rules))
    seeded = comparisons(runs, (Arm.SLOWED, Arm.BASELINE), rules)
    known = [judge_night(night, [], rules) for night in control]
    alike = [
        _of(metric, judge_night(night, known[:at] + known[at + 1 :], rules))
        for at, night in enumerate(control)
    ]
    return alike, [_of(metric, judge_night(night, known, rules)) for night in seeded]


def _of(metric: str, verdicts: Sequence[QueryVerdict]) -> QueryVerdict:
    return next(verdict for verdict in verdicts if verdict.metric == metric)


def report(runs: Runs, gate: Gate) -> int:
    """Print noise and bars; 1 if a bar is missed."""
    rows, bars = [], []
    for metric in (P50, P99):
        alike, seeded = judged(runs, metric, gate)
        alarms, found = (sum(x.value == Value.REGRESSION for x in y) for y in (alike, seeded))
        suspects = sum(x.fresh_pairs > 0 for x in alike)
        seen = statistics.median(x.mde for x in alike if x.mde is not None)
        spread = statistics.stdev(runs.ratios(Arm.CONTROL, Arm.BASELINE, metric))
        rise = math.expm1(statistics.median(runs.ratios(Arm.SLOWED, Arm.BASELINE, metric)))
        usual = statistics.median(
            runs.found[number, Arm.BASELINE][metric] for number in range(1, runs.asked.rounds + 1)
        )
        cells = [f"{usual:.1f}", f"{spread:.1%}", f"{seen:.1%}", f"{rise:+.1%}"]
        rows.append([metric, *cells, f"{suspects}", f"{alarms}", f"{found}"])
        if metric == gate.paced_metric:
            text = f"alarms in {COMPARISONS} A/A comparisons by {metric}"
            bars.append(GateBar(text, alarms, 0))
            text = f"found: rows later by {runs.asked.later:.0%} of p50, part of {COMPARISONS}"
            bars.append(GateBar(text, found / COMPARISONS, FOUND, at_least=True))
    heads = ("metric", "ms", "spread of an A/A pair", "smallest visible", "slowed arm")
    print(f"\n{columns((*heads, 'suspects', 'alarms', 'found'), rows)}\n")
    print("\n".join(map(str, bars)))
    return 0 if all(bar.met for bar in bars) else 1


@contextmanager
def paced_runs(engine: str) -> Iterator[PacedRuns]:
    """Runs of an engine with a broker of their own, which ends with the context."""
    build = resolve(load().engines[engine].build, paths.builds_dir(), say=say)
    brokers = broker.of_latencies()
    try:
        kafka = KafkaCluster(brokers.up(1, broker.LATENCY_PORT, say))
        with tempfile.TemporaryDirectory(prefix="nexmark-latency-") as directory:
            work = Path(directory)
            environment = local_environment(build.spark_home, work) | {OWNER_VARIABLE: brokers.mark}
            yield PacedRuns(build, connector(build.version, say), kafka, environment, work, say)
    finally:
        brokers.down()


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; 0, 1 when a bar is missed, 2 for a wrong argument."""
    gate = load_gate()
    pairs = gate.pairs + fresh_pairs(gate.pairs, gate)
    engines = load().engines
    parser = Parser(prog="bench.latency", description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--query", choices=tuple(MATCHINGS), default="q0")
    parser.add_argument("--trigger", choices=("micro-batch", "real-time"), default="micro-batch")
    parser.add_argument("--rate", type=whole(10, 100_000), default=1_000, help="events per second")
    parser.add_argument("--seconds", type=whole(2, 3600), default=10, help="of each run")
    parser.add_argument("--warm-up", type=whole(0, 600), default=10, help="seconds before")
    parser.add_argument("--rounds", type=whole(pairs, 1000), default=pairs)
    parser.add_argument("--later", type=float, default=0.2, help="the seeded part of p50")
    parser.add_argument("--engine", choices=tuple(engines), default=next(iter(engines)))
    parser.add_argument("--figures", type=Path, help="a file for every run, or with some")
    given = parser.parse_args(argv)
    if not later_confs(given.query, given.trigger, 1, given.later):
        parser.error(f"--query: {given.query} has nothing in which its rows could wait; take q17")
    with tempfile.TemporaryDirectory() as directory:
        file = given.figures or Path(directory) / "runs.jsonl"
        asked = Asked(
            *(given.query, given.trigger, given.rate, given.seconds, given.warm_up),
            *(given.rounds, given.later, file),
        )
        runs = Runs(asked)
        runs.read()
        with paced_runs(given.engine) as measuring:
            runs.measure(measuring)
    print(f"\n{runs._of()}; {given.rounds} rounds; {runs.again} runs were INVALID and run again")
    return report(runs, gate)


if __name__ == "__main__":
    sys.exit(main())
