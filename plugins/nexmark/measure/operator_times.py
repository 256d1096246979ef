"""How the CPU time of a repetition is spread over the operators of its plan.

The CPU time of all executors, of the task threads of each stage, and of unpacking tasks is exact.
Nothing measures the CPU time of an operator: Spark has stopwatches in some operators, but they also
run while the operator waits for its input. The estimate follows these rules:

1. A stage's CPU time is split in proportion to time, as if its threads had been equally busy in
   every second that they ran. All figures of operators are therefore estimates.
2. *Exclusive* stopwatches (commit of the state, shuffle write, sort) run for their operator alone.
   Their times are used unchanged.
3. *Spans* (building an aggregation, updating state) contain everything below in the same stage. The
   nearest spans below, and the exclusive times between, are subtracted. An operator below that has
   no stopwatch is *covered*: the operator above includes its time.
4. A stateful operator reads all its input before it returns a row, so a span above it contains only
   its commit, and nothing from below it.
5. The time in which no stopwatch ran stays with the stage (``rest of stage``). If the stopwatches
   add up to more than the run time of the stage, they are scaled down to it, and the rest is 0.

The stopwatch of the removal of state is not used: it also runs while other operators work on the
rows that are removed. CPU time outside of task threads (garbage collection, the JIT compiler, the
network, start-up, Python workers) is a separate part, computed by subtraction.
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

EXCLUSIVE = ("time to commit changes [s]", "shuffle write time [s]", "sort time [s]")
"""Stopwatches that run for the operator alone."""
SPANS = ("time in aggregation build [s]", "time to update [s]")
"""Stopwatches that also run while the operators below work."""
_STATEFUL = "time to update [s]"


def parts(log: EventLog, cpu_s: float, phases: Mapping[str, float]) -> list[Part]:
    """Return the parts of a repetition's work: operators first, then what is outside of them.

    ``cpu_s`` is the CPU time of the executors in the batches of the log; ``phases`` has the seconds
    of each step of the driver.
    """
    seconds, covers = _stopwatches(log.operators)
    rests = _stages(log, seconds)
    totals = log.stages.values()
    starts = sum(stage.deserialise_cpu_s for stage in totals)
    inside = starts + sum(stage.cpu_s for stage in totals)
    tasks = {"tasks": sum(stage.tasks for stage in totals)}
    gc = {"garbage collection while tasks ran [s]": sum(stage.gc_s for stage in totals)}
    every = [
        replace(operator, cpu_s=seconds.get(operator.place), covers=covers.get(operator.place, ()))
        for operator in log.operators
    ]
    every += rests
    every.append(Part(len(every), TASKS, "starting tasks", starts, metrics=tasks))
    every.append(Part(len(every), OUTSIDE, "outside of tasks", cpu_s - inside, metrics=gc))
    for name, spent in phases.items():
        every.append(Part(len(every), PHASE, name, metrics={"time [s]": spent}))
    return every


def _stages(log: EventLog, seconds: dict[int, float]) -> list[Part]:
    """Return the rest of each stage, and turn the ``seconds`` of its operators into CPU-seconds."""
    rests: list[Part] = []
    for number, totals in sorted(log.stages.items(), key=_unknown_last):
        timed = [
            operator.place
            for operator in log.operators
            if operator.stage == number and operator.place in seconds
        ]
        measured = sum(seconds[place] for place in timed)
        ran_s = max(totals.run_s, measured)
        # A stage may have run for 0 s: Spark counts whole milliseconds.
        per_second = totals.cpu_s / ran_s if ran_s else 0.0
        for place in timed:
            seconds[place] *= per_second
        rest = max(totals.cpu_s - measured * per_second, 0.0)
        name = "tasks of no known stage" if number is None else f"rest of stage {number}"
        place, metrics = len(log.operators) + len(rests), _metrics(totals)
        rests.append(Part(place, STAGE, name, rest, stage=number, metrics=metrics))
    return rests


def _unknown_last(stage: tuple[int | None, StageTotals]) -> tuple[bool, int | None]:
    """Return a key by which stages are sorted by their numbers, the unknown stage last."""
    number, _ = stage
    return number is None, number


def _metrics(totals: StageTotals) -> dict[str, float]:
    """Return the totals of a stage that are not 0, by name with unit."""
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
    """Return the seconds of each operator that has a stopwatch, and the operators it covers."""
    inner = [
        operator
        for operator in operators
        if operator.parent is not None and operators[operator.parent].stage == operator.stage
    ]
    below = grouped(inner, lambda operator: operator.parent)
    seconds: dict[int, float] = {}
    covers: dict[int, tuple[int, ...]] = {}
    for operator in operators:
        exclusive, span = _read(operator)
        if span is None:
            if exclusive:
                seconds[operator.place] = exclusive
            continue
        within, covered = _inside(below.get(operator.place, []), below)
        seconds[operator.place] = exclusive + max(span - within, 0.0)
        covers[operator.place] = covered
    return seconds, covers


def _read(operator: Part) -> tuple[float, float | None]:
    """Return the seconds of an operator's exclusive stopwatches, and its span; None without one."""
    exclusive = sum(operator.metrics.get(name, 0.0) for name in EXCLUSIVE)
    spans = [operator.metrics[name] for name in SPANS if name in operator.metrics]
    return exclusive, max(spans) if spans else None


def _inside(
    operators: Sequence[Part], below: Mapping[int | None, Sequence[Part]]
) -> tuple[float, tuple[int, ...]]:
    """Return the seconds of the stopwatches below a span, and the operators without a stopwatch.

    ``operators`` are those directly below the span; ``below`` has the operators by their parent.
    """
    inner, covered = 0.0, []
    todo = list(operators)
    while todo:
        operator = todo.pop(0)
        exclusive, span = _read(operator)
        inner += exclusive if span is None or _STATEFUL in operator.metrics else span
        if span is None:
            covered += [] if exclusive else [operator.place]
            todo = [*below.get(operator.place, ()), *todo]
    return inner, tuple(covered)


def repetition_parts(events: Path, result: Mapping[str, Any], measured: Measurement) -> list[Part]:
    """Return the parts of a repetition's work, in the batches that its metric of record covers.

    ``events`` is the directory of its event log, ``result`` its result file. EventLogError if the
    log cannot be read.
    """
    batches: Sequence[Mapping[str, Any]] = result["batches"]
    cpu_s = measured.cpu_application_s
    if measured.basis == Basis.STEADY and measured.steady_cpu_s is not None:
        data = sorted(
            (batch for batch in batches if batch["phase"] == "data"), key=lambda batch: batch["id"]
        )
        batches, cpu_s = data[measured.warmup_batches :], measured.steady_cpu_s
    keys = [(batch["run"], batch["batch"]) if "run" in batch else batch["id"] for batch in batches]
    log = read_event_log(events, keys, measured.application_id)
    phases: defaultdict[str, float] = defaultdict(float)
    for batch in batches:
        for name, spent_ms in batch.get("steps_ms", {}).items():
            phases[name] += spent_ms / 1000
    return parts(log, cpu_s, phases)
