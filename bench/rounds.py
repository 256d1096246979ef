"""What the gate makes of comparisons drawn from rounds of arms.

A comparison is what a night does with a query: the rounds of pairs of gate.yaml, each of them
read only if the gate goes on to it, judged by the gate, which has learned the noise from the other
comparisons. Comparisons draw their pairs from all rounds; which run of an A/A pair is called the
candidate is drawn, too. They share runs, the less the more rounds there are. An alarm is a
REGRESSION.
"""

from __future__ import annotations

import math
import random
import statistics
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise

from bench.gate import GateBar
from nexmark.config import Gate
from nexmark.labs.kept_runs import KeptRuns
from nexmark.model import Arm, Mode, Value
from nexmark.terminal import columns
from nexmark.verdict.measured_night import Measured, MeasuredNight, Pair
from nexmark.verdict.nightly import judge_night
from nexmark.verdict.order import arm_order
from nexmark.verdict.verdict import Verdict

USUAL = 15
"""The rounds of arms that a benchmark runs where nobody asks for another number."""
ARMS = (Arm.BASELINE, Arm.CONTROL, Arm.SLOWED)
COMPARISONS = 20
FOUND = 0.9
"""The part of the seeded slowdowns that has to be found."""


@dataclass(frozen=True)
class Rounds:
    """Rounds of a run of each arm.

    Attributes:
        runs: their runs.
        query: what runs.
        count: how many there are.
        metrics: the figures that are compared.
    """

    runs: KeptRuns
    query: str
    count: int
    metrics: tuple[str, ...]

    def missing(self, seed: str) -> Iterator[tuple[int, str]]:
        """The rounds and arms still to be run, in a night's order."""
        for number, arm in arm_order(self.count, ARMS, seed):
            if (number, arm) not in self.runs.figures:
                yield number, arm

    def of_arm(self, arm: str, metric: str) -> list[float]:
        """The figure of each round."""
        return [self.runs.figures[number, arm][metric] for number in range(1, self.count + 1)]

    def ratios(self, over: str, under: str, metric: str) -> list[float]:
        """The log ratio of each round."""
        pairs = zip(self.of_arm(over, metric), self.of_arm(under, metric), strict=True)
        return [math.log(one / other) for one, other in pairs]

    def comparisons(self, arms: tuple[str, str], rules: Gate) -> Iterator[MeasuredNight]:
        """Twenty nights with pairs drawn from the rounds; of A/A pairs the candidate is drawn."""
        drawn = random.Random(f"{arms}")
        ends = list(accumulate(rules.rounds))
        for name in range(COMPARISONS):
            numbers = drawn.sample(range(1, self.count + 1), ends[-1])
            turned = [drawn.random() < 0.5 and Arm.SLOWED not in arms for _ in numbers]
            measured = []
            for metric in self.metrics:
                pairs = [
                    self._pair(number, place, arms[::-1] if turn else arms, metric)
                    for place, (number, turn) in enumerate(zip(numbers, turned, strict=True), 1)
                ]
                first, *later = (tuple(pairs[start:end]) for start, end in pairwise([0, *ends]))
                measured.append(Measured(self.query, metric, first, tuple(later)))
            yield MeasuredNight(f"{' '.join(arms)} {name}", tuple(measured))

    def judged(self, metric: str, gate: Gate) -> tuple[list[Verdict], list[Verdict]]:
        """The verdicts on the A/A comparisons and on the seeded ones, where `metric` decides."""
        rules = fitting(gate, self.count)
        rules = rules.model_copy(update={"metric": metric, "mode": Mode.PAIRED})
        control = list(self.comparisons((Arm.CONTROL, Arm.BASELINE), rules))
        seeded = self.comparisons((Arm.SLOWED, Arm.BASELINE), rules)
        known = [judge_night(night, [], rules) for night in control]
        alike = [
            _of(metric, judge_night(night, known[:at] + known[at + 1 :], rules))
            for at, night in enumerate(control)
        ]
        return alike, [_of(metric, judge_night(night, known, rules)) for night in seeded]

    def report(self, gate: Gate, decides: str, slowed: str, *, quiet: Sequence[str] = ()) -> int:
        """Print noise and bars; 1 if a bar is missed.

        Args:
            gate: its rules.
            decides: the metric by which the slowed arm has to be found.
            slowed: what slows it.
            quiet: metrics by which it must not be found.
        """
        rows, bars = [], []
        for metric in self.metrics:
            alike, seeded = self.judged(metric, gate)
            alarms, found = (sum(x.value == Value.REGRESSION for x in y) for y in (alike, seeded))
            on = sum(x.fresh_pairs > 0 for x in alike)
            seen = statistics.median(x.mde for x in alike if x.mde is not None)
            spread = statistics.stdev(self.ratios(Arm.CONTROL, Arm.BASELINE, metric))
            rise = math.expm1(statistics.median(self.ratios(Arm.SLOWED, Arm.BASELINE, metric)))
            usual = statistics.median(self.of_arm(Arm.BASELINE, metric))
            cells = [f"{usual:.1f}", f"{spread:.1%}", f"{seen:.1%}", f"{rise:+.1%}"]
            rows.append([metric, *cells, f"{on}", f"{alarms}", f"{found}"])
            if metric == decides:
                text = f"alarms in {COMPARISONS} A/A comparisons by {metric}"
                bars.append(GateBar(text, alarms, 0))
                text = f"found: {slowed}, part of {COMPARISONS}"
                bars.append(GateBar(text, found / COMPARISONS, FOUND, at_least=True))
            if metric in quiet:
                bars.append(GateBar(f"of the slowed arm, red by {metric}", found, 0))
        heads = ("metric", "baseline", "spread of an A/A pair", "smallest visible", "slowed arm")
        print(f"\n{columns((*heads, 'went on', 'alarms', 'found'), rows)}\n")
        print("\n".join(map(str, bars)))
        return 0 if all(bar.met for bar in bars) else 1

    def _pair(self, number: int, place: int, arms: tuple[str, str], metric: str) -> Pair:
        """Round `number` as pair `place` of a comparison."""
        candidate, baseline = (self.runs.figures[number, arm][metric] for arm in arms)
        return Pair(place, candidate, baseline)


def fitting(gate: Gate, pairs: int) -> Gate:
    """Return the gate with as many of its first rounds as a number of pairs is enough for."""
    count = max(sum(end <= pairs for end in accumulate(gate.rounds)), 1)
    changes = {"rounds": gate.rounds[:count], "pursue_z": gate.pursue_z[: count - 1]}
    return gate.model_copy(update=changes)


def _of(metric: str, verdicts: Sequence[Verdict]) -> Verdict:
    return next(verdict for verdict in verdicts if verdict.metric == metric)
