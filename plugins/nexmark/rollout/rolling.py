"""Roll out stage by stage: a night measures each stage, up to the first that is not green.

People see a rollout as text, and as a page beside its file: <home>/rollouts/<name>.html
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from nexmark.errors import NexmarkError
from nexmark.evidence.night_evidence import make_report
from nexmark.home import write_private
from nexmark.model import Say, Value, grouped
from nexmark.night.run_directory import RunDirectory
from nexmark.report.rendering import standalone
from nexmark.rollout.state import QueryStep, Rollout, RolloutStage, StageState, file_of
from nexmark.terminal import columns

if TYPE_CHECKING:
    from nexmark.evidence.rows import Row
    from nexmark.store import Store
    from nexmark.store.table_rows import CompatibilityRow


def judged(
    store: Store, stage: RolloutStage, run: str, *, go_on_undecided: bool = False
) -> RolloutStage:
    """Return a stage with the outcome of the night that measured it.

    Red is what turns a night red. A stage is green only where each query is OK or FASTER.

    Args:
        store: The results database.
        stage: The stage.
        run: The night.
        go_on_undecided: Whether a stage that is neither green nor red is accepted, which its record
            says.
    """
    report = make_report(store, run)
    survive = {row.query: row for row in report.upgrades.rows}
    steps = [_step(row, survive.get(row.query)) for row in report.rows]
    red = report.failed or any(step.red for step in steps)
    undecided = not red and any(step.undecided for step in steps)
    page = RunDirectory.of_night(run).evidence
    stopping = [
        f"{step.query} {step.red or step.undecided}" for step in steps if step.red or step.undecided
    ]
    why = (" | ".join(stopping) or report.lines[0]) if red or undecided else ""
    outcome = {"night": run, "evidence": str(page), "steps": tuple(steps), "why": why}
    state: StageState = "red" if red else "undecided" if undecided else "green"
    if undecided and go_on_undecided:
        outcome |= {"accepted": f"undecided, and asked to go on: {why}"}
        state = "accepted"
    return stage.model_copy(update={**outcome, "state": state})


def _step(row: Row, survives: CompatibilityRow | None) -> QueryStep:
    said = f"{row.value}: {row.reason}"
    goes_on = row.red or row.value in (Value.OK, Value.FASTER)
    return QueryStep(
        query=row.query,
        verdict=row.value,
        ratio=row.ratio,
        lo=row.lo,
        hi=row.hi,
        red=said if row.red else "",
        undecided="" if goes_on else said,
        outcome=survives.outcome if survives else None,
        forward=survives.forward if survives else None,
        backward=survives.backward if survives else None,
        carried=survives.reason if survives else "",
    )


#: Runs a night of some queries to its end; returns the name of its run.
Measure = Callable[[Sequence[str]], str]


def roll(rollout: Rollout, measure: Measure, opened: Callable[[], Store], say: Say) -> Rollout:
    """Give the new arm to one stage after the other, until all have it or one is not green.

    Args:
        rollout: The rollout as far as it has come.
        measure: Runs the night of a stage.
        opened: Opens the results database.
        say: Called with each line of progress.
    """
    while (place := rollout.next) is not None and rollout.stopped is None:
        stage = rollout.stages[place]
        say(f"stage {place + 1} of {len(rollout.stages)}: {', '.join(stage.queries)}")
        run = measure(stage.queries)
        with opened() as store:
            stage = judged(store, stage, run, go_on_undecided=rollout.go_on_undecided)
        rollout = rollout.with_stage(place, stage)
        say(f"stage {place + 1} is {stage.state}")
    return rollout


def resumed(rollout: Rollout, store: Store, who: str, reason: str | None) -> Rollout:
    """Return the rollout with the stage accepted that stopped it, so that it can go on.

    Args:
        rollout: The rollout.
        store: The results database, which has the acceptances.
        who: The person who accepts.
        reason: Why the stage is accepted; None: each red query of its night has to be accepted as
            a baseline already.

    Raises:
        NexmarkError: Nobody has accepted the red stage, or there is no red stage to accept.
    """
    stage = rollout.stopped
    if stage is None:
        if reason is not None:
            raise NexmarkError(f"accept: rollout {rollout.name} is not stopped; leave it out")
        return rollout
    now = datetime.now(UTC)
    accepted = f"{now:%Y-%m-%d %H:%M} UTC by {who}: {reason}"
    if reason is None:
        rows = [
            row for row in store.acceptances() if row.night_id == stage.night and not row.over(now)
        ]
        covered, red = {row.query: row for row in rows}, [step.query for step in stage.stopping]
        if not red or not covered.keys() >= set(red):
            raise NexmarkError(f"rollout {rollout.name}: {stopped_by(rollout)}; {remedy(rollout)}")
        accepted = "; ".join(
            f"{query} by {covered[query].who}: {covered[query].reason}" for query in red
        )
    changed = stage.model_copy(update={"state": "accepted", "accepted": accepted})
    return rollout.with_stage(rollout.stages.index(stage), changed)


def stopped_by(rollout: Rollout) -> str:
    """Return the reason why a rollout stopped."""
    stage = rollout.stopped
    assert stage is not None
    return f"stage {rollout.stages.index(stage) + 1} is {stage.state}: {stage.why}"


def remedy(rollout: Rollout) -> str:
    """Return what a person can do about the red stage: accept it, and resume the rollout.

    If the rollout has confs, the stage is accepted by a reason, because a night with confs of the
    candidate cannot be a baseline.
    """
    stage = rollout.stopped
    assert stage is not None
    known = f"nexmark rollout --resume {rollout.name}"
    if rollout.conf or not stage.stopping:
        return f"if it is meant to be so: {known} --accept 'WHY'"
    queries = ",".join(step.query for step in stage.stopping)
    accept = f"nexmark accept --run '{stage.night}' --queries {queries} --reason 'WHY'"
    return f"if it is meant to be so: {accept}, then {known}"


_HEADS = ("stage", "query", "state", "gain in CPU", "gate", "running queries", "forward", "back")
_RIGHT = "right"


def table(rollout: Rollout) -> str:
    """Return a row for each query, then the cause of the stop, the way back, and the remedy."""
    return "\n".join([columns(_HEADS, _rows(rollout)), "", *_lines_below(rollout)])


def write_page(rollout: Rollout) -> Path:
    """Write the table and the lines below it as a page, and return the path of the page."""
    path = file_of(rollout.name).with_suffix(".html")
    rows, lines = _rows(rollout), _lines_below(rollout)
    text = standalone("rollout.html", rollout=rollout, heads=_HEADS, rows=rows, lines=lines)
    write_private(path, text)
    return path


def _rows(rollout: Rollout) -> list[list[str]]:
    """Return the row of each query, by stage."""
    rows = []
    for number, stage in enumerate(rollout.stages, start=1):
        for step in stage.steps or [QueryStep(query=query) for query in stage.queries]:
            state: StageState = "green" if stage.steps else stage.state
            if step.red or step.undecided:
                state = "red" if step.red else "undecided"
                state = "accepted" if stage.accepted else state
            outcomes = (step.verdict, step.outcome, step.forward, step.backward)
            rows.append(
                [
                    str(number),
                    step.query,
                    state,
                    gain(step),
                    *(outcome or "-" for outcome in outcomes),
                ]
            )
    return rows


def gain(step: QueryStep) -> str:
    """Return the CPU that a query saves, with its 95 % interval; a negative one is slower.

    For example `+12.0 % (+9.1 to +14.8)`; `-` if it is not known.
    """
    if step.ratio is None:
        return "-"
    text = f"{_saved(step.ratio)} %"
    if step.lo is None or step.hi is None:
        return text
    return f"{text} ({_saved(step.hi)} to {_saved(step.lo)})"


def _saved(ratio: float) -> str:
    return f"{100 * (1 - ratio):+.1f}"


def _lines_below(rollout: Rollout) -> list[str]:
    """Return the lines below the table: acceptances, reasons, and how far the rollout has come."""
    stage = rollout.stopped
    lines = [
        f"stage {number}, accepted {each.accepted}"
        for number, each in enumerate(rollout.stages, start=1)
        if each.accepted
    ]
    steps = [step for each in rollout.stages for step in each.steps if step.carried]
    lines += [
        f"{', '.join(step.query for step in same)}: {carried}"
        for carried, same in grouped(steps, lambda step: step.carried).items()
    ]
    if stage is None:
        done = sum(each.is_done for each in rollout.stages)
        return [*lines, f"{done} of {len(rollout.stages)} stages have it"]
    pages = f"evidence: {stage.evidence}"
    return [*lines, f"stopped: {stopped_by(rollout)}", way_back(rollout), pages, remedy(rollout)]


def way_back(rollout: Rollout) -> str:
    """Return in words whether the old arm goes on rightly from checkpoints of the new arm.

    All queries that had the new arm count: in the red stage and in the stages before it.
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
