"""The batches that the parts of a repetition cover, and the CPU time that they add up to."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from nexmark.measure.executed_plan import PHASE, Part
from nexmark.measure.measurement import Measurement
from nexmark.measure.operator_times import repetition_parts
from tests.unit.store.store_builder import measurement

PLACE = Path(__file__).parents[2] / "data" / "event_logs" / "spark-4.3.0-q5"
RESULT: dict[str, Any] = json.loads((PLACE / "result.json").read_text())
FIGURES = {
    "application_id": RESULT["application_id"],
    "cpu_application_s": 12.0,
    "steady_cpu_s": 3.0,
    "warmup_batches": 1,
}


def made(figures: Measurement) -> list[Part]:
    return repetition_parts(PLACE / "events", RESULT, figures)


def tasks(found: list[Part]) -> float:
    return next(x.metrics["tasks"] for x in found if x.kind == "tasks")


def test_of_the_steady_state_they_are_the_data_batches_after_the_warm_up() -> None:
    found = made(measurement(10.0, **FIGURES))
    assert tasks(found) == 4 * 2
    assert sum(x.cpu_s or 0 for x in found) == pytest.approx(3.0)


def test_the_kinds_of_parts_have_the_names_that_evidence_and_stored_nights_have() -> None:
    kinds = {x.kind for x in made(measurement(10.0, **FIGURES))}
    assert kinds == {"operator", "stage", "tasks", "outside", "phase"}


def test_of_the_application_they_are_all_batches() -> None:
    found = made(measurement(None, **FIGURES))
    assert tasks(found) == 4 * 4 * 2
    assert sum(x.cpu_s or 0 for x in found) == pytest.approx(12.0)


def test_the_driver_s_steps_are_of_the_same_batches() -> None:
    steady, whole = (
        {
            x.name: x.metrics["time [s]"]
            for x in made(measurement(basis, **FIGURES))
            if x.kind == PHASE
        }
        for basis in (10.0, None)
    )
    second = RESULT["batches"][1]["steps_ms"]
    assert steady == {name: ms / 1000 for name, ms in second.items()}
    assert steady["addBatch"] < whole["addBatch"]


def phases(result: dict[str, Any], basis: float | None) -> dict[str, float]:
    found = repetition_parts(PLACE / "events", result, measurement(basis, **FIGURES))
    return {x.name: x.metrics["time [s]"] for x in found if x.kind == PHASE}


def test_steps_of_several_batches_add_up_and_a_batch_may_know_none() -> None:
    steps = [{"addBatch": 1500, "walCommit": 250}, {"addBatch": 2000}, None, {"addBatch": 7}]
    batches = [dict(x) for x in RESULT["batches"]]
    for batch, own in zip(batches, steps, strict=False):
        batch.pop("steps_ms")
        batch |= {} if own is None else {"steps_ms": own}
    assert len(batches) == len(steps)
    assert phases({"batches": batches}, None) == {"addBatch": 3.507, "walCommit": 0.25}


def test_batches_are_those_of_the_steady_state_in_whatever_order_they_are_listed() -> None:
    assert phases({"batches": RESULT["batches"][::-1]}, 10.0) == phases(RESULT, 10.0)


def test_the_log_is_that_of_the_application_where_there_are_several(tmp_path: Path) -> None:
    (log,) = (PLACE / "events").iterdir()
    (tmp_path / log.name).symlink_to(log)
    (tmp_path / "app-other").write_text("")
    measured = measurement(10.0, **FIGURES)
    assert repetition_parts(tmp_path, RESULT, measured) == made(measured)
