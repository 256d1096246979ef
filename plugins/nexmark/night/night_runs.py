"""Which timed applications a night runs, and in which order.

A night of pairs has two arms. Two of its queries have one more each, by which the gate is tested:

    control   the baseline once more: the gate must find no difference between the two
    slowed    the baseline with a slowdown of known size, which must be found
"""

from collections.abc import Sequence

from nexmark.config import KNOWN_QUERIES, Gate
from nexmark.model import CONFIRMATION, Arm, Stage
from nexmark.night.plan import Night
from nexmark.night.run_directory import Run
from nexmark.verdict.order import arm_order, fresh_pairs, query_order


def run_order(gate: Gate) -> list[str]:
    """Return all queries in the order they run."""
    names = list(KNOWN_QUERIES)
    return names if gate.order_seed is None else query_order(names, gate.order_seed)


def position(night: Night, query: str) -> str:
    """Return the place of a query in the night for messages: `[ 3/24] q2`."""
    place = [name for name in run_order(night.gate) if name in night.queries].index(query) + 1
    width = len(str(len(night.queries)))
    return f"[{place:>{width}}/{len(night.queries)}] {query:<4}"


def first_runs(night: Night, query: str) -> list[Run]:
    """Return the first repetitions of `query` in the order they run."""
    arms: list[str] = [Arm.CANDIDATE]
    if query in night.against:
        arms += [Arm.BASELINE, *(arm for arm, tested in night.self_test.items() if tested == query)]
    return _runs(night, query, arms, night.workload.repetitions, Stage.FIRST)


def fresh_runs(night: Night, query: str, arms: Sequence[str]) -> list[Run]:
    """Return the repetitions by which a suspicion is confirmed, in the order they run."""
    count = fresh_pairs(night.workload.repetitions, night.gate)
    return _runs(night, query, arms, count, Stage.FRESH)


def recorded_runs(night: Night, query: str) -> list[Run]:
    """Return a repetition of each arm with the flight recorder, for the flame graphs."""
    return _runs(night, query, [Arm.CANDIDATE, Arm.BASELINE], 1, Stage.PROFILED)


def runs_of(night: Night, group: str) -> list[Run]:
    """Return the repetitions of a query or of the confirmation, in the order they run."""
    return night.files.confirmation_runs() if group == CONFIRMATION else first_runs(night, group)


def _runs(night: Night, query: str, arms: Sequence[str], count: int, stage: int) -> list[Run]:
    """Return runs whose arms take turns; the seed of the night says which is first each time."""
    return [
        Run(query=query, number=number, arm=arm, stage=stage)
        for number, arm in arm_order(count, arms, f"{night.seed} {query} {stage}")
    ]
