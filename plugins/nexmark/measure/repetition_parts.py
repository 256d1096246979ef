"""The parts of one repetition, from its event log, result file and measurement."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from nexmark.measure.event_log import read_event_log
from nexmark.measure.measurement import STEADY, Measurement
from nexmark.measure.operator_times import Part, parts


def repetition_parts(
    events: Path, result: Mapping[str, Any], measurement: Measurement
) -> list[Part]:
    """Return the parts of a repetition, of the batches that its metric of record is of.

    These are the data batches after the warm-up where it has a steady state, else all of them.
    ``events`` is the directory of its event log. EventLogError where that cannot be read.
    """
    batches: Sequence[Mapping[str, Any]] = result["batches"]
    cpu_s = measurement.cpu_application_s
    if measurement.basis == STEADY and measurement.steady_cpu_s is not None:
        data = sorted((x for x in batches if x["phase"] == "data"), key=lambda x: x["id"])
        batches, cpu_s = data[measurement.warmup_batches :], measurement.steady_cpu_s
    log = read_event_log(events, [x["id"] for x in batches], measurement.application_id)
    return parts(log, cpu_s, _phases(batches))


def _phases(batches: Sequence[Mapping[str, Any]]) -> dict[str, float]:
    """Return the seconds that the driver spent in each step of the batches."""
    found: dict[str, float] = {}
    for batch in batches:
        for name, spent_ms in batch.get("steps_ms", {}).items():
            found[name] = found.get(name, 0.0) + spent_ms / 1000
    return found


__all__ = ["repetition_parts"]
