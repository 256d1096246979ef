"""The steps of a rollout that a night lacks: which stage this run measures, and what follows.

    preflight >> (a night) >> report >> stage >> next_stage

A run of `nexmark_rollout` is the night of one stage; a green one triggers the next. The run
directory keeps the rollout's name, so that any of its tasks can be cleared.
"""

from typing import TYPE_CHECKING

from airflow.sdk import get_current_context
from airflow.sdk.exceptions import AirflowFailException

from nexmark.config import load
from nexmark.errors import NexmarkError
from nexmark.night.night_progress import say
from nexmark.night.params import RolloutParams
from nexmark.night.run_directory import RunDirectory
from nexmark.recording.night_records import results, results_of
from nexmark.tasks import current_night, failing, given_params
from nexmark.tasks.preflight import prepare_night
from nexmark.tasks.run_state import no_night

if TYPE_CHECKING:
    from nexmark.rollout.state import Rollout


def rollout_preflight() -> None:
    """Begin a rollout, or resume one; then the preflight of the night of its next stage."""
    with failing(NexmarkError, AirflowFailException):
        rollout = _of_this_run()
    if (place := rollout.next) is None:
        raise no_night(f"rollout {rollout.name}: all stages have it")
    queries = ",".join(rollout.stages[place].queries)
    say(f"rollout {rollout.name}: stage {place + 1} of {len(rollout.stages)}: {queries}")
    prepare_night(rollout.engine, {**rollout.params, "queries": queries})


def _of_this_run() -> "Rollout":
    """Return the rollout of this run, by its params where its name is not kept yet."""
    from nexmark.rollout.state import Rollout, rollout_of

    kept = _directory()
    if (name := kept.rollout()) is not None:
        return _resumed(Rollout.read(name), None)
    asked = RolloutParams.of(given_params(get_current_context()))
    rollout = rollout_of(asked, load())
    if asked.resume is not None:
        rollout = _resumed(rollout, asked.accept)
    kept.write_rollout(rollout.name)
    return rollout


def _resumed(rollout: "Rollout", reason: str | None) -> "Rollout":
    """Return the rollout with its red stage accepted; NexmarkError where nobody has."""
    from nexmark.rollout.rolling import resumed

    who = get_current_context()["dag_run"].triggering_user_name or "Airflow"
    with results() as store:
        return resumed(rollout, store, who, reason)


def _directory() -> RunDirectory:
    run = get_current_context()["dag_run"]
    return RunDirectory.of(run.dag_id, run.run_id)


def judge_stage() -> list[dict[str, str]]:
    """Judge the stage, red if it is; returns the params of the run of the next one, if any."""
    from nexmark.rollout.rolling import judged, remedy, stopped_by, table, way_back, write_page
    from nexmark.rollout.state import Rollout

    night = current_night()
    rollout = Rollout.read(str(_directory().rollout()))
    nights = [stage.night for stage in rollout.stages]
    place = nights.index(night.name) if night.name in nights else rollout.next
    assert place is not None
    with results_of(night) as store:
        stage = judged(
            store,
            rollout.stages[place],
            night.name,
            go_on_undecided=rollout.go_on_undecided,
        )
    rollout = rollout.with_stage(place, stage)
    say(table(rollout))
    say(f"page: {write_page(rollout)}")
    if rollout.stopped is not None:
        reasons = (stopped_by(rollout), way_back(rollout), remedy(rollout))
        raise AirflowFailException("; ".join(reasons))
    return [] if rollout.next is None else [{"resume": rollout.name}]
