"""The second stage of the gate: measures suspects again in the same night.

    suspects >> start_samplers >> fresh (mapped) >> stop_samplers >> record >> flames

Behind its fresh pairs a suspect of the candidate runs once more per arm with the flight recorder,
for flame graphs. Only suspects pay for it. The seeded slowdown goes through it too, since what is
tested is the whole gate.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from airflow.sdk import get_current_context
from airflow.sdk.exceptions import DownstreamTasksSkipped

from nexmark.config import paths
from nexmark.model import Arm, Stage
from nexmark.night import profiling
from nexmark.night.night_progress import say
from nexmark.night.plan import Deployments, Night
from nexmark.night.repetitions import repetition_records
from nexmark.night.run_directory import in_sequence
from nexmark.night.runs import (
    CONFIRMATION,
    Run,
    fresh_runs,
    plan_confirmation,
    position,
    recorded_runs,
    runs_of,
)
from nexmark.night.submission import repetition_submission
from nexmark.tasks.canaries import canary_records
from nexmark.tasks.context import current_night
from nexmark.tasks.recording import summary

if TYPE_CHECKING:
    from nexmark.store import Store


def draw_flames() -> None:
    """Make the flame graphs of every query that was recorded."""
    profiling.draw_flames(current_night())


def suspects() -> list[dict[str, Any]]:
    """Return the submissions of the fresh repetitions; skip the next tasks if there are none."""
    from nexmark.store import open_store

    night = current_night()
    plan: list[Run] = []
    if night.mode == "paired" and night.against:
        with open_store(paths.database_url()) as store:
            found = suspect_arms(night, store)
        recorded = profiling.can_record(night, found)
        for query, arms in found.items():
            say(f"{query}: looks changed ({', '.join(arms)}), is measured again")
            plan += fresh_runs(night, query, [*arms, Arm.BASELINE])
            if recorded and Arm.CANDIDATE in arms:
                plan += recorded_runs(night, query)
    plan_confirmation(night, plan)
    if not plan:
        names = [str(name) for name in get_current_context()["dag"].task_ids]
        skipped = [name for name in names if name.startswith(f"{CONFIRMATION}.")]
        skipped.remove(f"{CONFIRMATION}.suspects")
        raise DownstreamTasksSkipped(tasks=skipped)  # type: ignore[no-untyped-call]
    deployments = Deployments.read(night)
    submissions = [
        repetition_submission(night, deployments, run) | {"heal": run.query} for run in plan
    ]
    return in_sequence(night.query_dir(CONFIRMATION) / "sequence.json", submissions)


def suspect_arms(night: Night, store: Store) -> dict[str, list[str]]:
    """The arms of each query that look other than the baseline."""
    from nexmark.verdict.nightly import suspects as suspect_queries

    earlier = store.earlier(night.name, night.gate.remembered)
    found: dict[str, list[str]] = {}
    for query in suspect_queries(store.paired_night(night.name), earlier, night.gate):
        found.setdefault(query, []).append(Arm.CANDIDATE)
    for arm, query in night.self_test.items():
        tested = store.paired_night(night.name, arms=(arm, Arm.BASELINE), queries=[query])
        if suspect_queries(tested, earlier, night.gate):
            found.setdefault(query, []).append(arm)
    return found


def record_confirmation() -> None:
    """Record every fresh repetition that was planned."""
    from nexmark.store import open_store

    night = current_night()
    runs = runs_of(night, CONFIRMATION)
    with open_store(paths.database_url()) as store:
        store.record_canary(night.name, canary_records(night, CONFIRMATION))
        for query, recorded in dict.fromkeys(
            (run.query, run.stage == Stage.PROFILED) for run in runs
        ):
            # Apart: what was recorded has no say in which results are right.
            own = [x for x in runs if (x.query, x.stage == Stage.PROFILED) == (query, recorded)]
            for made in repetition_records(night, own, store):
                store.record_repetition(made)
                say(f"{position(night, query)} {summary(made, night)}")
