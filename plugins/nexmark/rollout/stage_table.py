"""A rollout for people: its stages, gains, what stopped it, whether the way back was right.

As text, and as a page beside its file: <home>/rollouts/<name>.html
"""

from __future__ import annotations

from pathlib import Path

from nexmark.home import write_private
from nexmark.model import grouped
from nexmark.report.rendering import standalone
from nexmark.rollout.rolling import remedy, stopped_by
from nexmark.rollout.state import QueryStep, Rollout, RolloutStage, file_of
from nexmark.terminal import columns

_HEADS = ("stage", "query", "state", "gain in CPU", "gate", "running queries", "forward", "back")
_RIGHT = "right"


def table(rollout: Rollout) -> str:
    """Return a row for each query, then the cause of the stop, the way back, and the remedy."""
    return "\n".join([columns(_HEADS, _all(rollout)), "", *_ending(rollout)])


def write_page(rollout: Rollout) -> Path:
    """Write the same as a page of its own; returns its path."""
    path = file_of(rollout.name).with_suffix(".html")
    rows, lines = _all(rollout), _ending(rollout)
    text = standalone("rollout.html", rollout=rollout, heads=_HEADS, rows=rows, lines=lines)
    write_private(path, text)
    return path


def _all(rollout: Rollout) -> list[list[str]]:
    numbered = enumerate(rollout.stages, start=1)
    return [row for number, stage in numbered for row in _rows(number, stage)]


def _rows(number: int, stage: RolloutStage) -> list[list[str]]:
    waiting = [QueryStep(query=query) for query in stage.queries]
    return [
        [
            str(number),
            step.query,
            _state(stage, step),
            gain(step),
            step.verdict or "-",
            step.outcome or "-",
            step.forward or "-",
            step.backward or "-",
        ]
        for step in stage.steps or waiting
    ]


def _state(stage: RolloutStage, step: QueryStep) -> str:
    """Of a stage that was measured, each query has its own."""
    if not stage.steps:
        return stage.state
    if step.red:
        return "accepted" if stage.accepted else "red"
    return "green"


def gain(step: QueryStep) -> str:
    """CPU saved, with its 95 % interval: `+12.0 % (+9.1 to +14.8)`; negative is slower."""
    if step.ratio is None:
        return "-"
    text = f"{_saved(step.ratio)} %"
    if step.lo is None or step.hi is None:
        return text
    return f"{text} ({_saved(step.hi)} to {_saved(step.lo)})"


def _saved(ratio: float) -> str:
    return f"{100 * (1 - ratio):+.1f}"


def _ending(rollout: Rollout) -> list[str]:
    stage = rollout.stopped
    lines = [
        f"stage {number}, accepted {each.accepted}"
        for number, each in enumerate(rollout.stages, start=1)
        if each.accepted
    ]
    steps = [step for each in rollout.stages for step in each.steps if step.carried]
    lines += [
        f"{', '.join(step.query for step in same)}: {said}"
        for said, same in grouped(steps, lambda step: step.carried).items()
    ]
    if stage is None:
        done = sum(each.is_done for each in rollout.stages)
        return [*lines, f"{done} of {len(rollout.stages)} stages have it"]
    pages = f"evidence: {stage.evidence}"
    return [*lines, f"stopped: {stopped_by(rollout)}", way_back(rollout), pages, remedy(rollout)]


def way_back(rollout: Rollout) -> str:
    """Whether the old arm went on from the checkpoints of the new one with right results.

    Of every query that had the new arm, in the red stage and in the stages before it.
    """
    steps = [step for stage in rollout.stages for step in stage.steps if step.outcome]
    wrong = [step for step in steps if step.backward != _RIGHT]
    if wrong:
        named = ", ".join(
            f"{step.query} ({step.outcome if step.backward == '-' else step.backward})"
            for step in wrong
        )
        return f"rolled back: NOT right: {named}"
    if not steps:
        return "rolled back: no query of it keeps state, so there is nothing to go back from"
    names = ", ".join(step.query for step in steps)
    return f"rolled back: right: the old arm went on from checkpoints of the new one: {names}"
