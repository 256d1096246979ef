"""How often the shipped gate is wrong, and what it finds: `nexmark bench gate`.

Runs the code that judges a night over simulated ones (``simulated_nights`` has the model) and
prints, per world: red verdicts per night of 23 queries where nothing has changed (REGRESSION of a
query, of the suite, INVALID for the host), false FASTER, nights that begin a WATCH for drift,
machine time relative to one arm, alarms in the night in which the host becomes 8 % slower, first
nights with a red suite when all queries are 2.5 % slower, and detection of a change in two queries
in the first night and within seven. "guard" is what the guardrail alone has made red, "garbage" how
often it finds two queries whose executors need 20 % more CPU time, and their tasks none. Then
worlds in which builds are accepted: nights that begin a false WATCH for what they come to, nights
that have one, and how often a real creep is seen at its end. Then comparisons whose open queries
are measured again, run by run. Then the bars; exit code 1 when one is missed. With --figures the
rates of each world are kept in a file, and the same command goes on where it was stopped.
"""

from __future__ import annotations

import argparse
import copy
import hashlib
import math
import re
import signal
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from importlib import resources
from multiprocessing import get_context
from multiprocessing.pool import Pool
from pathlib import Path
from typing import TypeVar

import numpy as np
from pydantic import TypeAdapter

from bench import continued_comparisons, simulated_nights
from bench.arguments import Parser
from bench.continued_comparisons import ContinuedTally, rules_of, simulate_continued
from bench.simulated_nights import QUERIES, PairedSuites, Stretch, World
from nexmark.config import ConfigError, Gate
from nexmark.config.load import load_gate
from nexmark.errors import NexmarkError
from nexmark.labs.kept_runs import KeptRuns

EFFECTS = (0.03, 0.05, 0.10, 0.20)
SUITE_EFFECT = 0.025
GARBAGE = 0.20
"""The executors need so much more CPU time, the tasks none."""
ONE_ARM = 5
"""Repetitions of a query in a night with one arm; machine time is in such nights."""
SLOWED = 2
"""Queries of a suite that get slower."""
FIRST_NIGHTS = 8
"""How often each suite meets a change for the first time."""
WEEK = 7
QUIET = 40
"""Quiet nights that each suite lives through."""
MOVES = 8
"""Nights with a host that moves, per suite."""
BAR_WORLD = "CV 5 %"
WORLDS = (
    World("CV 2 %", 0.02),
    World(BAR_WORLD, 0.05),
    World("CV 10 %", 0.10),
    World("CV 5 %, queries from 2.5 to 10 %", 0.05, uneven=True),
    World("CV 5 %, 6 % of runs spiked", 0.05, spikes=0.06),
    World("CV 5 %, nothing shared by a pair", 0.05, shared=0.0),
    World("CV 5 %, one JVM per arm", 0.05, fresh_jvm=False),
)
FASTER = math.log(0.96)
"""The improvement that is accepted in some worlds."""
MOVING_WORLD = "CV 5 %, the baseline has moved"
HAPPENING = (
    World(MOVING_WORLD, 0.05, past=(Stretch(30, FASTER), Stretch(30))),
    World("CV 5 %, faster, accepted 8 nights later", 0.05, past=(Stretch(8, FASTER), Stretch(5))),
    World("CV 5 %, queries come and go", 0.05, absent=0.2),
    World("CV 5 %, heavy tails (Student t, 4)", 0.05, heavy=True),
    World("CV 5 %, unsteady host, 1 night in 6", 0.05, unsteady=1 / 6),
)
"""Worlds in which more happens than noise: their false alarms have a bar, too."""
ACCEPTING = (
    World("CV 2 %, a build accepted every night", 0.02, accepts=1),
    World("CV 5 %, a build accepted every night", 0.05, accepts=1),
    World("CV 5 %, accepted every night, queries go", 0.05, accepts=1, absent=0.02),
    World("CV 5 %, a build accepted every week", 0.05, accepts=7),
)
"""Worlds in which every accepted build is a link of a chain: a false creep has a bar."""
CREEPS = ((0.015, 24), (0.01, 40))
"""Slower by this much per build, that number of builds."""
CREEP_NIGHTS = 240


@dataclass(frozen=True)
class WorldTally:
    """Rates of one world: alarms per night, detection as shares, cost relative to one arm.

    ``broken`` nights are INVALID for the host, ``guarded`` are the ``alarms`` that the
    guardrail alone has given. ``garbage`` is what it finds, as ``detected``. ``suite_found`` is the
    share of first nights with a red suite when all queries are ``SUITE_EFFECT`` slower.
    ``detected`` has (first night, within a week, within a week with WATCH) by effect.
    """

    world: str
    nights: int
    alarms: float
    guarded: float
    suite_alarms: float
    broken: float
    faster: float
    watches: float
    cost: float
    moved_alarms: float
    suite_found: float
    garbage: tuple[float, float, float]
    detected: tuple[tuple[float, float, float], ...]

    @property
    def false_alarms(self) -> float:
        """Red verdicts per quiet night, whatever their reason."""
        return self.alarms + self.suite_alarms + self.broken


def simulate(world: World, rules: Gate, nights: int, seed: int) -> WorldTally:
    """Return the rates of a world.

    Args:
        world: What happens in it.
        rules: The gate.
        nights: About how many nights are quiet.
        seed: Of the random numbers.
    """
    count = max(math.ceil(nights / QUIET), 1)
    suites = PairedSuites(world, rules, count, np.random.default_rng(seed))
    quiet = np.zeros(QUERIES)
    begun = copy.copy(suites)
    red = guarded = faster = watch = suite = broken = 0
    pairs = 0.0
    watched = np.zeros((count, QUERIES), dtype=np.bool_)
    for _ in range(QUIET):
        outcome = begun.live(quiet)
        red += int(outcome.red.sum())
        guarded += int(outcome.guarded.sum())
        faster += int(outcome.faster.sum())
        pairs += float(outcome.pairs.sum())
        suite += int(outcome.suite.sum())
        broken += int(outcome.broken.sum())
        watch += int((outcome.watch & ~watched).sum())
        watched = outcome.watch
    moved = 0
    for _ in range(MOVES):
        outcome = copy.copy(suites).live(quiet, host_moves=True)
        moved += outcome.alarms
    slower = np.full(QUERIES, math.log1p(SUITE_EFFECT))
    suite_red = [copy.copy(suites).live(slower).suite.mean() for _ in range(3 * FIRST_NIGHTS)]
    lived = count * QUIET
    return WorldTally(
        world.name,
        lived,
        red / lived,
        guarded / lived,
        suite / lived,
        broken / lived,
        faster / lived,
        watch / lived,
        2 * pairs / (lived * QUERIES) / ONE_ARM,
        moved / (count * MOVES),
        float(np.mean(suite_red)),
        _detection(copy.copy(suites), GARBAGE, by_garbage=True),
        tuple(_detection(copy.copy(suites), effect) for effect in EFFECTS),
    )


def _detection(
    suites: PairedSuites, effect: float, by_garbage: bool = False
) -> tuple[float, float, float]:
    changed, none = np.zeros(QUERIES), np.zeros(QUERIES)
    changed[:: QUERIES // SLOWED + 1] = math.log1p(effect)
    hit = changed > 0
    slower, garbage = (none, changed) if by_garbage else (changed, none)
    nights = [copy.copy(suites).live(slower, garbage=garbage) for _ in range(FIRST_NIGHTS)]
    first = [night.red[:, hit][night.measured[:, hit]].mean() for night in nights]
    seen = noticed = np.zeros((), dtype=np.bool_)
    for _ in range(WEEK):
        outcome = suites.live(slower, garbage=garbage)
        seen = seen | outcome.red[:, hit]
        noticed = noticed | seen | outcome.watch[:, hit]
    return float(np.mean(first)), float(seen.mean()), float(noticed.mean())


FIRST_WORLDS = (
    *(World(f"CV {percent} %", percent / 100) for percent in (2, 5, 10, 15)),
    World("CV 5 %, queries from 2.5 to 10 %", 0.05, uneven=True),
    World("CV 5 %, 6 % of runs spiked", 0.05, spikes=0.06),
    World("CV 5 %, heavy tails (Student t, 4)", 0.05, heavy=True),
)
"""Worlds in which a night is the first one: nothing is known of them."""
FIRST_EFFECTS = (0.05, 0.10, 0.20)


@dataclass(frozen=True)
class FirstNightTally:
    """Rates of nights without any history.

    ``alarms`` are false reds per night, the suite included, ``undecided`` is the share of
    unchanged queries, ``cost`` is relative to one arm, and ``found`` the share of slowdowns by
    ``FIRST_EFFECTS``.
    """

    world: str
    kind: str
    nights: int
    alarms: float
    faster: float
    undecided: float
    cost: float
    found: tuple[float, ...]

    def __str__(self) -> str:
        """Return the rates as a line."""
        shares = "".join(f"{100 * share:>9.0f}%" for share in self.found)
        rates = f"{self.alarms:>9.4f}{self.faster:>9.4f}{100 * self.undecided:>9.1f}%"
        return f"{self.kind:<12}{self.world:<38}{rates}{self.cost:>8.2f}{shares}"


def simulate_first_nights(
    world: World, rules: Gate, kind: str, nights: int, seed: int
) -> FirstNightTally:
    """Return the rates of first nights.

    Args:
        world: What happens in them.
        rules: The gate, of a night or of a comparison.
        kind: Which of both, in a word.
        nights: How many are quiet.
        seed: Of the random numbers.
    """
    suites = PairedSuites(world, rules, nights, np.random.default_rng(seed), history=0)
    quiet = copy.copy(suites).live(np.zeros(QUERIES))
    shares = []
    for effect in FIRST_EFFECTS:
        slower = np.zeros(QUERIES)
        slower[:: QUERIES // SLOWED + 1] = math.log1p(effect)
        shares.append(float(copy.copy(suites).live(slower).red[:, slower > 0].mean()))
    return FirstNightTally(
        world.name,
        kind,
        nights,
        quiet.alarms / nights,
        float(quiet.faster.sum()) / nights,
        float(quiet.undecided.mean()),
        2 * float(quiet.pairs.sum()) / (nights * QUERIES) / ONE_ARM,
        tuple(shares),
    )


def bars_of_first(tally: FirstNightTally) -> list[GateBar]:
    """Return the bars of a first night."""
    shares = dict(zip(FIRST_EFFECTS, tally.found, strict=True))
    name = f"{tally.kind}, first night, {tally.world}"
    reached = [GateBar(f"{name}: false alarms", tally.alarms, 0.02)]
    wanted = {
        ("night", BAR_WORLD): {0.10: 0.95, 0.20: 0.99},
        ("night", "CV 10 %"): {0.10: 0.60, 0.20: 0.90},
        ("comparison", BAR_WORLD): {0.05: 0.60},
    }
    for effect, share in wanted.get((tally.kind, tally.world), {}).items():
        text = f"{name}: {effect:.0%} slower found"
        reached.append(GateBar(text, shares[effect], share, at_least=True))
    if (tally.kind, tally.world) == ("comparison", BAR_WORLD):
        reached.append(GateBar(f"{name}: undecided", tally.undecided, 0.10))
    return reached


@dataclass(frozen=True)
class CreepTally:
    """Rates of a world in which builds are accepted.

    ``begun``: nights per suite and night that begin a false creep; ``shown``: nights with one.
    ``found``: the share of queries whose creep is WATCH at its end, by ``CREEPS``.
    """

    world: str
    nights: int
    begun: float
    shown: float
    found: tuple[float, ...]

    def __str__(self) -> str:
        """Return the rates as a line."""
        shares = "".join(f"{100 * share:>15.0f}%" for share in self.found)
        return f"{self.world:<41}{self.begun:>9.4f}{self.shown:>9.4f}{shares}"


def simulate_creeps(world: World, rules: Gate, nights: int, seed: int) -> CreepTally:
    """Return the false creeps of a world, and how often real ones are seen.

    Args:
        world: What happens in it.
        rules: The gate.
        nights: About how many nights are quiet.
        seed: Of the random numbers.
    """
    count = max(math.ceil(nights / CREEP_NIGHTS), 1)
    suites = PairedSuites(world, rules, count, np.random.default_rng(seed))
    quiet, begun, shown = np.zeros(QUERIES), 0, 0
    seen = np.zeros((count, QUERIES), dtype=np.bool_)
    steady = copy.copy(suites)
    for _ in range(CREEP_NIGHTS):
        outcome = steady.live(quiet)
        begun += int((outcome.creep & ~seen).sum())
        shown += int(outcome.creep.any(axis=-1).sum())
        seen = outcome.creep
    lived = count * CREEP_NIGHTS
    shares = tuple(_creep_found(copy.copy(suites), *creep) for creep in CREEPS)
    return CreepTally(world.name, lived, begun / lived, shown / lived, shares)


def _creep_found(suites: PairedSuites, size: float, builds: int) -> float:
    slower = np.zeros(QUERIES)
    slower[:: QUERIES // SLOWED + 1] = math.log1p(size)
    for _ in range(builds * suites.world.accepts):
        outcome = suites.live(slower)
    return float(outcome.creep[:, slower > 0].mean())


@dataclass(frozen=True)
class GateBar:
    """One bar of the gate and what was measured for it."""

    text: str
    measured: float
    limit: float
    at_least: bool = False

    @property
    def met(self) -> bool:
        """Whether the measured value is on the right side."""
        return self.measured >= self.limit if self.at_least else self.measured <= self.limit

    def __str__(self) -> str:
        """Return the bar as a line."""
        sign = ">=" if self.at_least else "<="
        said = "met" if self.met else "MISSED"
        return f"  {said:<7} {self.text}: {self.measured:.3f} (bar: {sign} {self.limit:g})"


def bars(tally: WorldTally) -> list[GateBar]:
    """Return the bars of the gate."""
    first = {effect: shares[0] for effect, shares in zip(EFFECTS, tally.detected, strict=True)}
    return [
        GateBar("false alarms per night", tally.false_alarms, 0.02),
        GateBar("5 % slower seen in its first night", first[0.05], 0.75, at_least=True),
        GateBar("10 % slower seen in its first night", first[0.10], 0.98, at_least=True),
        GateBar("20 % slower seen in its first night", first[0.20], 0.99, at_least=True),
        GateBar("20 % more garbage seen within 7 nights", tally.garbage[1], 0.98, at_least=True),
        GateBar("machine time, one arm = 1", tally.cost, 2.34),
        GateBar("alarms in the night the host becomes 8 % slower", tally.moved_alarms, 0.05),
    ]


def bar_of_creeps(tally: CreepTally) -> GateBar:
    """Return the bar of a world in which builds are accepted."""
    return GateBar(f"{tally.world}: nights that begin a false creep", tally.begun, 0.02)


def bar_of_continued(tally: ContinuedTally) -> GateBar:
    """Return the bar of comparisons that go on."""
    text = f"comparison, {tally.world}: false reds in {continued_comparisons.RUNS} runs"
    return GateBar(text, tally.false_reds, continued_comparisons.BAR)


def bar_of_world(tally: WorldTally) -> list[GateBar]:
    """Return the bars of a world in which more happens than noise."""
    reached = [GateBar(f"{tally.world}: false alarms per night", tally.false_alarms, 0.02)]
    if tally.world == MOVING_WORLD:
        text = f"{tally.world}: all 2.5 % slower, suite red in the first night"
        reached.append(GateBar(text, tally.suite_found, 0.90, at_least=True))
    return reached


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; 0, 1 when a bar is missed, 2 for a wrong argument or setting."""
    options = _parser().parse_args(argv)
    try:
        rules = load_gate(options.gate)
    except ConfigError as error:
        print(error, file=sys.stderr)
        return 2
    started = time.monotonic()
    rounds = ", ".join(map(str, rules.rounds))
    print(f"gate version {rules.version}: {QUERIES} queries, rounds of {rounds} pairs")
    print(f"about {options.nights} quiet nights each, seed {options.seed}\n")
    try:
        kept = _kept(options.figures, rules, options.nights, options.seed)
    except NexmarkError as error:
        print(error, file=sys.stderr)
        return 2
    with get_context("spawn").Pool(initializer=_leave_interrupts_to_the_parent) as pool:
        reached = _print_tables(Simulations(pool, kept), rules, options.nights, options.seed)
    print("\ndetection: first night / within 7 nights / with WATCH, in %")
    print(f"\nbars, at {BAR_WORLD}")
    print("\n".join(map(str, reached)))
    print(f"\n{time.monotonic() - started:.0f} s")
    return 0 if all(bar.met for bar in reached) else 1


def _kept(file: Path | None, rules: Gate, nights: int, seed: int) -> KeptRuns | None:
    """Return the file that keeps the rates of worlds; NexmarkError if it keeps others."""
    if file is None:
        return None
    verdicts = Path(str(resources.files("nexmark.verdict")))
    simulations = (simulated_nights.__file__, continued_comparisons.__file__, __file__)
    code = [*sorted(verdicts.glob("*.py")), *map(Path, simulations)]
    digest = hashlib.sha256(rules.model_dump_json().encode())
    for path in code:
        digest.update(path.read_bytes())
    simulated = f"{nights} nights of seed {seed} by settings and code {digest.hexdigest()[:12]}"
    return KeptRuns(simulated, file)


def _print_tables(simulations: Simulations, rules: Gate, nights: int, seed: int) -> list[GateBar]:
    """Simulate all worlds, as many at once as there are cores; return what the bars are for."""
    gates, few = {"night": rules, "comparison": rules.for_comparison()}, max(nights // 4, 1)
    tallies = simulations.begin(
        WorldTally,
        [
            partial(simulate, world, rules, nights, seed + 1000 * number)
            for number, world in enumerate((*WORLDS, *HAPPENING))
        ],
    )
    firsts = simulations.begin(
        FirstNightTally,
        [
            partial(simulate_first_nights, world, gate, kind, few, seed + 1000 * number)
            for kind, gate in gates.items()
            for number, world in enumerate(FIRST_WORLDS)
        ],
    )
    creeps = simulations.begin(
        CreepTally,
        [
            partial(simulate_creeps, world, rules, nights, seed + 1000 * number)
            for number, world in enumerate(ACCEPTING)
        ],
    )
    continued = simulations.begin(
        ContinuedTally,
        [
            partial(simulate_continued, world, rules_of(rules), few, seed + 1000 * number)
            for number, world in enumerate(continued_comparisons.WORLDS)
        ],
    )
    reached: list[GateBar] = []
    print("\n".join(_head()), flush=True)
    for tally in tallies:
        print(_line(tally), flush=True)
        if tally.world == BAR_WORLD:
            reached += bars(tally)
        if tally.world in {world.name for world in HAPPENING}:
            reached += bar_of_world(tally)
    print(_head_of_first())
    for first in firsts:
        print(first, flush=True)
        reached += bars_of_first(first)
    print(_head_of_creeps())
    for creep in creeps:
        print(creep, flush=True)
        reached.append(bar_of_creeps(creep))
    print(continued_comparisons.head())
    for going_on in continued:
        print(going_on, flush=True)
        reached.append(bar_of_continued(going_on))
    return reached


Tally = TypeVar("Tally")


@dataclass(frozen=True)
class Simulations:
    """Simulations in the processes of a pool; what was ``kept`` is not simulated again."""

    pool: Pool
    kept: KeptRuns | None = None

    def begin(
        self, kind: type[Tally], simulations: Sequence[Callable[[], Tally]]
    ) -> Iterator[Tally]:
        """Begin simulations with results of a kind; return the results in the same order."""
        before = self.kept.figures if self.kept else {}
        begun = [
            None
            if (number, kind.__name__) in before
            else self.pool.apply_async(simulation, callback=partial(self._keep, number))
            for number, simulation in enumerate(simulations)
        ]
        read = TypeAdapter(kind).validate_python
        return (
            read(before[number, kind.__name__]["rates"]) if result is None else result.get()
            for number, result in enumerate(begun)
        )

    def _keep(
        self, number: int, tally: WorldTally | FirstNightTally | CreepTally | ContinuedTally
    ) -> None:
        if self.kept:
            self.kept.keep(number, type(tally).__name__, {"rates": asdict(tally)})


def _leave_interrupts_to_the_parent() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)


_LABELS = ("alarms", "guard", "suite", "INVALID", "FASTER", "WATCH", "cost", "host +8%", "all+2.5%")


def _head() -> list[str]:
    columns = (f"{GARBAGE:.0%} garbage", *(f"{effect:.0%} slower" for effect in EFFECTS))
    effects = "".join(f"{column:>16}" for column in columns)
    line = f"{'world':<40}" + "".join(f"{label:>9}" for label in _LABELS) + effects
    return [line, "-" * len(line)]


def _line(tally: WorldTally) -> str:
    false = (tally.alarms, tally.guarded, tally.suite_alarms, tally.broken)
    rates = (*false, tally.faster, tally.watches)
    text = f"{tally.world:<40}" + "".join(f"{rate:>9.4f}" for rate in rates)
    text += f"{tally.cost:>9.2f}{tally.moved_alarms:>9.3f}{100 * tally.suite_found:>8.0f}%"
    for shares in (tally.garbage, *tally.detected):
        text += f"{' / '.join(f'{100 * share:.0f}' for share in shares):>16}"
    return text


def _head_of_first() -> str:
    labels = f"{'alarms':>9}{'FASTER':>9}{'undecided':>10}{'cost':>8}"
    effects = "".join(f"{f'{effect:.0%}':>10}" for effect in FIRST_EFFECTS)
    return f"\n{'without any history':<50}{labels}{effects}"


def _head_of_creeps() -> str:
    return f"\n{'accepted builds':<41}{'creep':>9}{'nights':>9}{''.join(map(_of_creep, CREEPS))}"


def _of_creep(creep: tuple[float, int]) -> str:
    return f"{f'{creep[0]:.1%} x {creep[1]}':>16}"


def _parser() -> argparse.ArgumentParser:
    summary = (__doc__ or "").split("\n", 1)[0]
    parser = Parser(prog="nexmark bench gate", description=summary)
    parser.add_argument("--nights", type=_positive, default=10000, help="quiet nights per kind")
    parser.add_argument("--seed", type=_whole, default=1)
    parser.add_argument("--figures", type=Path, help="where the rates of each world are kept")
    parser.add_argument("--gate", type=Path, help="settings (default: gate.yaml of include/conf)")
    return parser


def _whole(text: str) -> int:
    if not re.fullmatch("[0-9]{1,9}", text):
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number")
    return int(text)


def _positive(text: str) -> int:
    if _whole(text) == 0:
        raise argparse.ArgumentTypeError("at least one night is needed")
    return int(text)


if __name__ == "__main__":
    sys.exit(main())
