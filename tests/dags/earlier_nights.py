"""Nights of the past, made of the figures of a real one and judged by the shipped code."""

from __future__ import annotations

import dataclasses
import random
from datetime import timedelta

from bench.detection.learning_nights import measurement_of, record_of
from nexmark.config import Gate
from nexmark.measure.measurement import Measurement
from nexmark.model import Arm
from nexmark.store import RepetitionRecord, Store, ValidationRecord
from nexmark.store.table_rows import CanaryRow, RepetitionRow
from nexmark.verdict.nightly import judge_night

NOISE = 0.15
"""The spread of every figure; short runs spread at least as much."""


def make_past(store: Store, run: str, nights: int, gate: Gate) -> None:
    """Make `nights` judged nights of pairs of the only query, on the days before `run`."""
    for ago in range(nights, 0, -1):
        made = _night(store, run, ago)
        judged = judge_night(store.paired_night(made), store.earlier(made, 100), gate)
        store.record_verdicts(made, judged)


def _night(store: Store, run: str, ago: int) -> str:
    night = store.night(run)
    (query,) = night.queries
    record = dataclasses.replace(
        record_of(store, night),
        run_id=f"past {ago}",
        started=night.started - timedelta(days=ago),
        baselines={query: night.build_id},
    )
    store.record_night(record)
    store.record_validation(ValidationRecord(record.run, query, success=True))
    row, noise = store.repetitions(run)[0], random.Random(ago)
    for number in range(1, night.repetitions + 1):
        for arm in (Arm.CANDIDATE, Arm.BASELINE):
            figures = _noisy(row, noise.gauss(1, NOISE))
            store.record_repetition(
                RepetitionRecord(record.run, query, number, measurement=figures, arm=arm)
            )
    store.record_canary(record.run, _canaries(store, run))
    return record.run


def _noisy(row: RepetitionRow, factor: float) -> Measurement:
    """The figures of a repetition, with its costs multiplied."""
    figures = measurement_of(row)
    costs = {
        name: value * factor
        for name, value in dataclasses.asdict(figures).items()
        if name.startswith("cpu_s_per_mevent") and value is not None
    }
    more = {name: value * factor for name, value in figures.figures.items()}
    return dataclasses.replace(figures, figures=more, **costs)


def _canaries(store: Store, run: str) -> list[CanaryRow]:
    names = ("metric", "value", "moment", "taken", "host", "group")
    return [
        CanaryRow(**{name: getattr(row, name) for name in names})
        for row in store.canaries(run)
        if row.value is not None
    ]


__all__ = ["NOISE", "make_past"]
