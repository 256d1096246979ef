"""Nights of the past, made of the figures of a real one and judged by the shipped code."""

from __future__ import annotations

import dataclasses
import random
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any, Literal

from nexmark.config import Gate
from nexmark.measure.measurement import Measurement
from nexmark.store import (
    BuildRecord,
    CanaryRecord,
    NightRecord,
    RepetitionRecord,
    Store,
    ValidationRecord,
)
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
    build = store.build(night.build_id)
    (query,) = night.queries
    record = NightRecord(
        dag_id=night.dag_id,
        run_id=f"past {ago}",
        engine=night.engine,
        workload=night.workload,
        cluster=night.cluster,
        build=BuildRecord(build.id, build.version, build.source),
        jobs=night.jobs,
        workload_spec=night.workload_spec,
        cluster_spec=night.cluster_spec,
        queries=[query],
        repetitions=night.repetitions,
        directory=Path(night.directory),
        started=night.started - timedelta(days=ago),
        mode=night.mode,
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
    names = [field.name for field in dataclasses.fields(Measurement)]
    values: dict[str, Any] = {name: getattr(row, name) for name in names}
    for name in names:
        if name.startswith("cpu_s_per_mevent") and values[name] is not None:
            values[name] *= factor
    return Measurement(**values)


def _canaries(store: Store, run: str) -> list[CanaryRecord]:
    moments: dict[str, Literal["before", "after"]] = {"before": "before", "after": "after"}
    return [
        CanaryRecord(row.metric, row.value, moments[row.moment], row.taken, row.host, row.group)
        for row in store.canaries(run)
        if row.value is not None
    ]


__all__ = ["NOISE", "make_past"]
