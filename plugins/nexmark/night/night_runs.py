"""Which timed applications a night runs, and in which order.

A night of pairs has two arms. Two of its queries have one more each, by which the gate is tested:

    control   the baseline once more: the gate must find no difference between the two
    slowed    the baseline with a slowdown of known size, which must be found
"""

from collections.abc import Sequence

from nexmark.config import KNOWN_QUERIES, Gate
from nexmark.config.fields import job_names
from nexmark.model import FIRST_ROUND, FLAMES, PROFILED, Arm, round_group
from nexmark.night.night_plan import Night
from nexmark.night.run_directory import Run
from nexmark.verdict.order import arm_order, query_order, rounds_from


def run_order(gate: Gate) -> list[str]:
    """Return all queries in the order they run: ours, then the jobs of a person's own."""
    return [*_our_order(gate), *job_names()]


def order_of(night: Night) -> list[str]:
    """Return the queries of a night in the order they run."""
    return [name for name in (*_our_order(night.gate), *night.jobs) if name in night.queries]


def _our_order(gate: Gate) -> list[str]:
    names = list(KNOWN_QUERIES)
    return names if gate.order_seed is None else query_order(names, gate.order_seed)


def position(night: Night, query: str) -> str:
    """Return the place of a query in the night for messages: `[ 3/24] q2`."""
    place = order_of(night).index(query) + 1
    width = len(str(len(night.queries)))
    return f"[{place:>{width}}/{len(night.queries)}] {query:<4}"


def first_runs(night: Night, query: str) -> list[Run]:
    """Return the first repetitions of `query` in the order they run."""
    arms: list[str] = [Arm.CANDIDATE]
    if query in night.against:
        arms += [Arm.BASELINE, *(arm for arm, tested in night.self_test.items() if tested == query)]
    return _runs(night, query, arms, night.workload.repetitions, FIRST_ROUND)


def round_runs(night: Night, query: str, arms: Sequence[str], number: int) -> list[Run]:
    """Return the repetitions of `query` in a later round, in the order they run.

    Args:
        night: The night.
        query: The query that goes on.
        arms: The arms that go on, the baseline with them.
        number: The round, from 2.
    """
    planned = rounds_from(night.workload.repetitions, night.gate)
    return _runs(night, query, arms, planned[number - 1], number)


def recorded_runs(night: Night, query: str) -> list[Run]:
    """Return a repetition of each arm with the flight recorder, for the flame graphs."""
    return _runs(night, query, [Arm.CANDIDATE, Arm.BASELINE], 1, PROFILED)


def later_groups(gate: Gate) -> list[str]:
    """Return the groups behind the queries: the later rounds, and the flame graphs."""
    return [*map(round_group, range(2, len(gate.rounds) + 1)), FLAMES]


def runs_of(night: Night, group: str) -> list[Run]:
    """Return the repetitions of a query or of a later group, in the order they run."""
    if group in later_groups(night.gate):
        return night.files.group(group).runs()
    return first_runs(night, group)


def _runs(night: Night, query: str, arms: Sequence[str], count: int, stage: int) -> list[Run]:
    """Return runs whose arms take turns; the seed of the night says which is first each time.

    Args:
        night: The night.
        query: The query.
        arms: The arms that take turns.
        count: The number of repetitions of each arm.
        stage: The round, or ``PROFILED``.
    """
    return [
        Run(query=query, number=number, arm=arm, stage=stage)
        for number, arm in arm_order(count, arms, f"{night.seed} {query} {stage}")
    ]
