"""Compute how much CPU time each arm saves, and the size at which the sign of a gain changes."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import median

from nexmark.attribution.attribute import attribute
from nexmark.attribution.explained import Attribution
from nexmark.attribution.ranking import ratio_of
from nexmark.experiments.arm_runs import ArmRun
from nexmark.model import MIN_PAIRS, Basis, Value, common_basis


@dataclass(frozen=True)
class Gain:
    """The saving of an arm as a share of the first arm's figure (0.2 is 20 %), with its interval.

    The share is estimated from pairs, as the gate does it. With four pairs or fewer, the interval
    is the range of their ratios.
    """

    share: float
    lo: float
    hi: float
    pairs: int

    @property
    def is_certain(self) -> bool:
        """Whether there are enough pairs, and the whole interval is on one side of zero."""
        return self.pairs >= MIN_PAIRS and (self.lo > 0 or self.hi < 0)


@dataclass(frozen=True)
class ArmResult:
    """An arm of a trial: medians of its runs, and its gain; the first arm has none.

    Attributes:
        runs: how many runs there are.
        cpu_s_per_mevent: CPU-seconds per million events in the steady state; over the whole
            application, if a run of the trial is too short to have a steady state.
        wall_s, state_rows, state_bytes, exchanges, stateful_operators: figures of the whole run.
        digests: the digests of the rows that the runs wrote; one digest if the runs agree.
        equal: whether the rows are equal to the rows of the first arm; None if two right results
            of the query may differ.
        problem: why the arm could not be measured; "" if it was.
        attribution: how the plan, the confs and the operators explain the gain.
    """

    arm: str
    runs: int
    cpu_s_per_mevent: float | None = None
    wall_s: float | None = None
    state_rows: int = 0
    state_bytes: int = 0
    exchanges: int = 0
    stateful_operators: int = 0
    digests: tuple[str, ...] = ()
    equal: bool | None = None
    problem: str = ""
    gain: Gain | None = None
    attribution: Attribution | None = None


@dataclass(frozen=True)
class TrialResult:
    """All arms of one query at one size, the first arm first.

    ``reference`` is None if the rows were not compared with the reference at this size, "" if they
    are equal to it, else what is wrong.
    """

    query: str
    size: int
    arms: tuple[ArmResult, ...]
    reference: str | None = None

    @property
    def is_right(self) -> bool:
        """Whether every arm was measured, and no comparison found other rows."""
        bad = any(arm.problem or arm.equal is False for arm in self.arms)
        return not bad and not self.reference


@dataclass(frozen=True)
class Crossing:
    """The size at which the sign of an arm's gain changes, in events per micro-batch.

    It is interpolated between the two sizes around it, linear over the logarithm of the size.
    ``is_certain``: each of the two gains has its whole interval on its side of zero.
    ``pays_above``: the arm saves CPU time above the size, not below.
    """

    query: str
    arm: str
    size: float
    between: tuple[int, int]
    is_certain: bool
    pays_above: bool


def trial_result(
    query: str,
    size: int,
    runs: Sequence[ArmRun],
    arms: Sequence[str],
    problems: Mapping[str, str],
    *,
    comparable: bool,
    reference: str | None,
) -> TrialResult:
    """Compare the arms of a trial with the first of them.

    Args:
        query: The query of the trial.
        size: Its size, in events per micro-batch.
        runs: The runs of all arms.
        arms: The names of the arms, the first one first.
        problems: Why an arm could not be measured, by arm.
        comparable: Whether all right results of the query have the same rows.
        reference: The outcome of the comparison with the reference, as `TrialResult` has it.
    """
    runs_of_arm = {arm: _on_one_basis(runs, arm) for arm in arms}
    first = runs_of_arm[arms[0]]
    wanted = {run.measurement.digest for run in first}
    results = tuple(
        _arm(query, arm, runs_of_arm[arm], first if arm != arms[0] else [], wanted, comparable)
        if runs_of_arm[arm] and arm not in problems
        else ArmResult(arm, len(runs_of_arm[arm]), problem=problems.get(arm, "was not measured"))
        for arm in arms
    )
    return TrialResult(query, size, results, reference)


def _on_one_basis(runs: Sequence[ArmRun], arm: str) -> list[ArmRun]:
    """Return the runs of an arm, on the basis that all runs of the trial have."""
    mine = [run for run in runs if run.arm == arm]
    if common_basis(run.measurement.cpu_s_per_mevent_steady for run in runs) is Basis.STEADY:
        return mine
    return [run.over_application() for run in mine]


def _arm(
    query: str,
    arm: str,
    runs: Sequence[ArmRun],
    first: Sequence[ArmRun],
    wanted: set[str | None],
    comparable: bool,
) -> ArmResult:
    """Return the result of an arm that was measured.

    Args:
        query: The query of the trial.
        arm: The name of the arm.
        runs: Its runs.
        first: The runs of the first arm; empty if this is the first arm.
        wanted: The digests of the first arm's rows.
        comparable: Whether all right results of the query have the same rows.
    """
    measured = [run.measurement for run in runs]
    digests = {str(one.digest) for one in measured}
    gain = _gain(runs, first)
    attribution = attribute(
        query,
        [run.observed for run in runs],
        [run.observed for run in first],
        verdict=_changed(gain),
    )
    return ArmResult(
        arm=arm,
        runs=len(runs),
        cpu_s_per_mevent=median(measurement.cpu_s_per_mevent for measurement in measured),
        wall_s=median(measurement.wall_s for measurement in measured),
        state_rows=max(measurement.state_rows_max for measurement in measured),
        state_bytes=max(measurement.state_bytes_max for measurement in measured),
        exchanges=measured[0].exchanges,
        stateful_operators=measured[0].stateful_operators,
        digests=tuple(sorted(digests)),
        equal=(len(digests) == 1 and digests == wanted) if comparable else None,
        gain=gain,
        attribution=attribution,
    )


def _gain(runs: Sequence[ArmRun], first: Sequence[ArmRun]) -> Gain | None:
    """Return the gain of the runs over the first arm's runs of the same pairs; None without one."""
    of_first = {run.pair: run.measurement.cpu_s_per_mevent for run in first}
    pairs = [
        (run.measurement.cpu_s_per_mevent, of_first[run.pair])
        for run in runs
        if run.pair in of_first
    ]
    change = ratio_of([cpu for cpu, _ in pairs], [cpu for _, cpu in pairs])
    if change is None or change.lo is None or change.hi is None:
        return None
    return Gain(1 - change.ratio, 1 - change.hi, 1 - change.lo, len(pairs))


def _changed(gain: Gain | None) -> Value | None:
    """Return a certain gain as a verdict for the attribution; None: it decides by the pairs."""
    if gain is None or not gain.is_certain:
        return None
    return Value.FASTER if gain.share > 0 else Value.SUSPECT


def crossings(results: Sequence[TrialResult]) -> list[Crossing]:
    """Return the sizes at which the sign of a gain changes, each between two measured sizes."""
    gains: dict[tuple[str, str], list[tuple[int, Gain]]] = {}
    for result in sorted(results, key=lambda trial: trial.size):
        for each in result.arms:
            if each.gain is not None:
                gains.setdefault((result.query, each.arm), []).append((result.size, each.gain))
    crossings = []
    for (query, arm), row in gains.items():
        for (small, low), (big, high) in pairwise(row):
            if (low.share > 0) != (high.share > 0):
                # The size at which the line between both gains, as logarithms of ratios, is 0.
                ends = [math.log1p(-gain.share) for gain in (low, high)]
                size = small * (big / small) ** (ends[0] / (ends[0] - ends[1]))
                sure = low.is_certain and high.is_certain
                crossings.append(Crossing(query, arm, size, (small, big), sure, high.share > 0))
    return crossings
