"""Judge comparisons that are drawn from rounds of arms, and count the alarms and what is found.

A comparison is judged as a night judges a query: by the rounds of pairs of gate.yaml, each of them
read only if the gate goes on to it, and with the noise that the gate has learned from the other
comparisons. Each comparison draws its pairs from all rounds of arms. For an A/A pair it also draws
which run is called the candidate. Comparisons share runs; the more rounds there are, the fewer
they share. An alarm is a REGRESSION.
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
"""The default number of rounds of arms that a benchmark runs."""
ARMS = (Arm.BASELINE, Arm.CONTROL, Arm.SLOWED)
COMPARISONS = 20
"""The number of comparisons between each two arms."""
FOUND = 0.9
"""The part of the seeded slowdowns that has to be found."""


@dataclass(frozen=True)
class Rounds:
    """Rounds of arms; each round has a run of each arm.

    Attributes:
        runs: The runs of all rounds.
        query: The query that runs.
        count: The number of rounds.
        metrics: The metrics that are compared.
    """

    runs: KeptRuns
    query: str
    count: int
    metrics: tuple[str, ...]

    def missing(self, seed: str) -> Iterator[tuple[int, str]]:
        """Yield the round and the arm of each run that is still to do, in a night's order."""
        for number, arm in arm_order(self.count, ARMS, seed):
            if (number, arm) not in self.runs.figures:
                yield number, arm

    def of_arm(self, arm: str, metric: str) -> list[float]:
        """Return the figure of an arm in each round."""
        return [self.runs.figures[number, arm][metric] for number in range(1, self.count + 1)]

    def ratios(self, over: str, under: str, metric: str) -> list[float]:
        """Return the log ratio of two arms, `over` / `under`, in each round."""
        pairs = zip(self.of_arm(over, metric), self.of_arm(under, metric), strict=True)
        return [math.log(numerator / denominator) for numerator, denominator in pairs]

    def comparisons(self, arms: tuple[str, str], rules: Gate) -> Iterator[MeasuredNight]:
        """Yield twenty nights with pairs that are drawn from the rounds.

        `arms` are the candidate and the baseline. In an A/A pair, the candidate is drawn.
        """
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
        """Return the verdicts on the A/A comparisons, and on those with the slowed arm.

        `metric` decides in both.
        """
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
        """Print the noise and the bars; return 0, or 1 if a bar is missed.

        Args:
            gate: The rules of the gate.
            decides: The metric by which the slowed arm has to be found.
            slowed: What slows the slowed arm, in words.
            quiet: The metrics by which the slowed arm must not be found.
        """
        rows, bars = [], []
        for metric in self.metrics:
            alike, seeded = self.judged(metric, gate)
            alarms = sum(verdict.value == Value.REGRESSION for verdict in alike)
            detected = sum(verdict.value == Value.REGRESSION for verdict in seeded)
            went_on = sum(verdict.fresh_pairs > 0 for verdict in alike)
            effects = [verdict.mde for verdict in alike if verdict.mde is not None]
            visible = statistics.median(effects)
            spread = statistics.stdev(self.ratios(Arm.CONTROL, Arm.BASELINE, metric))
            rise = math.expm1(statistics.median(self.ratios(Arm.SLOWED, Arm.BASELINE, metric)))
            usual = statistics.median(self.of_arm(Arm.BASELINE, metric))
            cells = [f"{usual:.1f}", f"{spread:.1%}", f"{visible:.1%}", f"{rise:+.1%}"]
            rows.append([metric, *cells, f"{went_on}", f"{alarms}", f"{detected}"])
            if metric == decides:
                text = f"alarms in {COMPARISONS} A/A comparisons by {metric}"
                bars.append(GateBar(text, alarms, 0))
                text = f"found: {slowed}, part of {COMPARISONS}"
                bars.append(GateBar(text, detected / COMPARISONS, FOUND, at_least=True))
            if metric in quiet:
                bars.append(GateBar(f"of the slowed arm, red by {metric}", detected, 0))
        heads = ("metric", "baseline", "spread of an A/A pair", "smallest visible", "slowed arm")
        print(f"\n{columns((*heads, 'went on', 'alarms', 'found'), rows)}\n")
        print("\n".join(map(str, bars)))
        return 0 if all(bar.met for bar in bars) else 1

    def _pair(self, number: int, place: int, arms: tuple[str, str], metric: str) -> Pair:
        """Return a round as a pair of a comparison.

        Args:
            number: The number of the round.
            place: The place of the pair in the comparison, from 1.
            arms: The arms that are called the candidate and the baseline.
            metric: The metric.
        """
        candidate, baseline = (self.runs.figures[number, arm][metric] for arm in arms)
        return Pair(place, candidate, baseline)


def fitting(gate: Gate, pairs: int) -> Gate:
    """Return the gate with only its first rounds: those for which `pairs` pairs are enough."""
    count = max(sum(end <= pairs for end in accumulate(gate.rounds)), 1)
    changes = {"rounds": gate.rounds[:count], "pursue_z": gate.pursue_z[: count - 1]}
    return gate.model_copy(update=changes)


def _of(metric: str, verdicts: Sequence[Verdict]) -> Verdict:
    """Return the verdict on a metric."""
    return next(verdict for verdict in verdicts if verdict.metric == metric)
