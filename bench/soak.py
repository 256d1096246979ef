"""How often a soak night is wrong, and what it finds: `nexmark bench soak`.

Runs the code that judges soak nights over simulated ones of four queries, in rounds of one pair as
`soak_rounds` says, with the 720 batches that the workload `soak` has. The noise of the first world
is that which four repetitions of q0 on 4.3.0 had (1,200 batches, 2026-11-28): the live heap is
within 0.02 MB of a line, and the CPU time of a batch varies by 13 % and falls by 30 % per 1,000
batches, while the JVM still compiles. From one sample to the next, one time in five, a pool has a
thread or a connection more or less, as in repetitions of all four queries (2026-11-30). The second
world is a machine with other load: every fifth sample has up to 8 threads and files more or fewer,
as was seen there, and the CPU time of each repetition drifts by itself. Prints the alarms of nights
in which nothing leaks, how many queries stay undecided, and how often a leak of a size is red; exit
code 1 when there are more alarms than the bar.
"""

from __future__ import annotations

import argparse
import random
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from types import MappingProxyType
from typing import Any, NamedTuple

from bench.arguments import Parser, whole
from nexmark.config import Gate
from nexmark.config.load import load_gate
from nexmark.model import GROWTH, Value
from nexmark.terminal import columns, run_command
from nexmark.verdict.measured_night import Aged, MeasuredNight
from nexmark.verdict.nightly import going_on, judge_night

QUERIES = ("q0", "q5", "q17", "q20")
BAR = 0.01
"""Alarms per night in which nothing leaks."""
BATCHES, SAMPLES, WARMUP, ROWS_PER_BATCH = 720, 9, 240, 200
_MB, _JUMP = 1e6, 8
_BATCH_CPU_S = 0.18
Leak = Mapping[str, float]
NONE: Leak = MappingProxyType({})
#: What the candidate leaks per 1,000 batches: MB, threads, files, percent of a batch's CPU time.
LEAKS: tuple[tuple[str, Leak], ...] = (
    ("live heap +1 MB", {"heap": 1.0}),
    ("live heap +3 MB", {"heap": 3.0}),
    ("live heap +10 MB", {"heap": 10.0}),
    ("threads +3", {"threads": 3.0}),
    ("threads +15", {"threads": 15.0}),
    ("open files +15", {"files": 15.0}),
    ("CPU of a batch +20 %", {"cpu": 20.0}),
    ("CPU of a batch +60 %", {"cpu": 60.0}),
)


@dataclass(frozen=True)
class World:
    """How the figures of a repetition vary where nothing leaks.

    Attributes:
        name: what the table calls it.
        heap_mb: the standard deviation of the live heap.
        heap_growth_mb: what both arms grow by, in 1,000 batches.
        pools: how often a pool has a thread or a file more or less than in the sample before.
        jumps: the share of samples in which threads and open files move by up to 8.
        cpu: the coefficient of variation of the CPU time of a batch, from sample to sample.
        cpu_trend: by how many percent it changes in 1,000 batches, in every repetition.
        drift: the standard deviation of a trend that each repetition has for itself, in percent.
    """

    name: str
    heap_mb: float
    heap_growth_mb: float
    pools: float
    jumps: float
    cpu: float
    cpu_trend: float
    drift: float = 0.0


WORLDS = (
    World("as measured", 0.02, 0.27, 0.2, 0.0, 0.13, -30.0),
    World("beside other load", 0.2, 0.27, 0.2, 0.2, 0.3, -30.0, drift=10.0),
)


@dataclass
class Counts:
    """What a number of queries came to."""

    queries: int = 0
    pairs: int = 0
    values: dict[Value, int] = field(default_factory=dict)

    def add(self, value: Value, pairs: int) -> None:
        """Count a query."""
        self.queries += 1
        self.pairs += pairs
        self.values[value] = self.values.get(value, 0) + 1

    def share(self, *values: Value) -> float:
        """Return the share of queries with one of some values."""
        return sum(self.values.get(value, 0) for value in values) / self.queries


class Decided(NamedTuple):
    """What the gate said of a simulated query, and after how many pairs."""

    value: Value
    pairs: int


def repetition(
    world: World, leak: Leak, draws: random.Random, batches: int = BATCHES
) -> list[dict[str, Any]]:
    """Return the samples of a repetition, as a soak night has them.

    Args:
        world: How its figures vary.
        leak: What it leaks.
        draws: The random numbers.
        batches: How many batches it has.
    """
    every, spent, samples = (batches - WARMUP) // (SAMPLES - 1), 0.0, []
    pools = [0, 0, 0, 0]
    trend = world.cpu_trend + leak.get("cpu", 0.0) + draws.gauss(0, world.drift)
    for batch in range(WARMUP, WARMUP + SAMPLES * every, every):
        thousands = batch / 1000
        level = max(1 + trend / 100 * thousands, 0.05)
        pools = [_pool(world, draws, each) for each in pools]
        more = [each + _moved(world, draws) for each in pools]
        spent += every * _BATCH_CPU_S * level * max(draws.gauss(1, world.cpu), 0.05)
        grown = (world.heap_growth_mb + leak.get("heap", 0.0)) * thousands
        driver = {
            "role": "driver",
            "name": "driver",
            "heap_bytes": _MB * (65 + grown + draws.gauss(0, world.heap_mb)),
            "threads": 273 + int(leak.get("threads", 0.0) * thousands) + more[0],
            "open_files": 329 + int(leak.get("files", 0.0) * thousands) + more[1],
            "cpu_s": [spent, spent],
        }
        executor = {
            "role": "executor",
            "name": "executor 0",
            "heap_bytes": _MB * (41 + draws.gauss(0, world.heap_mb)),
            "threads": 129 + more[2],
            "open_files": 312 + more[3],
            "cpu_s": [0.0, 0.0],
        }
        unlimited = ("metaspace", "code_cache", "other_memory", "outside_heap")
        for jvm in (driver, executor):
            jvm |= {f"{name}_bytes": None for name in unlimited}
        processes = [driver, executor]
        samples.append({"batch": batch, "dropped": 0, "processes": processes, "directories": {}})
    return samples


def _pool(world: World, draws: random.Random, size: int) -> int:
    """Return how much larger a pool is than usual, by its size in the sample before."""
    return draws.randint(0, 1) if draws.random() < 2 * world.pools else size


def _moved(world: World, draws: random.Random) -> int:
    return draws.randint(-_JUMP, _JUMP) if draws.random() < world.jumps else 0


def soaked(
    world: World, leak: Leak, rules: Gate, draws: random.Random, batches: int = BATCHES
) -> Decided:
    """Measure a query round by round until it is decided.

    Args:
        world: How its figures vary.
        leak: What the candidate leaks.
        rules: The gate.
        draws: The random numbers.
        batches: How many batches a repetition has.
    """
    pairs: list[Aged] = []
    for number, count in enumerate(rules.soak_rounds, 1):
        for _ in range(count):
            arms = (repetition(world, each, draws, batches) for each in (leak, NONE))
            pairs.append(Aged(len(pairs) + 1, number, *arms))
        night = MeasuredNight(
            "night",
            (),
            expected=("q0",),
            baseline={"q0": "b"},
            aged={"q0": tuple(pairs)},
            warmup=WARMUP,
        )
        if not going_on(night, [], rules, number + 1):
            break
    (verdict,) = judge_night(night, [], rules)
    return Decided(verdict.value, len(pairs))


def table(nights: int, rules: Gate, seed: int, batches: int = BATCHES) -> tuple[str, list[str]]:
    """Return the table of all worlds, and the bars that are missed.

    Args:
        nights: The number of nights of a world in which nothing leaks; a leak has a tenth of it.
        rules: The gate.
        seed: The seed of the random numbers.
        batches: How many batches a repetition has.
    """
    rows, missed = [], []
    for world in WORLDS:
        for title, leak in (("nothing", NONE), *LEAKS):
            draws, counts = random.Random(f"{seed} {world.name} {title}"), Counts()
            for _ in range(nights if not leak else max(nights // 10, 1)):
                for _ in QUERIES if not leak else QUERIES[:1]:
                    counts.add(*soaked(world, leak, rules, draws, batches))
            red = counts.share(Value.REGRESSION, Value.SUSPECT)
            alarms = red * len(QUERIES)
            if not leak and alarms > BAR:
                missed.append(f"{world.name}: {alarms:.3f} alarms a night, at most {BAR}")
            found = f"{alarms:.3f} a night" if not leak else f"{100 * red:.0f} %"
            undecided = f"{100 * counts.share(Value.UNDECIDED):.1f} %"
            mean = f"{counts.pairs / counts.queries:.2f}"
            rows.append([world.name, title, found, undecided, mean])
    return columns(("world", "what leaks", "red", "undecided", "pairs"), rows), missed


def run(options: argparse.Namespace) -> int:
    """Print the table; return 1 if a bar is missed."""
    rules = load_gate().model_copy(update={"metric": GROWTH})
    text, missed = table(options.nights, rules, options.seed, options.batches)
    print(text)
    print(*(f"missed: {each}" for each in missed), sep="\n", end="\n" if missed else "")
    return 1 if missed else 0


def main(arguments: Sequence[str]) -> int:
    """Parse the arguments, and run the benchmark."""
    parser = Parser(prog="nexmark bench soak", description=__doc__)
    parser.add_argument("--nights", type=whole(10, 100_000), default=1000, metavar="N")
    parser.add_argument("--seed", type=whole(0, 10**9), default=1, metavar="S")
    parser.add_argument("--batches", type=whole(400, 100_000), default=BATCHES, metavar="B")
    return run_command(partial(run, parser.parse_args(arguments)))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
