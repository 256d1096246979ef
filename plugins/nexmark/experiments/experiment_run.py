"""An experiment from its entry to its result: every size, every query, all arms in turns.

The result is then kept, as rows of the store, and shown, as a page and as JSON.
"""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from nexmark.attribution.explained import words
from nexmark.config import Experiment, paths
from nexmark.engines import Build
from nexmark.evidence.experiment_evidence import ExperimentEvidence, experiments_of
from nexmark.expectations.contract import ExpectationsError
from nexmark.expectations.suites import validate
from nexmark.experiments.arm_runs import RESULT, ArmRun, ExperimentError, LocalApplications, Trial
from nexmark.experiments.gains import ArmResult, Crossing, TrialResult, crossings, trial_result
from nexmark.home import write_text
from nexmark.model import MIN_PAIRS
from nexmark.report import rendering
from nexmark.store import open_store
from nexmark.store.table_rows import ExperimentRow
from nexmark.verdict.order import arm_order
from nexmark_jobs.ending import UsageError
from nexmark_jobs.experiments import query_named
from nexmark_jobs.queries import Query

Say = Callable[[str], None]

#: The commented entry of a new experiment, which can be run as it is.
TEMPLATE = """\
  {name}:
    question: What does a shuffle in more partitions cost?   # one sentence
    queries: [q5]           # q0 to q23, or of nexmark_jobs/experiments
    sizes: [20_000, 100_000]  # events per micro-batch; the gain is measured at each
    # batches: 5            # micro-batches of a run
    # warmup_batches: 2     # of these do not count
    # tps: 10_000           # events per second of event time
    # source: generated     # or json, or parquet: files of the same events
    arms:                   # the others are compared with the first
      before: {{}}            # no difference
      after:
        conf: {{spark.sql.shuffle.partitions: 8}}
        # formulation: NAME   # of the query
        # rows_per_batch: 50_000
        # memory: 2g
        # build: {{pypi: 4.2.1}}
    # text: {{gain: 10, what: what a published text reports}}
"""


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
        runs, problems = list[ArmRun](), dict[str, str]()
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
    """The result of an experiment from the results of its trials."""
    versions = {arm: build.version for arm, build in builds.items()}
    return ExperimentResult(experiment, versions, pairs, tuple(trials), tuple(crossings(trials)))


def applications_of(experiment: Experiment, pairs: int) -> int:
    """How many timed applications an experiment has."""
    return len(experiment.queries) * len(experiment.sizes) * len(experiment.arms) * pairs


def trials_of(
    experiment: Experiment, builds: Mapping[str, Build], applications: LocalApplications
) -> Iterator[Trial]:
    """Each query at each size, the smallest size first."""
    for query in experiment.queries:
        for size in experiment.sizes:
            yield Trial(experiment, query, size, builds, applications)


def trial_order(trial: Trial, pairs: int) -> list[tuple[int, str]]:
    """(pair, arm) in the order of running: balanced, and drawn from the name of the trial."""
    return arm_order(pairs, list(trial.experiment.arms), trial.name)


def judge(trial: Trial, runs: list[ArmRun], failed: Mapping[str, str], say: Say) -> TrialResult:
    """Compare the arms; at the smallest size also the first arm's table with the reference."""
    query = query_named(trial.query)
    arms = list(trial.experiment.arms)
    wrong = None
    if trial.size == trial.experiment.sizes[0] and arms[0] not in failed:
        wrong = _against_reference(trial, arms[0], runs, query)
        say(f"{trial.name}: {wrong or 'the final table equals the reference'}")
    return trial_result(
        trial.query, trial.size, runs, arms, failed, comparable=query.deterministic, reference=wrong
    )


def check_arms(experiment: Experiment, builds: Mapping[str, Build]) -> None:
    """Raise ExperimentError, one line with the place, for an arm that a build cannot run."""
    for name, arm in experiment.arms.items():
        where = f"{experiment.where}.arms.{name}"
        for query in map(query_named, experiment.queries):
            try:
                query.formulation(builds[name].version, arm.formulation)
            except UsageError as error:
                problem = str(error).removeprefix("--formulation: ")
                raise ExperimentError(f"{where}.formulation: {problem}") from None
            if arm.rows_per_batch and query.output_mode != "append":
                raise ExperimentError(
                    f"{where}.rows_per_batch: {query.name} puts out changes of a table, which are "
                    "others in other batches; remove it, or take a query that appends"
                )


def _against_reference(trial: Trial, arm: str, runs: list[ArmRun], query: Query) -> str:
    """'' if the final table of the first arm equals the reference, else what is wrong.

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


def records_of(result: ExperimentResult) -> list[ExperimentRow]:
    """A row for each arm of each trial, in the order in which they were measured."""
    return [_record(result, trial, arm) for trial in result.trials for arm in trial.arms]


def keep(result: ExperimentResult, run: str, directory: Path) -> tuple[ExperimentEvidence, Path]:
    """Record a result, write its page and its evidence; returns the page's view model, the page."""
    found = recorded(result, run, paths.database_url())
    directory.mkdir(parents=True, exist_ok=True)
    write_text(directory / "experiment.json", rendering.as_json(found) + "\n")
    page = directory / "experiment.html"
    write_text(page, rendering.standalone(page.name, page=found))
    return found, page


def recorded(result: ExperimentResult, run: str, database: str) -> ExperimentEvidence:
    """Record a result in a database; returns the view model of its page."""
    with open_store(database) as store:
        store.record_experiment(run, records_of(result))
        (found,) = experiments_of(store, run)
    return found


def _record(result: ExperimentResult, trial: TrialResult, arm: ArmResult) -> ExperimentRow:
    entry, gain = result.experiment, arm.gain
    measured = not arm.problem and arm.cpu_s_per_mevent is not None
    reported = entry.text if arm is not trial.arms[0] else None
    return ExperimentRow(
        name=entry.name,
        question=entry.question,
        spark_version=result.spark_versions[arm.arm],
        pairs=result.pairs,
        query=trial.query,
        size=trial.size,
        arm=arm.arm,
        outcome=_outcome(trial, arm) if measured else "FAILED",
        told="; ".join(_told(result, trial, arm)),
        cpu_s_per_mevent=arm.cpu_s_per_mevent,
        saves=gain.share if gain else None,
        lo=gain.lo if gain else None,
        hi=gain.hi if gain else None,
        wall_s=arm.wall_s,
        state_rows=arm.state_rows if measured else None,
        exchanges=arm.exchanges if measured else None,
        text_gain=reported.gain if reported else None,
        text=reported.what if reported else None,
        attribution=asdict(arm.attribution) if arm.attribution else None,
    )


def _outcome(trial: TrialResult, arm: ArmResult) -> str:
    if arm.equal is False:
        return "DIFFERS"
    if trial.reference:
        return "WRONG"
    if arm.equal is None:
        return "not compared"
    return "equal" if trial.reference is None else "right"


def _told(result: ExperimentResult, trial: TrialResult, arm: ArmResult) -> list[str]:
    """Return the lines below the figures: failures, where a gain turns, why arms differ."""
    here = (trial.query, arm.arm, trial.size)
    turns = [_crossing(x) for x in result.crossings if (x.query, x.arm, x.between[1]) == here]
    wrong = trial.reference if arm is trial.arms[0] else None
    why = words(arm.attribution) if arm.attribution is not None else ""
    return [text for text in (arm.problem, wrong, *turns, why) if text]


def _crossing(one: Crossing) -> str:
    low, high = one.between
    way = "pays above" if one.pays_above else "pays below"
    about = int(float(f"{one.size:.1e}"))  # an interpolation has no more than two digits
    doubt = f"; not certain: an interval includes 0, or there are fewer than {MIN_PAIRS} pairs"
    sure = "" if one.is_certain else doubt
    return f"{way} about {about:,} rows a batch (between {low:,} and {high:,}{sure})"


def as_json(results: Sequence[ExperimentResult]) -> dict[str, Any]:
    """Everything that was found, plain."""
    return {
        "experiments": [
            {
                "name": each.experiment.name,
                "question": each.experiment.question,
                "text": each.experiment.text.model_dump() if each.experiment.text else None,
                "spark_versions": dict(each.spark_versions),
                "pairs": each.pairs,
                "is_right": each.is_right,
                "trials": [asdict(trial) | {"is_right": trial.is_right} for trial in each.trials],
                "crossings": [asdict(one) for one in each.crossings],
            }
            for each in results
        ]
    }
