"""An experiment from its entry to its result: every size, every query, all arms in turns."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from nexmark.config import Experiment
from nexmark.engines import Build
from nexmark.expectations.contract import ExpectationsError
from nexmark.expectations.suites import validate
from nexmark.experiments.arm_runs import ArmRun, Trial
from nexmark.experiments.gains import Crossing, TrialResult, crossings, trial_result
from nexmark.experiments.local_applications import RESULT, ExperimentError, LocalApplications
from nexmark.model import Say
from nexmark.verdict.order import arm_order
from nexmark_jobs.errors import UsageError
from nexmark_jobs.experiments import query_named
from nexmark_jobs.queries import Query


@dataclass(frozen=True)
class ExperimentResult:
    """The result of an experiment: its trials in ascending size, and where gains turn round."""

    experiment: Experiment
    spark_versions: Mapping[str, str]
    pairs: int
    trials: tuple[TrialResult, ...]
    crossings: tuple[Crossing, ...]

    @property
    def is_right(self) -> bool:
        """Whether every arm of every trial was measured, and all results are equal."""
        return all(trial.is_right for trial in self.trials)


def measure_experiment(
    experiment: Experiment,
    builds: Mapping[str, Build],
    pairs: int,
    applications: LocalApplications,
    say: Say,
    tick: Callable[[], str] = str,
) -> ExperimentResult:
    """Measure `experiment`; `builds` is by arm. An arm that fails is a part of the result.

    `tick` is called after each application; its result is printed.
    """
    results = []
    for trial in trials_of(experiment, builds, applications):
        runs: list[ArmRun] = []
        problems: dict[str, str] = {}
        for pair, arm in trial_order(trial, pairs):
            if arm in problems:
                continue
            try:
                runs.append(trial.run(arm, pair))
            except ExperimentError as error:
                problems[arm] = str(error)
                say(f"{trial.name}: {arm}: failed: {error}{tick()}")
                continue
            say(f"{trial.name}: pair {pair} of {pairs}, {arm}: {runs[-1]}{tick()}")
        results.append(judge(trial, runs, problems, say))
    return result_of(experiment, builds, pairs, results)


def result_of(
    experiment: Experiment, builds: Mapping[str, Build], pairs: int, trials: list[TrialResult]
) -> ExperimentResult:
    """Return the result of an experiment from the results of its trials."""
    versions = {arm: build.version for arm, build in builds.items()}
    return ExperimentResult(experiment, versions, pairs, tuple(trials), tuple(crossings(trials)))


def applications_of(experiment: Experiment, pairs: int) -> int:
    """Return how many timed applications an experiment has."""
    return len(experiment.queries) * len(experiment.sizes) * len(experiment.arms) * pairs


def trials_of(
    experiment: Experiment, builds: Mapping[str, Build], applications: LocalApplications
) -> Iterator[Trial]:
    """Yield each query at each size, the smallest size first."""
    for query in experiment.queries:
        for size in experiment.sizes:
            yield Trial(experiment, query, size, builds, applications)


def trial_order(trial: Trial, pairs: int) -> list[tuple[int, str]]:
    """Return each (pair, arm) in order: balanced, and drawn from the name of the trial."""
    return arm_order(pairs, list(trial.experiment.arms), trial.name)


def judge(trial: Trial, runs: list[ArmRun], problems: Mapping[str, str], say: Say) -> TrialResult:
    """Compare the arms; at the smallest size also the first arm's table with the reference."""
    query = query_named(trial.query)
    arms = list(trial.experiment.arms)
    reference = None
    if trial.size == trial.experiment.sizes[0] and arms[0] not in problems:
        reference = _against_reference(trial, arms[0], runs, query)
        say(f"{trial.name}: {reference or 'the final table equals the reference'}")
    return trial_result(
        trial.query,
        trial.size,
        runs,
        arms,
        problems,
        comparable=query.deterministic,
        reference=reference,
    )


def check_arms(experiment: Experiment, builds: Mapping[str, Build]) -> None:
    """Raise ExperimentError, one line with the place, for an arm that a build cannot run."""
    for name, arm in experiment.arms.items():
        for query in map(query_named, experiment.queries):
            try:
                query.formulation(builds[name].version, arm.formulation)
            except UsageError as error:
                problem = str(error).removeprefix("--formulation: ")
                where = f"{experiment.where}.arms.{name}.formulation"
                raise ExperimentError(f"{where}: {problem}") from None
            if arm.rows_per_batch and query.output_mode != "append":
                where = f"{experiment.where}.arms.{name}.rows_per_batch"
                raise ExperimentError(
                    f"{where}: {query.name} puts out changes of a table, which are others in other "
                    "batches; remove it, or take a query that appends"
                )


def _against_reference(trial: Trial, arm: str, runs: list[ArmRun], query: Query) -> str:
    """Return '' if the final table of the first arm equals the reference, else what is wrong.

    The digest of the compared run has to be the timed runs' own, so that what is said of it holds
    for them. Timed runs with a digest that was proven right before need no other run.
    """
    digests = {run.measurement.digest for run in runs if run.arm == arm}
    proven = trial.applications.proven
    if query.deterministic and len(digests) == 1 and (trial.key, *digests) in proven:
        return ""
    try:
        place = trial.table_of(arm)
        outcome = validate(trial.query, place / "table", trial.dumped("parquet", trial.size))
    except (ExperimentError, ExpectationsError) as error:
        return f"the reference could not be compared: {error}"
    if not outcome.success:
        return f"WRONG: {outcome.failures[0]}"
    digest = json.loads((place / RESULT).read_text())["digest"]
    if query.deterministic and digests != {digest}:
        return f"WRONG: the timed runs of {arm} put out other rows than the run that was compared"
    proven.add((trial.key, digest))
    return ""
