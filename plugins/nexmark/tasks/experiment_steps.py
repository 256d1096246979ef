"""The tasks of `nexmark_experiment`: what to measure, one application each, the table."""

import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

from airflow.sdk import get_current_context
from airflow.sdk.exceptions import AirflowFailException

from nexmark.config import load, load_experiments, paths
from nexmark.config.fields import Model
from nexmark.engines import usable
from nexmark.errors import NexmarkError
from nexmark.night.night_progress import say
from nexmark.night.run_directory import Json, RunDirectory, TaskDirectory, TurnFile, failure_kept
from nexmark.tasks import failing, given_params
from nexmark.terminal import columns

if TYPE_CHECKING:
    from nexmark.experiments.arm_runs import ArmRun, Trial


class _Step(Model):
    """An application of the experiment: the number of its trial, its pair and its arm."""

    trial: int
    pair: int
    arm: str


def steps() -> list[dict[str, Json]]:
    """Return the values to map `measure` over: every arm of every trial, once per pair."""
    from nexmark.experiments.experiment_run import check_arms, trial_order

    with failing(NexmarkError, AirflowFailException):
        directory, trials = _directory(), _trials()
        check_arms(trials[0].experiment, trials[0].builds)
    order = [
        _Step(trial=number, pair=pair, arm=arm)
        for number, trial in enumerate(trials)
        for pair, arm in trial_order(trial, _pairs())
    ]
    say(f"{trials[0].experiment.name}: {len(order)} applications")
    turns = directory.experiment_steps
    turns.write([step.model_dump(mode="json") for step in order])
    return [{"step": {"sequence": str(turns.path)}} for _ in order]


def measure(step: Json) -> None:
    """Measure the arm whose turn it is, in a fresh application."""
    context = get_current_context()
    turns = TurnFile(Path(str(step["sequence"])))
    mine = _Step.model_validate(turns.claim(context["ti"].map_index or 0))
    trial, arm, pair = _trials()[mine.trial], mine.arm, mine.pair
    label = f"{trial.name}: pair {pair}, {arm}"
    context["application"] = label  # type: ignore[typeddict-unknown-key]
    kept = TaskDirectory(trial.place_of(arm, pair))
    with failing(NexmarkError, AirflowFailException), failure_kept(kept):
        say(f"{label}: {trial.run(arm, pair)}")


def table() -> None:
    """Compare results and figures; the table is in the log and in files. Red if results differ."""
    from nexmark.experiments.experiment_rows import keep
    from nexmark.experiments.experiment_run import judge, result_of

    trials, pairs = _trials(), _pairs()
    results = [judge(trial, *_runs(trial, pairs), say) for trial in trials]
    result = result_of(trials[0].experiment, trials[0].builds, pairs, results)
    directory = _directory()
    for events in directory.experiment_applications.glob("events-*"):
        shutil.rmtree(events, ignore_errors=True)
    kept, page = keep(result, get_current_context()["dag_run"].run_id, directory.path)
    heads, *rows = kept.table
    say("\n".join([columns(heads, rows), "", *kept.lines, "", str(page)]))
    if not kept.right:
        raise AirflowFailException(f"{kept.arms[0].name}: not all arms are equal and right")


def _runs(trial: "Trial", pairs: int) -> "tuple[list[ArmRun], dict[str, str]]":
    """Return the figures of the applications, and why there are none."""
    from nexmark.experiments.arm_runs import arm_run
    from nexmark.experiments.experiment_run import trial_order

    runs: list[ArmRun] = []
    problems: dict[str, str] = {}
    for pair, arm in trial_order(trial, pairs):
        place = trial.place_of(arm, pair)
        try:
            runs.append(arm_run(arm, pair, place, trial.experiment.warmup_batches))
        except (OSError, NexmarkError):
            problems[arm] = TaskDirectory(place).failure()
    return runs, problems


def _trials() -> "list[Trial]":
    from nexmark.experiments.experiment_run import trials_of
    from nexmark.experiments.local_applications import LocalApplications

    params = _params()
    entry = load_experiments()[params["name"]]
    if params["sizes"]:
        entry = entry.model_copy(update={"sizes": tuple(sorted(map(int, set(params["sizes"]))))})
    build = load().engines[params["engine"]].build
    sources = {arm: one.build or build for arm, one in entry.arms.items()}
    builds = {arm: usable(source, paths.builds_dir(), say=say) for arm, source in sources.items()}
    work = _directory().experiment_applications
    work.mkdir(parents=True, exist_ok=True)
    return list(trials_of(entry, builds, LocalApplications(work)))


def _pairs() -> int:
    """Return the pairs of each arm; 4.0 is a whole number in JSON."""
    return int(_params()["pairs"])


def _directory() -> RunDirectory:
    run = get_current_context()["dag_run"]
    return RunDirectory.of(run.dag_id, run.run_id)


def _params() -> dict[str, Any]:
    return given_params(get_current_context())
