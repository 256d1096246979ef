"""The tasks of the rounds that follow the queries, and of the flame graphs behind them.

    plan >> start_samplers >> repetition (mapped) >> stop_samplers >> record

Each round measures only what is still undecided or suspected. What has changed runs once more per
arm with the flight recorder, for flame graphs; nobody else pays for it. The seeded slowdown goes
through the rounds too, since what is tested is the whole gate.
"""

from collections.abc import Sequence
from datetime import UTC, datetime

from airflow.sdk import exceptions, get_current_context

from nexmark.judging import arms_going_on, changed_queries
from nexmark.model import FLAMES, MOST_ROUNDS, Arm, Mode, round_group
from nexmark.night.applications import repetition_submission
from nexmark.night.deployments import Deployments
from nexmark.night.night_budget import affordable
from nexmark.night.night_plan import Night
from nexmark.night.night_progress import say
from nexmark.night.night_runs import recorded_runs, round_runs
from nexmark.night.run_directory import Json, Run
from nexmark.recording import flight_recordings
from nexmark.recording.night_records import record_group, results
from nexmark.tasks import current_night
from nexmark.tasks.query import in_turn


def plan_round(number: int) -> list[dict[str, Json]]:
    """Return the submissions of a round; skip it, and all that follow, if nothing goes on."""
    night = current_night()
    runs: list[Run] = []
    if _is_in_pairs(night) and number <= len(night.gate.rounds):
        with results() as store:
            going = arms_going_on(night, store, number)
        round_ = affordable(night, going, number, datetime.now(UTC))
        for line in round_.late:
            say(line)
        for query, arms in round_.arms.items():
            say(f"{query}: goes on to round {number} ({', '.join(arms)})")
            runs += round_runs(night, query, [*arms, Arm.BASELINE], number)
    later = [round_group(each) for each in range(number, MOST_ROUNDS + 1)]
    return _submissions(night, runs, later)


def plan_recordings() -> list[dict[str, Json]]:
    """Return the submissions with the flight recorder; skip them if nothing has changed."""
    night = current_night()
    runs: list[Run] = []
    if _is_in_pairs(night) and flight_recordings.can_record(night):
        with results() as store:
            changed = changed_queries(night, store)
        runs = [run for query in changed for run in recorded_runs(night, query)]
    return _submissions(night, runs, [FLAMES])


def _is_in_pairs(night: Night) -> bool:
    return night.mode == Mode.PAIRED and bool(night.against)


def _submissions(night: Night, runs: Sequence[Run], groups: Sequence[str]) -> list[dict[str, Json]]:
    """Return the submissions of the first group; skip all groups if it has nothing to run."""
    group, *_ = groups
    night.files.group(group).write_runs(runs)
    if not runs:
        names = [str(name) for name in get_current_context()["dag"].task_ids]
        skipped = [name for name in names if name.partition(".")[0] in groups]
        skipped.remove(f"{group}.plan")
        raise exceptions.DownstreamTasksSkipped(tasks=skipped)  # type: ignore[no-untyped-call]
    deployments = Deployments.read(night)
    submissions = [repetition_submission(night, deployments, run) for run in runs]
    return in_turn(night.files.group(group).turns, submissions)


def record_later(group: str) -> None:
    """Record every repetition that a later group has planned."""
    with results() as store:
        record_group(current_night(), group, store, say)


def draw_flames() -> None:
    """Make the flame graphs of every query that was recorded."""
    flight_recordings.draw_flames(current_night())
