"""The timed applications of a night: which arm of which query, how often, in which order.

A night of pairs has two arms. Two of its queries have one more each, by which the gate is tested:

    control   the baseline once more: control and baseline must not be told apart
    slowed    the baseline with a slowdown of known size, which must be found
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from pydantic import TypeAdapter

from nexmark.config import BASELINE, CANDIDATE, KNOWN_QUERIES, Gate
from nexmark.config.fields import Model
from nexmark.tasks.night import Night

CONTROL, SLOWED = "control", "slowed"

#: What the fresh pairs of all suspects are together, where a query is one for itself.
CONFIRMATION = "confirmation"

#: The first pairs of a night, the fresh ones by which a suspicion is confirmed, and those with a
#: flight recorder, which count for nothing but the flame graphs.
FIRST, FRESH, PROFILED = 1, 2, 3

_PREFIXES = {FIRST: "", FRESH: "fresh-", PROFILED: "recorded-"}


class Run(Model):
    """One timed application: repetition `number` (from 1) of an arm, in a stage of the gate."""

    query: str
    number: int
    arm: str = CANDIDATE
    stage: int = FIRST

    @property
    def name(self) -> str:
        """Its directory in that of the query: `rep-1`, `baseline-rep-1`, `fresh-rep-1`."""
        arm = "" if self.arm == CANDIDATE else f"{self.arm}-"
        return f"{_PREFIXES[self.stage]}{arm}rep-{self.number}"

    @property
    def cluster_arm(self) -> str:
        """The arm on whose cluster, and of whose build, it runs."""
        return CANDIDATE if self.arm == CANDIDATE else BASELINE


_PLAN = TypeAdapter(list[Run])


def run_order(gate: Gate) -> list[str]:
    """All queries in the order they run."""
    from nexmark.verdict.order import query_order

    names = list(KNOWN_QUERIES)
    return names if gate.order_seed is None else query_order(names, gate.order_seed)


def first_runs(night: Night, query: str) -> list[Run]:
    """The first repetitions of `query` in the order they run."""
    arms = [CANDIDATE]
    if query in night.against:
        arms += [BASELINE, *(arm for arm, tested in night.self_test.items() if tested == query)]
    return _runs(night, query, arms, night.workload.repetitions, FIRST)


def fresh_runs(night: Night, query: str, arms: Sequence[str]) -> list[Run]:
    """The repetitions by which a suspicion about `query` is confirmed, in the order they run."""
    from nexmark.verdict.rules import fresh_pairs

    count = fresh_pairs(night.workload.repetitions, night.gate)
    return _runs(night, query, arms, count, FRESH)


def recorded_runs(night: Night, query: str) -> list[Run]:
    """One repetition of each arm with the flight recorder, for the flame graphs of `query`."""
    return _runs(night, query, [CANDIDATE, BASELINE], 1, PROFILED)


def group(run: Run) -> str:
    """What a repetition is sampled with: its query, or the confirmation."""
    return run.query if run.stage == FIRST else CONFIRMATION


def runs_of(night: Night, name: str) -> list[Run]:
    """The repetitions of a group, in the order they run."""
    if name != CONFIRMATION:
        return first_runs(night, name)
    try:
        return _PLAN.validate_json(_plan_path(night).read_bytes())
    except FileNotFoundError:
        return []


def plan_confirmation(night: Night, runs: Sequence[Run]) -> None:
    """Decide what the confirmation runs."""
    path = _plan_path(night)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(_PLAN.dump_json(list(runs), indent=1))


def _plan_path(night: Night) -> Path:
    return night.query_dir(CONFIRMATION) / "runs.json"


def _runs(night: Night, query: str, arms: Sequence[str], count: int, stage: int) -> list[Run]:
    """The arms take turns; which one is first each time, the seed of the night says."""
    from nexmark.verdict.order import arm_order

    return [
        Run(query=query, number=number, arm=arm, stage=stage)
        for number, arm in arm_order(count, arms, f"{night.seed} {query} {stage}")
    ]


__all__ = [
    "CONFIRMATION",
    "CONTROL",
    "FIRST",
    "FRESH",
    "PROFILED",
    "SLOWED",
    "Run",
    "first_runs",
    "fresh_runs",
    "group",
    "plan_confirmation",
    "recorded_runs",
    "run_order",
    "runs_of",
]
