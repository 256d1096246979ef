"""Measure an experiment: each query at each size, all arms in turns."""

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
    """The result of an experiment: its trials, and the sizes at which the sign of a gain changes.

    ``spark_versions`` is by arm. The trials of a query are in the order of their sizes.
    """

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
    """Measure an experiment; an arm that fails is a part of the result.

    Args:
        experiment: The experiment.
        builds: The build of each arm.
        pairs: How many applications of each arm to run for each query and size.
        applications: What runs the applications.
        say: Called with each line of progress.
        tick: Called after each application; the text that it returns ends the line of progress.
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
    """Return the result of an experiment from the results of its trials.

    Args:
        experiment: The experiment.
        builds: The build of each arm.
        pairs: How many applications of each arm were run for each query and size.
        trials: The results of its trials.
    """
    versions = {arm: build.version for arm, build in builds.items()}
    return ExperimentResult(experiment, versions, pairs, tuple(trials), tuple(crossings(trials)))


def applications_of(experiment: Experiment, pairs: int) -> int:
    """Return how many timed applications an experiment runs."""
    return len(experiment.queries) * len(experiment.sizes) * len(experiment.arms) * pairs


def trials_of(
    experiment: Experiment, builds: Mapping[str, Build], applications: LocalApplications
) -> Iterator[Trial]:
    """Yield each query at each size, the smallest size first."""
    for query in experiment.queries:
        for size in experiment.sizes:
            yield Trial(experiment, query, size, builds, applications)


def trial_order(trial: Trial, pairs: int) -> list[tuple[int, str]]:
    """Return each (pair, arm) in the order in which they run: random, balanced, seeded by name."""
    return arm_order(pairs, list(trial.experiment.arms), trial.name)


def judge(trial: Trial, runs: list[ArmRun], problems: Mapping[str, str], say: Say) -> TrialResult:
    """Compare the arms of a trial; at the smallest size, also the first arm with the reference.

    Args:
        trial: The trial.
        runs: The runs of all arms.
        problems: Why an arm could not be measured, by arm.
        say: Called with a line on the comparison with the reference.
    """
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
                    f"{where}: {query.name} writes changes of a table, which depend on the "
                    "batches; remove it, or take a query that appends"
                )


def _against_reference(trial: Trial, arm: str, runs: list[ArmRun], query: Query) -> str:
    """Return '' if the final table of an arm equals the reference, else what is wrong.

    The table comes from one more run, whose digest has to equal the digest of the timed runs: only
    then have these the same rows. No such run is needed if their digest was proven right before.

    Args:
        trial: The trial.
        arm: The arm.
        runs: The timed runs of all arms.
        query: The query of the trial.
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
        return f"WRONG: the timed runs of {arm} have other rows than the run that was compared"
    proven.add((trial.key, digest))
    return ""
