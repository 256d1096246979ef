"""How the CPU time of a repetition is spread over the operators of its plan.

Exact are the CPU time of all executors, the task threads of each stage, and unpacking tasks.
Nothing measures the CPU time of an operator: Spark has stopwatches in some of them, but they also
run while the operator waits for its input. The estimate follows these rules:

1. A stage's CPU time is split in proportion to time, as if its threads had been equally busy in
   every second that they ran. All figures of operators are therefore estimates.
2. *Own* stopwatches (commit of the state, shuffle write, sort) are taken as they are.
3. *Spans* (building an aggregation, updating state) contain everything below in the same stage. The
   nearest spans below, and the own times between, are subtracted. An operator below that has no
   stopwatch is *covered*: the operator above includes its time.
4. A stateful operator ends a span: it takes all its input before it puts out a row. The spans above
   it contain only its commit.
5. The time in which no stopwatch ran stays with the stage (``rest of stage``). If the stopwatches
   add up to more than the run time of the stage, they are scaled down to it, and the rest is 0.

The removal of state is not used: its stopwatch runs while other operators work on the rows that
come out. CPU time outside of task threads (garbage collection, the JIT compiler, the network,
start-up, Python workers) is a part of its own, found by subtraction.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from nexmark.measure.event_log import EventLog, StageTotals, read_event_log
from nexmark.measure.executed_plan import OUTSIDE, PHASE, STAGE, TASKS, Part
from nexmark.measure.measurement import Measurement
from nexmark.model import Basis, grouped

OWN = ("time to commit changes [s]", "shuffle write time [s]", "sort time [s]")
"""Stopwatches that run for the operator alone."""
SPANS = ("time in aggregation build [s]", "time to update [s]")
"""Stopwatches that run while the operators below work too."""
_STATEFUL = "time to update [s]"


def parts(log: EventLog, cpu_s: float, phases: Mapping[str, float]) -> list[Part]:
    """Return the parts; ``cpu_s`` is of the executors in the batches, ``phases`` of the driver."""
    seconds, covers = _stopwatches(log.operators)
    stages: list[Part] = []
    for number, totals in sorted(log.stages.items(), key=lambda x: (x[0] is None, x[0])):
        own = [x.place for x in log.operators if x.stage == number and x.place in seconds]
        measured = sum(seconds[place] for place in own)
        ran_s = max(totals.run_s, measured)
        per_second = totals.cpu_s / ran_s if ran_s else 0.0  # Spark tells milliseconds: 0 is short
        for place in own:
            seconds[place] *= per_second
        rest = max(totals.cpu_s - measured * per_second, 0.0)
        name = "tasks of no known stage" if number is None else f"rest of stage {number}"
        place, metrics = len(log.operators) + len(stages), _of_stage(totals)
        stages.append(Part(place, STAGE, name, rest, stage=number, metrics=metrics))
    found = [
        replace(x, cpu_s=seconds.get(x.place), covers=covers.get(x.place, ()))
        for x in log.operators
    ]
    found += stages
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
    return {name: round(value, 6) for name, value in metrics.items() if value}


def _stopwatches(operators: Sequence[Part]) -> tuple[dict[int, float], dict[int, tuple[int, ...]]]:
    """Return the time of each operator that has a stopwatch, and which it covers."""
    inner = [x for x in operators if x.parent is not None and operators[x.parent].stage == x.stage]
    below = grouped(inner, lambda operator: operator.parent)
    seconds: dict[int, float] = {}
    covers: dict[int, tuple[int, ...]] = {}
    for operator in operators:
        own, span = _read(operator)
        if span is None:
            if own:
                seconds[operator.place] = own
            continue
        within, covered = _inside(below.get(operator.place, []), below)
        seconds[operator.place] = own + max(span - within, 0.0)
        covers[operator.place] = covered
    return seconds, covers


def _read(operator: Part) -> tuple[float, float | None]:
    """Return the operator's own time, and its span where it has one."""
    own = sum(operator.metrics.get(name, 0.0) for name in OWN)
    spans = [operator.metrics[name] for name in SPANS if name in operator.metrics]
    return own, max(spans) if spans else None


def _inside(
    operators: Sequence[Part], below: Mapping[int | None, Sequence[Part]]
) -> tuple[float, tuple[int, ...]]:
    """Return the time of the stopwatches below a span, and the operators without a stopwatch."""
    inner, covered = 0.0, []
    todo = list(operators)
    while todo:
        operator = todo.pop(0)
        own, span = _read(operator)
        inner += own if span is None or _STATEFUL in operator.metrics else span
        if span is None:
            covered += [] if own else [operator.place]
            todo = [*below.get(operator.place, ()), *todo]
    return inner, tuple(covered)


def repetition_parts(events: Path, result: Mapping[str, Any], measured: Measurement) -> list[Part]:
    """Return the parts, of the batches of its metric of record; EventLogError without a log."""
    batches: Sequence[Mapping[str, Any]] = result["batches"]
    cpu_s = measured.cpu_application_s
    if measured.basis == Basis.STEADY and measured.steady_cpu_s is not None:
        data = sorted((x for x in batches if x["phase"] == "data"), key=lambda x: x["id"])
        batches, cpu_s = data[measured.warmup_batches :], measured.steady_cpu_s
    log = read_event_log(events, [x["id"] for x in batches], measured.application_id)
    phases: defaultdict[str, float] = defaultdict(float)
    for batch in batches:
        for name, spent_ms in batch.get("steps_ms", {}).items():
            phases[name] += spent_ms / 1000
    return parts(log, cpu_s, phases)
