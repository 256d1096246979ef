"""Write the result of an experiment as rows of the store, and as JSON."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from nexmark.attribution.explained import words
from nexmark.config import paths
from nexmark.evidence.experiment_evidence import ExperimentEvidence, experiments_of
from nexmark.experiments.experiment_run import ExperimentResult
from nexmark.experiments.gains import ArmResult, Crossing, TrialResult
from nexmark.home import write_text
from nexmark.model import MIN_PAIRS
from nexmark.report import rendering
from nexmark.store import StoreError, open_store
from nexmark.store.table_rows import ExperimentRow


def records_of(result: ExperimentResult) -> list[ExperimentRow]:
    """Return a row for each arm of each trial, in the order in which they were measured."""
    return [_record(result, trial, arm) for trial in result.trials for arm in trial.arms]


def keep(result: ExperimentResult, run: str, directory: Path) -> tuple[ExperimentEvidence, Path]:
    """Record a result, and write its page and its evidence.

    If the results database fails, both files are written all the same.

    Args:
        result: the result of one experiment.
        run: the name of this measurement in the results database.
        directory: the directory of the files; it is created if there is none.

    Returns:
        The view model of the page, and the path of the page.

    Raises:
        StoreError: the results database failed; the message names the page.
    """
    directory.mkdir(parents=True, exist_ok=True)
    failed: StoreError | None = None
    try:
        evidence = recorded(result, run, paths.database_url())
    except StoreError as error:
        failed = error
        with TemporaryDirectory() as temporary:
            evidence = recorded(result, run, f"sqlite:///{temporary}/results.db")
    write_text(directory / "experiment.json", rendering.as_json(evidence) + "\n")
    page = directory / "experiment.html"
    write_text(page, rendering.standalone(page.name, page=evidence))
    if failed is not None:
        raise StoreError(f"{failed}; what was measured is kept: {page}")
    return evidence, page


def recorded(result: ExperimentResult, run: str, database: str) -> ExperimentEvidence:
    """Record a result in a database, and return the view model of its page."""
    with open_store(database) as store:
        store.record_experiment(run, records_of(result))
        (evidence,) = experiments_of(store, run)
    return evidence


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
        remarks="; ".join(_remarks(result, trial, arm)),
        cpu_s_per_mevent=arm.cpu_s_per_mevent,
        saves=gain.share if gain else None,
        lo=gain.lo if gain else None,
        hi=gain.hi if gain else None,
        wall_s=arm.wall_s,
        state_rows=arm.state_rows if measured else None,
        exchanges=arm.exchanges if measured else None,
        published_gain_percent=reported.gain if reported else None,
        published_change=reported.what if reported else None,
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


def _remarks(result: ExperimentResult, trial: TrialResult, arm: ArmResult) -> list[str]:
    """Return what the figures cannot say: failures, sizes where a gain changes sign, reasons."""
    turns = [
        _crossing(one)
        for one in result.crossings
        if (one.query, one.arm, one.between[1]) == (trial.query, arm.arm, trial.size)
    ]
    wrong = trial.reference if arm is trial.arms[0] else None
    why = words(arm.attribution) if arm.attribution is not None else ""
    return [text for text in (arm.problem, wrong, *turns, why) if text]


def _crossing(one: Crossing) -> str:
    low, high = one.between
    way = "pays above" if one.pays_above else "pays below"
    about = int(float(f"{one.size:.1e}"))  # an interpolated size has two significant digits
    doubt = f"; not certain: an interval includes 0, or there are fewer than {MIN_PAIRS} pairs"
    sure = "" if one.is_certain else doubt
    return f"{way} about {about:,} rows a batch (between {low:,} and {high:,}{sure})"


def as_json(results: Sequence[ExperimentResult]) -> dict[str, Any]:
    """Return the results as an object for JSON."""
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
