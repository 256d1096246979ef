"""Nights of the past, made of the figures of a real one and judged by the shipped code."""

from __future__ import annotations

import dataclasses
import random
from collections.abc import Sequence
from datetime import timedelta
from typing import Literal

from nexmark.config import Gate
from nexmark.detection.earlier import measurement_of, record_of
from nexmark.measure.measurement import Measurement
from nexmark.store import CanaryRecord, RepetitionRecord, Store, ValidationRecord
from nexmark.store.models import Repetition
from nexmark.verdict.nightly import judge_night

NOISE = 0.15
"""Of every figure: what short runs have no less of."""


def make_past(store: Store, run: str, nights: int, arms: Sequence[str], gate: Gate) -> None:
    """So many nights on the days before `run`, of its only query, each of the arms; judged."""
    for ago in range(nights, 0, -1):
        made = _night(store, run, ago, arms)
        judged = judge_night(store.paired_night(made), store.earlier(made, 100), gate)
        store.record_verdicts(made, judged)


def _night(store: Store, run: str, ago: int, arms: Sequence[str]) -> str:
    night = store.night(run)
    (query,) = night.queries
    record = dataclasses.replace(
        record_of(store, night),
        run_id=f"past {ago}",
        started=night.started - timedelta(days=ago),
        baselines={query: night.build_id} if len(arms) > 1 else {},
    )
    store.record_night(record)
    store.record_validation(ValidationRecord(record.run, query, success=True))
    row, noise = store.repetitions(run)[0], random.Random(ago)
    for number in range(1, night.repetitions + 1):
        for arm in arms:
            figures = _noisy(row, noise.gauss(1, NOISE))
            store.record_repetition(
                RepetitionRecord(record.run, query, number, measurement=figures, arm=arm)
            )
    store.record_canary(record.run, _canaries(store, run))
    return record.run


def _noisy(row: Repetition, factor: float) -> Measurement:
    """The figures of a repetition, with its costs multiplied."""
    figures = measurement_of(row)
    costs = {
        name: value * factor
        for name, value in dataclasses.asdict(figures).items()
        if name.startswith("cpu_s_per_mevent") and value is not None
    }
    return dataclasses.replace(figures, **costs)


def _canaries(store: Store, run: str) -> list[CanaryRecord]:
    moments: dict[str, Literal["before", "after"]] = {"before": "before", "after": "after"}
    return [
        CanaryRecord(row.metric, row.value, moments[row.moment], row.taken, row.host, row.group)
        for row in store.canaries(run)
        if row.value is not None
    ]


__all__ = ["NOISE", "make_past"]
