"""What grows as a query runs on, and whether the candidate grows by more than its limit.

The input are the samples of a soak repetition (``night.kinds.soak``), one for each pause between
two batches: what each JVM holds, and what is below some directories. A figure over the batch number
is a line. Its growth is the slope of Theil and Sen after the warm-up, in 1,000 batches, with its
95 % interval. A leak is shown in a pair if the growth is above the limit, and above the baseline's,
by its interval; two pairs have to show the same one.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from statistics import median
from typing import NamedTuple

from scipy.stats import theilslopes

from nexmark.config import Gate
from nexmark.model import (
    BATCH_CPU,
    GROWTH,
    Arm,
    Value,
)
from nexmark.verdict.eligibility import Grounds, Steadiness
from nexmark.verdict.held import CPU_OF_BATCH, DURATION_OF_BATCH, HELD, MEGABYTE, ROLES, Held
from nexmark.verdict.measured_night import Aged, MeasuredNight, Sample
from nexmark.verdict.verdict import Verdict

LEAST_POINTS = 5
"""A line of fewer points has no slope."""
_SHOWN_TWICE = 2
_PER = 1000
_NAMED = 3


@dataclass(frozen=True)
class Line:
    """A figure of a repetition over the number of the batch.

    ``where`` is the role of the JVMs that hold it, the directory, or '' for all of the application.
    """

    held: Held
    where: str
    batches: tuple[int, ...]
    values: tuple[float, ...]

    @property
    def name(self) -> str:
        """What people call it."""
        return f"{self.held.title} of the {self.where}" if self.where else self.held.title


@dataclass(frozen=True)
class Slope:
    """How much a line grows in 1,000 batches, with its 95 % interval, in its unit."""

    slope: float
    lo: float
    hi: float

    @property
    def half(self) -> float:
        """Half the width of the interval."""
        return (self.hi - self.lo) / 2


def lines_of(samples: Sequence[Sample]) -> list[Line]:
    """Return all lines of a repetition, those with a limit first."""
    lines = [_of_role(held, role, samples) for held in HELD for role in ROLES]
    lines.append(_cpu_of_batches(samples))
    lines.append(_durations_of_batches(samples))
    directories = dict.fromkeys(name for each in samples for name in each["directories"])
    for name in directories:
        for place, (title, unit, scale) in enumerate(
            (("files", "", 1.0), ("bytes", "MB", 1 / MEGABYTE))
        ):
            held = Held(f"directory {title}", f"{title} below the {name}", unit, scale)
            points = [(s["batch"], scale * s["directories"][name][place]) for s in samples]
            lines.append(_line(held, "", points))
    dropped = Held("dropped", "events dropped by the listener bus")
    lines.append(_line(dropped, "", [(each["batch"], each["dropped"]) for each in samples]))
    lines.sort(key=lambda line: not line.held.limit)
    return [line for line in lines if line.values]


def _line(held: Held, where: str, points: Iterable[tuple[int, float]]) -> Line:
    batches, values = zip(*points, strict=True) if (points := list(points)) else ((), ())
    return Line(held, where, batches, tuple(map(float, values)))


def _of_role(held: Held, role: str, samples: Sequence[Sample]) -> Line:
    points = []
    for sample in samples:
        values = [jvm[held.key] for jvm in sample["processes"] if jvm["role"] == role]
        if values and None not in values:
            points.append((sample["batch"], held.scale * sum(values)))
    return _line(held, role, points)


def _cpu_of_batches(samples: Sequence[Sample]) -> Line:
    """Return the CPU time of a batch between two samples, at the number of the batch half-way."""
    points = []
    for before, after in pairwise(samples):
        batches = after["batch"] - before["batch"]
        ended = {jvm["name"]: jvm["cpu_s"][1] for jvm in before["processes"]}
        began = {jvm["name"]: jvm["cpu_s"][0] for jvm in after["processes"]}
        if batches > 0 and ended.keys() == began.keys():
            spent = sum(began[name] - ended[name] for name in ended)
            points.append(((before["batch"] + after["batch"]) // 2, spent / batches))
    return _line(CPU_OF_BATCH, "", points)


def _durations_of_batches(samples: Sequence[Sample]) -> Line:
    """Return the duration of a batch between two samples, at the number of the batch half-way."""
    begins = (0, *(each["batch"] for each in samples))
    points = [
        ((begin + each["batch"]) // 2, each["batch_ms"])
        for begin, each in zip(begins, samples, strict=False)
        if each.get("batch_ms")
    ]
    return _line(DURATION_OF_BATCH, "", points)


def growth_of(line: Line, warmup: int) -> Slope | None:
    """Return how much a line grows after the ``warmup`` batches; None for too few points.

    What a batch takes grows in percent of its median.
    """
    kept = [
        (batch / _PER, value)
        for batch, value in zip(line.batches, line.values, strict=True)
        if batch >= warmup
    ]
    if len(kept) < LEAST_POINTS:
        return None
    batches, values = zip(*kept, strict=True)
    slope, _, lo, hi = map(float, theilslopes(values, batches, 0.95))
    if line.held.relative:
        level = median(values)
        factor = 100 / level if level > 0 else math.nan
        slope, lo, hi = slope * factor, lo * factor, hi * factor
    return Slope(slope, lo, hi) if math.isfinite(slope) else None


def figures_of(samples: Sequence[Sample], warmup: int, rules: Gate) -> dict[str, float]:
    """Return the metrics of a repetition: growths in 1,000 batches, and the cost of a batch.

    The largest growth is the largest one of what is counted: the CPU time of a batch is noisier.
    """
    figures: dict[str, float] = {}
    worst: list[float] = []
    for line in lines_of(samples):
        if line.held is CPU_OF_BATCH:
            steady = [v for b, v in zip(line.batches, line.values, strict=True) if b >= warmup]
            figures |= {BATCH_CPU: median(steady)} if steady else {}
        growth = growth_of(line, warmup) if line.held.limit else None
        if growth is not None:
            name = line.held.metric
            figures[name] = max(growth.slope, figures.get(name, -math.inf))
            if line.held is not CPU_OF_BATCH:
                worst.append(growth.slope / limit_of(line, warmup, rules))
    return {GROWTH: max(worst), **figures} if worst else figures


def limit_of(line: Line, warmup: int, rules: Gate) -> float:
    """Return how much a line with a limit may grow in 1,000 batches.

    It is the limit of the gate, or, in a short repetition, the least growth that counts.
    """
    limit = float(getattr(rules.soak_growth, line.held.limit))
    after = [batch for batch in line.batches if batch >= warmup]
    return max(limit, _PER * line.held.least / (after[-1] - after[0])) if after[1:] else limit


@dataclass(frozen=True)
class LineOfPair:
    """One line of both arms in one pair: the candidate's, the growth of both, and the limit."""

    aged: Aged
    line: Line
    limit: float
    candidate: Slope
    baseline: Slope

    @property
    def more(self) -> Slope:
        """How much more the candidate grows than the baseline."""
        slope = self.candidate.slope - self.baseline.slope
        half = math.hypot(self.candidate.half, self.baseline.half)
        return Slope(slope, slope - half, slope + half)

    @property
    def shown(self) -> bool:
        """Whether the candidate surely grows by more than the limit, and than the baseline."""
        return self.candidate.lo > self.limit and self.more.lo > 0

    @property
    def both(self) -> bool:
        """Whether both arms surely grow by more than the limit, neither more than the other."""
        return min(self.candidate.lo, self.baseline.lo) > self.limit and not self.shown


@dataclass(frozen=True)
class LineOverPairs:
    """A line in all pairs of a query, in the order in which they were measured."""

    pairs: tuple[LineOfPair, ...]

    @property
    def held(self) -> Held:
        """What is held."""
        return self.pairs[0].line.held

    @property
    def shown(self) -> int:
        """The number of pairs that show that it grows."""
        return sum(each.shown for each in self.pairs)

    @property
    def both(self) -> bool:
        """Whether it grows in both arms of every pair."""
        return all(each.both for each in self.pairs)

    @property
    def name(self) -> str:
        """What people call it."""
        return self.pairs[0].line.name

    def pooled(self, arm: str) -> Slope:
        """Return the growth of an arm over all pairs; of ``more``, how much more the candidate's.

        Pairs count by the width of their intervals.
        """
        growths = [getattr(each, arm) for each in self.pairs]
        least = 1e-9 + 1e-3 * self.pairs[0].limit
        weights = [1 / max(each.half, least) ** 2 for each in growths]
        slope = sum(w * each.slope for w, each in zip(weights, growths, strict=True)) / sum(weights)
        half = 1 / math.sqrt(sum(weights))
        return Slope(slope, slope - half, slope + half)

    @property
    def excluded(self) -> bool:
        """Whether a growth above the limit is excluded: at all, or beside the baseline's."""
        limit = self.pairs[0].limit
        return self.pooled("candidate").hi < limit or self.pooled("more").hi < limit

    @property
    def refuted(self) -> bool:
        """Whether one of several pairs showed it, and all of them together do not."""
        together = self.pooled("candidate").lo > self.pairs[0].limit and self.pooled("more").lo > 0
        return self.shown == 1 and len(self.pairs) > 1 and (self.excluded or not together)

    def words(self, arm: str) -> str:
        """Return the growth of an arm in words: +3.1 MB (2.9 to 3.3)."""
        growth, unit = self.pooled(arm), self.held.growth_unit
        space = " " if unit else ""
        return f"{growth.slope:+.2f}{space}{unit} ({growth.lo:.2f} to {growth.hi:.2f})"


def over_pairs(pairs: Sequence[Aged], warmup: int, rules: Gate) -> list[LineOverPairs]:
    """Return the lines with a limit over the whole pairs of a query."""
    compared: dict[str, list[LineOfPair]] = {}
    for pair in pairs:
        if pair.candidate is None or pair.baseline is None:
            continue
        baselines = {line.name: line for line in lines_of(pair.baseline)}
        for line in lines_of(pair.candidate):
            if not line.held.limit or line.name not in baselines:
                continue
            candidate = growth_of(line, warmup)
            baseline = growth_of(baselines[line.name], warmup)
            if candidate and baseline:
                limit = limit_of(line, warmup, rules)
                compared.setdefault(line.name, []).append(
                    LineOfPair(pair, line, limit, candidate, baseline)
                )
    return [LineOverPairs(tuple(each)) for each in compared.values()]


class GrownPart(NamedTuple):
    """What a line is made up of: the name of a class, a thread or a directory of open files.

    It grew by ``grown``, in the unit of the line, which is ``share`` of all growth.
    """

    name: str
    grown: float
    share: float


def parts_that_grew(samples: Sequence[Sample], line: Line, warmup: int) -> list[GrownPart]:
    """Return what grew most in a line, by the first sample after the warm-up and the last one."""
    after = [each for each in samples if each["batch"] >= warmup]
    if not line.held.parts or len(after) < _SHOWN_TWICE:
        return []
    first, last = (_parts(each, line) for each in (after[0], after[-1]))
    by_part = {name: size - first.get(name, 0) for name, size in last.items()}
    total = sum(_whole(each, line) * sign for each, sign in ((after[-1], 1), (after[0], -1)))
    if total <= 0:
        return []
    ranked = sorted(by_part.items(), key=lambda each: -each[1])
    return [
        GrownPart(name, line.held.scale * grown, grown / total)
        for name, grown in ranked[:_NAMED]
        if grown > 0
    ]


def _parts(sample: Sample, line: Line) -> dict[str, float]:
    parts: dict[str, float] = {}
    for jvm in sample["processes"]:
        if jvm["role"] == line.where:
            for name, size in jvm.get(line.held.parts, {}).items():
                parts[name] = parts.get(name, 0) + size
    return parts


def _whole(sample: Sample, line: Line) -> float:
    return float(
        sum(jvm[line.held.key] for jvm in sample["processes"] if jvm["role"] == line.where)
    )


def above_since(pair: LineOfPair, warmup: int) -> int | None:
    """Return the batch from which on a candidate is above what the limit and the baseline allow.

    None if the last sample is not. What is allowed grows with the batches after the warm-up.
    """
    after = [
        (batch, value)
        for batch, value in zip(pair.line.batches, pair.line.values, strict=True)
        if batch >= warmup
    ]
    (begin, level), unit = after[0], 1.0
    if pair.line.held.relative:
        unit = median(value for _, value in after) / 100
    per_batch = unit * (pair.limit + max(pair.baseline.slope, 0.0)) / _PER
    above = [value > level + per_batch * (batch - begin) for batch, value in after]
    last = len(above) - above[::-1].index(False)  # the first sample is not above itself
    return after[last][0] if last < len(after) else None


def judge_growth(night: MeasuredNight, rules: Gate) -> list[Verdict]:
    """Return a verdict on each query of a soak night, by the growth of its lines with a limit."""
    grounds = Grounds(night, rules)
    return [_judged(query, grounds) for query in night.expected]


def growing_on(night: MeasuredNight, rules: Gate) -> list[str]:
    """Return the queries of a soak night that another round would measure, suspects first."""
    grounds = Grounds(night, rules)
    values = {query: _judged(query, grounds).value for query in night.expected}
    return [
        query
        for wanted in (Value.SUSPECT, Value.UNDECIDED)
        for query, value in values.items()
        if value is wanted
    ]


def _judged(query: str, grounds: Grounds) -> Verdict:
    night, rules = grounds.night, grounds.rules
    blank = grounds.blank(query, rules.metric, Value.OK, "")
    if query in night.invalid:
        return replace(blank, value=Value.INVALID, reason=night.invalid[query])
    if any(one.query == query and one.is_unproven for one in night.measured):
        return replace(blank, value=Value.INVALID, reason="its result is not proven to be right")
    pairs = night.aged.get(query, ())
    whole = [each for each in pairs if each.candidate is not None and each.baseline is not None]
    if not whole:
        alone = any(each.candidate is not None for each in pairs)
        if alone and query not in night.baseline:
            why = "no baseline was measured: accept a run, or name a build"
            return replace(blank, value=Value.NO_BASELINE, reason=why)
        why = night.missing.get(query, "not measured")
        return replace(blank, value=Value.MISSING, reason=why)
    lines = over_pairs(whole, night.warmup, rules)
    if not lines:
        why = f"fewer than {LEAST_POINTS} samples after the warm-up"
        return replace(blank, value=Value.MISSING, reason=why)
    unsteady = _host_of_cpu(query, grounds)
    if unsteady:
        lines = [line for line in lines if line.held is not CPU_OF_BATCH]
    value, reason = _of_lines(lines, len(whole), night.warmup)
    if unsteady:
        reason = f"{reason}; the CPU time of a batch is not judged: {unsteady}"
    multiples = {arm: _largest(lines, arm) for arm in (Arm.CANDIDATE, Arm.BASELINE)}
    fresh = sum(each.round > 1 for each in whole)
    return replace(
        blank,
        value=value,
        reason=reason,
        candidate=multiples[Arm.CANDIDATE],
        baseline=multiples[Arm.BASELINE],
        pairs=len(whole) - fresh,
        fresh_pairs=fresh,
        repetitions=len(whole) - fresh,
    )


def _host_of_cpu(query: str, grounds: Grounds) -> str:
    """Return why the host says nothing of the CPU time of a batch; "" if it does."""
    host = grounds.grade(query)
    broken = host.steadiness is Steadiness.BROKEN
    return host.reason if broken or grounds.widening(host) else ""


def _largest(lines: Sequence[LineOverPairs], arm: str) -> float:
    """Return the largest growth of an arm in multiples of its limit.

    The CPU time of a batch counts where it is shown: it is noisier than what is counted.
    """
    of_lines = [
        line.pooled(arm).slope / line.pairs[0].limit
        for line in lines
        if line.shown or line.held is not CPU_OF_BATCH
    ]
    return max(of_lines, default=0.0)


def _of_lines(lines: Sequence[LineOverPairs], pairs: int, warmup: int) -> tuple[Value, str]:
    """Return the value of a verdict on a number of pairs, and its reason."""
    count = "1 pair" if pairs == 1 else f"{pairs} pairs"
    grown = [line for line in lines if line.shown >= _SHOWN_TWICE]
    if grown:
        said = "; ".join(_grows(line, warmup) for line in grown)
        return Value.REGRESSION, f"grows in {count}: {said}"
    once = [line for line in lines if line.shown and not line.refuted]
    if once:
        said = "; ".join(_grows(line, warmup) for line in once)
        return Value.SUSPECT, f"grows? {said}; a second pair has to show it"
    notes = [_of_both(line) for line in lines if line.both]
    vague = [line for line in lines if not line.excluded and not line.both]
    counted = [line for line in vague if line.held is not CPU_OF_BATCH]
    # CPU time is noisier than what is counted: it may be red, and keeps no query open.
    notes += [f"{_vague(line)} is not excluded" for line in vague if line not in counted]
    note = "".join(f"; {each}" for each in notes)
    if counted:
        said = "; ".join(map(_vague, counted))
        return Value.UNDECIDED, f"in {count}, per 1,000 batches: {said}{note}"
    return Value.OK, f"no growth above its limit in {count}{note}"


def _vague(line: LineOverPairs) -> str:
    return f"{line.name} {line.words('candidate')}"


def _of_both(line: LineOverPairs) -> str:
    arms = f"candidate {line.words('candidate')}, baseline {line.words('baseline')}"
    return f"{line.name} grows in both arms: {arms}"


def _grows(line: LineOverPairs, warmup: int) -> str:
    """Return by how much a line grows per 1,000 batches, since when, beside the baseline, and what.

    Args:
        line: The line in all pairs.
        warmup: The number of batches of the warm-up.
    """
    *_, pair = (each for each in line.pairs if each.shown)
    since = above_since(pair, warmup)
    begins = "" if since is None else f" since batch {since:,}"
    arms = f"{line.words('candidate')} per 1,000 batches{begins}, baseline {line.words('baseline')}"
    grew = parts_that_grew(pair.aged.candidate or (), pair.line, warmup)
    of_it = "".join(f", {each.name} {100 * each.share:.0f} %" for each in grew)
    return f"{line.name} {arms}{of_it}"
