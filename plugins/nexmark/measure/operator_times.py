"""How the CPU time of a repetition is spread over the operators of its plan.

What Spark and the samples measure is exact: the CPU time of all executors, that of the task threads
of each stage, and of it what unpacking the tasks took. What an operator used nobody measures. Spark
has stopwatches in some operators, and these run while the operator waits for its input too. So

1. a stage's CPU time is split in proportion to time, as if its threads had been equally busy in
   every second that they ran; all figures of operators are therefore estimates;
2. *own* stopwatches (commit of the state, shuffle write, sort) are taken as they are;
3. *spans* (building an aggregation, updating state) contain everything below in the same stage:
   what the nearest spans below have, and the own times between, is taken off. An operator without
   a stopwatch below is *covered*: its time is in that of the operator above;
4. above a stateful operator spans start anew: it has taken all its input before it puts out a row,
   and of it they contain the commit alone;
5. what no stopwatch ran for stays with the stage (``rest of stage``): loading state, compiling
   generated code, reading shuffles, operators on top of the last span. Where the stopwatches add up
   to more than the stage ran for, they are scaled down to it, and the rest is 0.

The removal of state is not used: its stopwatch runs while other operators work on what comes out.
What the executors used outside of task threads (garbage collection, the JIT compiler, the network,
start-up, Python workers) is one part of its own, known by subtraction.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from nexmark.measure.event_log import EventLog, StageTotals
from nexmark.measure.executed_plan import Operator

OPERATOR, STAGE, TASKS, OUTSIDE, PHASE = "operator", "stage", "tasks", "outside", "phase"
"""Kinds of parts: the first two are estimates, then measured ones; a phase is of the driver."""

OWN = (
    "time to commit changes [s]",
    "shuffle write time [s]",
    "sort time [s]",
)
"""Stopwatches that run for the operator alone."""
SPANS = ("time in aggregation build [s]", "time to update [s]")
"""Stopwatches that run while the operators below work too."""
_DECIMALS = 6
_STATEFUL = "time to update [s]"


@dataclass(frozen=True)
class Part:
    """A part of what a repetition did; seconds.

    ``place`` is its number among the parts; operators come first, as the plan is printed, and for
    them it is the place in the plan, as ``parent`` and ``covers`` are (the operators whose time is
    in this one's). ``cpu_s`` is None where CPU time is not known (phases of the driver, which
    are not the executors').
    """

    place: int
    kind: str
    name: str
    cpu_s: float | None = None
    parent: int | None = None
    depth: int = 0
    stage: int | None = None
    covers: tuple[int, ...] = ()
    metrics: Mapping[str, float] = field(default_factory=dict)


def parts(log: EventLog, cpu_s: float, phases: Mapping[str, float]) -> list[Part]:
    """Return the parts of a repetition.

    ``cpu_s`` is the CPU time of its executors in the batches of the log, ``phases`` the time the
    driver spent in each step of them.
    """
    seconds, covers = _stopwatches(log.operators)
    found: list[Part] = []
    rests: list[tuple[int | None, float, StageTotals]] = []
    for number, totals in sorted(log.stages.items(), key=lambda x: (x[0] is None, x[0] or 0)):
        own = [x.place for x in log.operators if x.stage == number and x.place in seconds]
        measured = sum(seconds[place] for place in own)
        per_second = totals.cpu_s / max(totals.run_s, measured) if totals.cpu_s else 0.0
        for place in own:
            seconds[place] *= per_second
        rests.append((number, max(totals.cpu_s - measured * per_second, 0.0), totals))
    for operator in log.operators:
        found.append(
            Part(
                operator.place,
                OPERATOR,
                operator.name,
                seconds.get(operator.place),
                operator.parent,
                operator.depth,
                operator.stage,
                covers.get(operator.place, ()),
                operator.metrics,
            )
        )
    for number, rest, totals in rests:
        name = "tasks of no known stage" if number is None else f"rest of stage {number}"
        found.append(Part(len(found), STAGE, name, rest, stage=number, metrics=_of_stage(totals)))
    starts = sum(x.deserialise_cpu_s for x in log.stages.values())
    count = sum(x.tasks for x in log.stages.values())
    found.append(Part(len(found), TASKS, "starting tasks", starts, metrics={"tasks": count}))
    inside = starts + sum(x.cpu_s for x in log.stages.values())
    gc = {"garbage collection while tasks ran [s]": sum(x.gc_s for x in log.stages.values())}
    found.append(Part(len(found), OUTSIDE, "outside of tasks", cpu_s - inside, metrics=gc))
    for name, spent in phases.items():
        found.append(Part(len(found), PHASE, name, metrics={"time [s]": spent}))
    return found


def _of_stage(totals: StageTotals) -> dict[str, float]:
    metrics = {
        "tasks": totals.tasks,
        "CPU of tasks [s]": totals.cpu_s,
        "CPU of starting tasks [s]": totals.deserialise_cpu_s,
        "time of tasks [s]": totals.run_s,
        "garbage collection [s]": totals.gc_s,
        "waiting for shuffle data [s]": totals.fetch_wait_s,
    }
    return {name: round(value, _DECIMALS) for name, value in metrics.items() if value}


def _stopwatches(
    operators: Sequence[Operator],
) -> tuple[dict[int, float], dict[int, tuple[int, ...]]]:
    """Return the time of each operator that has a stopwatch, and which it covers."""
    below: dict[int, list[Operator]] = {}
    for operator in operators:
        above = None if operator.parent is None else operators[operator.parent]
        if above is not None and above.stage == operator.stage:
            below.setdefault(above.place, []).append(operator)
    seconds: dict[int, float] = {}
    covers: dict[int, tuple[int, ...]] = {}
    for operator in operators:
        own, span = _read(operator)
        if span is None:
            if own:
                seconds[operator.place] = own
            continue
        inner, covered = _inside(below.get(operator.place, []), below)
        seconds[operator.place] = own + max(span - inner, 0.0)
        covers[operator.place] = covered
    return seconds, covers


def _read(operator: Operator) -> tuple[float, float | None]:
    """Return the operator's own time, and its span where it has one."""
    own = sum(operator.metrics.get(name, 0.0) for name in OWN)
    spans = [operator.metrics[name] for name in SPANS if name in operator.metrics]
    return own, max(spans) if spans else None


def _inside(
    operators: Sequence[Operator], below: Mapping[int, Sequence[Operator]]
) -> tuple[float, tuple[int, ...]]:
    """Return what of a span is in stopwatches below it, and the operators that have none."""
    inner, covered = 0.0, []
    todo = list(operators)
    while todo:
        operator = todo.pop(0)
        own, span = _read(operator)
        if _STATEFUL in operator.metrics:
            inner += own
        elif span is not None:
            inner += span
        else:
            inner += own
            if not own:
                covered.append(operator.place)
            todo = [*below.get(operator.place, ()), *todo]
    return inner, tuple(covered)


__all__ = ["OPERATOR", "OUTSIDE", "PHASE", "STAGE", "TASKS", "Part", "parts"]
