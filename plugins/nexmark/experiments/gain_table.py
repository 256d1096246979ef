"""The result of experiments as a table for people, and as JSON."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from nexmark.attribution.explained import words
from nexmark.experiments.experiment_run import ExperimentResult
from nexmark.experiments.gains import ArmResult, Crossing, Gain, TrialResult
from nexmark.terminal import columns

HEADS = (
    *("experiment", "query", "rows/batch", "arm", "CPU s/M", "saves", "interval", "wall s"),
    *("state rows", "exchanges", "text", "result"),
)


def gain_table(results: Sequence[ExperimentResult]) -> str:
    """A line for each arm at each size; ours beside the figure of the text."""
    return columns(HEADS, rows_of(results))


def rows_of(results: Sequence[ExperimentResult]) -> list[list[str]]:
    """The cells of the table, under HEADS."""
    return [row for result in results for row in _rows(result)]


def remarks(results: Sequence[ExperimentResult]) -> list[str]:
    """What the table cannot say: where gains turn round, why arms differ, what went wrong."""
    return [line for result in results for line in _remarks(result)]


def _rows(result: ExperimentResult) -> list[list[str]]:
    return [
        [result.experiment.name, trial.query, f"{trial.size:,}", *_cells(result, trial, arm)]
        for trial in result.trials
        for arm in trial.arms
    ]


def _cells(result: ExperimentResult, trial: TrialResult, arm: ArmResult) -> list[str]:
    if arm.problem or arm.cpu_s_per_mevent is None or arm.wall_s is None:
        return [arm.arm, *["-"] * 7, "FAILED"]
    text = result.experiment.text
    is_first = arm.arm == trial.arms[0].arm
    return [
        arm.arm,
        f"{arm.cpu_s_per_mevent:.2f}",
        *_saved(arm.gain),
        f"{arm.wall_s:.1f}",
        f"{arm.state_rows:,}",
        str(arm.exchanges),
        f"{text.gain:.0f} %" if text and not is_first else "-",
        _verdict(trial, arm),
    ]


def _saved(gain: Gain | None) -> tuple[str, str]:
    if gain is None:
        return "-", "-"
    interval = f"{100 * gain.lo:.1f} to {100 * gain.hi:.1f}" if gain.pairs > 1 else "one pair"
    return f"{100 * gain.share:.1f} %", interval


def _verdict(trial: TrialResult, arm: ArmResult) -> str:
    if arm.equal is False:
        return "DIFFERS"
    if trial.reference:
        return "WRONG"
    if arm.equal is None:
        return "not compared"
    return "equal" if trial.reference is None else "right"


def _remarks(result: ExperimentResult) -> list[str]:
    name = result.experiment.name
    lines = [f"{name}: {result.experiment.question}"]
    if result.experiment.text:
        text = result.experiment.text
        lines.append(f"  the text: {text.gain:.0f} % of CPU, {text.what}")
    lines += [f"  {_crossing(one)}" for one in result.crossings]
    for trial in result.trials:
        where = f"  {trial.query} at {trial.size:,}"
        if trial.reference:
            lines.append(f"{where}: {trial.reference}")
        lines += [f"{where}, {arm.arm}: {said}" for arm in trial.arms if (said := _said(arm))]
    return lines


def _crossing(one: Crossing) -> str:
    low, high = one.between
    way = "pays above" if one.pays_above else "pays below"
    sure = "" if one.is_certain else "; not certain: an interval includes 0"
    return (
        f"{one.query}, {one.arm}: {way} about {_rounded(one.size):,} rows a batch (between "
        f"{low:,} and {high:,}{sure})"
    )


def _rounded(size: float) -> int:
    """Two digits: an interpolation has no more."""
    return int(float(f"{size:.1e}"))


def _said(arm: ArmResult) -> str:
    if arm.problem:
        return arm.problem
    return words(arm.attribution) if arm.attribution is not None else ""


def as_json(results: Sequence[ExperimentResult]) -> dict[str, Any]:
    """Everything that was found, plain."""
    return {"experiments": [_plain(result) for result in results]}


def _plain(result: ExperimentResult) -> dict[str, Any]:
    entry = result.experiment
    return {
        "name": entry.name,
        "question": entry.question,
        "text": entry.text.model_dump() if entry.text else None,
        "spark_versions": dict(result.spark_versions),
        "pairs": result.pairs,
        "is_right": result.is_right,
        "trials": [asdict(trial) | {"is_right": trial.is_right} for trial in result.trials],
        "crossings": [asdict(one) for one in result.crossings],
    }
