"""The stages in turn: each measured by a night, up to the first red one; and going on after it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from nexmark.errors import NexmarkError
from nexmark.rollout.judged import judged
from nexmark.rollout.state import Rollout, RolloutStage

if TYPE_CHECKING:
    from nexmark.store import Store

#: Runs a night of some queries to its end; returns the name of its run.
Measure = Callable[[Sequence[str]], str]


def roll(
    rollout: Rollout, measure: Measure, opened: Callable[[], Store], say: Callable[[str], None]
) -> Rollout:
    """Give the new arm to one stage after the other, until all have it or one is red."""
    while (place := rollout.next) is not None and rollout.stopped is None:
        stage = rollout.stages[place]
        say(f"stage {place + 1} of {len(rollout.stages)}: {', '.join(stage.queries)}")
        run = measure(stage.queries)
        with opened() as store:
            stage = judged(store, stage, run)
        rollout = rollout.with_stage(place, stage)
        say(f"stage {place + 1} is {stage.state}")
    return rollout


def resumed(rollout: Rollout, store: Store, who: str, reason: str | None) -> Rollout:
    """The rollout with its red stage accepted, so that it goes on.

    By a `reason`, or because each red query of its night was accepted as a baseline. NexmarkError
    if nobody has accepted it, or if there is nothing to accept.
    """
    stage = rollout.stopped
    if stage is None:
        if reason is not None:
            raise NexmarkError(f"--accept: rollout {rollout.name} is not stopped; leave it out")
        return rollout
    said = _said(stage, store, who, reason)
    if not said:
        raise NexmarkError(f"rollout {rollout.name}: {stopped_by(rollout)}; {remedy(rollout)}")
    changed = stage.model_copy(update={"state": "accepted", "accepted": said})
    return rollout.with_stage(rollout.stages.index(stage), changed)


def _said(stage: RolloutStage, store: Store, who: str, reason: str | None) -> str:
    """Who accepted a red stage, and why; '' for nobody."""
    now = datetime.now(UTC)
    if reason is not None:
        return f"{now:%Y-%m-%d %H:%M} UTC by {who}: {reason}"
    rows = [x for x in store.acceptances() if x.night_id == stage.night and not x.over(now)]
    covered = {row.query: row for row in rows}
    red = [step.query for step in stage.red]
    if not red or not all(query in covered for query in red):
        return ""
    return "; ".join(f"{x} by {covered[x].who}: {covered[x].reason}" for x in red)


def stopped_by(rollout: Rollout) -> str:
    """What stopped it."""
    stage = rollout.stopped
    assert stage is not None
    return f"stage {rollout.stages.index(stage) + 1} is red: {stage.why}"


def remedy(rollout: Rollout) -> str:
    """Return the remedies for a red stage. A night that tried a conf cannot be a baseline."""
    stage = rollout.stopped
    assert stage is not None
    known = f"nexmark rollout --resume {rollout.name}"
    if rollout.conf or not stage.red:
        return f"if it is meant to be so: {known} --accept 'WHY'"
    queries = ",".join(step.query for step in stage.red)
    accept = f"nexmark accept --run '{stage.night}' --queries {queries} --reason 'WHY'"
    return f"if it is meant to be so: {accept}, then {known}"
