"""Earlier nights for the gate to learn the noise from: real repetitions of one long A/A night.

A night of a build against itself is cut into as many nights of few pairs, in the order in which
they were measured, and each is judged by the shipped code with those before it as history. Nothing
is drawn or made up; what such nights lack is whatever would differ from one day to another in the
ratio of two equal builds.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from nexmark.config import Gate

if TYPE_CHECKING:
    from nexmark.measure.measurement import Measurement
    from nexmark.store import NightRecord, RepetitionRecord, Store
    from nexmark.store.models import Night, Repetition


def teach(store: Store, run: str, dag_id: str, name: str, pairs: int, gate: Gate) -> list[str]:
    """Cut `run` into nights `<dag_id>/<name> 1`, ... of so many `pairs`; judge and return them."""
    from nexmark.verdict.nightly import judge_night

    night = store.night(run)
    names = []
    for number in range(night.repetitions // pairs):
        made = _record(store, night, f"{dag_id}/{name} {number + 1}", number, pairs)
        earlier = store.earlier(made, gate.remembered)
        store.record_verdicts(made, judge_night(store.paired_night(made), earlier, gate))
        names.append(made)
    return names


def _record(store: Store, night: Night, name: str, number: int, pairs: int) -> str:
    from nexmark.store import PAIRED, ValidationRecord

    dag_id, run_id = name.split("/", 1)
    record = dataclasses.replace(
        record_of(store, night),
        dag_id=dag_id,
        run_id=run_id,
        repetitions=pairs,
        started=night.started + timedelta(seconds=number),
        mode=PAIRED,
    )
    store.record_night(record)
    for validation in store.validations(night.id):
        store.record_validation(
            ValidationRecord(
                record.run,
                validation.query,
                validation.success,
                validation.failures,
                arm=validation.arm,
            )
        )
    for made in _repetitions(store, night, record.run, number * pairs, pairs):
        store.record_repetition(made)
    return record.run


def _repetitions(
    store: Store, night: Night, run: str, skipped: int, pairs: int
) -> Iterator[RepetitionRecord]:
    from nexmark.store import FIRST, RepetitionRecord

    for row in store.repetitions(night.id):
        if row.ok and row.stage == FIRST and skipped < row.number <= skipped + pairs:
            yield RepetitionRecord(
                run,
                row.query,
                row.number - skipped,
                measurement_of(row),
                arm=row.arm,
                position=row.position,
            )


def record_of(store: Store, night: Night) -> NightRecord:
    """What a night was recorded with."""
    from nexmark.store import BuildRecord, NightRecord

    build = store.build(night.build_id)
    return NightRecord(
        dag_id=night.dag_id,
        run_id=night.run_id,
        engine=night.engine,
        workload=night.workload,
        cluster=night.cluster,
        build=BuildRecord(build.id, build.version, build.source),
        jobs=night.jobs,
        workload_spec=night.workload_spec,
        cluster_spec=night.cluster_spec,
        queries=night.queries,
        repetitions=night.repetitions,
        directory=Path(night.directory),
        started=night.started,
        mode=night.mode,
        baselines=night.baselines,
    )


def measurement_of(row: Repetition) -> Measurement:
    """What a repetition was recorded with."""
    from nexmark.measure.measurement import Measurement

    values = {field.name: getattr(row, field.name) for field in dataclasses.fields(Measurement)}
    return Measurement(**{**values, "hosts": tuple(row.hosts or ())})


__all__ = ["measurement_of", "record_of", "teach"]
