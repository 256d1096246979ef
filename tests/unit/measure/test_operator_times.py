"""How the CPU time of a stage is spread over its operators: what is known, and what is not."""

from __future__ import annotations

import pytest

from nexmark.measure.event_log import EventLog, StageTotals
from nexmark.measure.executed_plan import OPERATOR, OUTSIDE, PHASE, STAGE, TASKS, Part
from nexmark.measure.operator_times import parts

BUILD = "time in aggregation build [s]"
UPDATE = "time to update [s]"
COMMIT = "time to commit changes [s]"
WRITE = "shuffle write time [s]"


def chain(*operators: tuple[str, int, dict[str, float]]) -> tuple[Part, ...]:
    """A plan in which every operator has one input; name, stage and metrics, from the top."""
    return tuple(
        Part(
            *(place, OPERATOR, name),
            parent=place - 1 if place else None,
            depth=place,
            stage=stage,
            metrics=metrics,
        )
        for place, (name, stage, metrics) in enumerate(operators)
    )


def spread(
    operators: tuple[Part, ...], *, run_s: float = 10.0, cpu_s: float = 5.0
) -> dict[str, Part]:
    """The parts of an application with one stage, by name; CPU is half of the time."""
    stages: dict[int | None, StageTotals] = {1: StageTotals(4, cpu_s, 0.5, run_s)}
    log = EventLog(operators, stages)
    return {part.name: part for part in parts(log, 20.0, {"addBatch": 3.0})}


def test_own_time_is_taken_at_the_rate_of_the_stage() -> None:
    found = spread(chain(("Exchange", 1, {WRITE: 4.0}), ("Project", 1, {})))
    assert found["Exchange"].cpu_s == pytest.approx(2.0)
    assert found["rest of stage 1"].cpu_s == pytest.approx(3.0)


def test_a_span_is_less_what_is_below_in_it() -> None:
    found = spread(
        chain(
            ("outer", 1, {BUILD: 8.0}), ("Sort", 1, {"sort time [s]": 1.0}), ("in", 1, {BUILD: 3})
        )
    )
    times = {name: found[name].cpu_s for name in ("outer", "Sort", "in")}
    assert times == pytest.approx({"outer": 2.0, "Sort": 0.5, "in": 1.5})


def test_above_a_stateful_operator_spans_start_anew_and_contain_its_commit() -> None:
    found = spread(
        chain(
            ("final", 1, {BUILD: 3.0}),
            ("StateStoreSave", 1, {UPDATE: 4.0, COMMIT: 2.0}),
            ("merge", 1, {BUILD: 1.0}),
        )
    )
    times = {name: found[name].cpu_s for name in ("final", "StateStoreSave", "merge")}
    assert times == pytest.approx({"final": 0.5, "StateStoreSave": 2.5, "merge": 0.5})


def test_operators_without_a_stopwatch_are_covered_by_the_one_above() -> None:
    found = spread(
        chain(
            ("agg", 1, {BUILD: 1.0}), ("Project", 1, {}), ("Filter", 1, {}), ("in", 1, {BUILD: 1})
        )
    )
    assert found["agg"].covers == (1, 2)
    assert found["Project"].cpu_s is None


def test_a_span_ends_at_the_exchange() -> None:
    found = spread(chain(("agg", 1, {BUILD: 2.0}), ("Exchange", 2, {WRITE: 9.0})))
    assert (found["agg"].cpu_s, found["agg"].covers) == (pytest.approx(1.0), ())


def test_stopwatches_never_add_up_to_more_than_the_stage() -> None:
    found = spread(chain(("a", 1, {WRITE: 15.0}), ("b", 1, {WRITE: 5.0})))
    times = [found[name].cpu_s for name in ("a", "b", "rest of stage 1")]
    assert times == pytest.approx([3.75, 1.25, 0.0])


def test_all_parts_together_are_the_cpu_time_of_the_executors() -> None:
    found = spread(chain(("agg", 1, {BUILD: 2.0}), ("Filter", 1, {})))
    assert sum(part.cpu_s or 0 for part in found.values()) == pytest.approx(20.0)
    assert found["starting tasks"].cpu_s == 0.5
    assert found["outside of tasks"].cpu_s == pytest.approx(14.5)
    kinds = [part.kind for part in found.values()]
    assert kinds == [OPERATOR, OPERATOR, STAGE, TASKS, OUTSIDE, PHASE]


def test_a_phase_of_the_driver_is_time_and_no_cpu_time_of_executors() -> None:
    phase = spread(chain(("Filter", 1, {})))["addBatch"]
    assert (phase.cpu_s, phase.metrics) == (None, {"time [s]": 3.0})


def test_a_stage_that_did_nothing_divides_nothing() -> None:
    found = spread(chain(("agg", 1, {}), ("Filter", 1, {})), run_s=0.0, cpu_s=0.0)
    assert found["rest of stage 1"].cpu_s == 0.0
