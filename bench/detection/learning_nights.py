"""Cut one long A/A night into short nights, from which the gate learns the noise.

Each short night has some pairs of the night of a build against itself, in the order in which they
were measured. The shipped code judges each of them, with the nights before it as history. No figure
is simulated. Such nights lack only the day-to-day differences in the ratio of two equal builds.
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
    from nexmark.store.table_rows import NightRow, RepetitionRow


def teach(store: Store, run: str, dag_id: str, name: str, pairs: int, gate: Gate) -> list[str]:
    """Cut a night into nights named `<dag_id>/<name> 1` and so on; judge them and return the names.

    Args:
        store: The results database.
        run: The name of the night that is cut.
        dag_id: The DAG of the new nights.
        name: The beginning of their run ids.
        pairs: The number of pairs of each new night.
        gate: The rules by which they are judged.
    """
    from nexmark.verdict.nightly import judge_night

    night = store.night(run)
    names = []
    for number in range(night.repetitions // pairs):
        made = _record(store, night, f"{dag_id}/{name} {number + 1}", number, pairs)
        earlier = store.earlier(made, gate.remembered)
        store.record_verdicts(made, judge_night(store.paired_night(made), earlier, gate))
        names.append(made)
    return names


def _record(store: Store, night: NightRow, name: str, number: int, pairs: int) -> str:
    """Record one of the new nights; return its name.

    Args:
        store: The results database.
        night: The night that is cut.
        name: The name of the new night.
        number: Its number, from 0.
        pairs: The number of its pairs.
    """
    from nexmark.model import Mode
    from nexmark.store import ValidationRecord

    dag_id, run_id = name.split("/", 1)
    record = dataclasses.replace(
        record_of(store, night),
        dag_id=dag_id,
        run_id=run_id,
        repetitions=pairs,
        started=night.started + timedelta(seconds=number),
        mode=Mode.PAIRED,
        teaches=True,
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
    store: Store, night: NightRow, run: str, skipped: int, pairs: int
) -> Iterator[RepetitionRecord]:
    """Yield the records of the repetitions of a new night.

    Args:
        store: The results database.
        night: The night that is cut.
        run: The name of the new night.
        skipped: The number of pairs that come before the first pair of the new night.
        pairs: The number of its pairs.
    """
    from nexmark.model import FIRST_ROUND
    from nexmark.store import RepetitionRecord

    for row in store.repetitions(night.id):
        if row.ok and row.stage == FIRST_ROUND and skipped < row.number <= skipped + pairs:
            yield RepetitionRecord(
                run,
                row.query,
                row.number - skipped,
                measurement_of(row),
                arm=row.arm,
                position=row.position,
            )


def record_of(store: Store, night: NightRow) -> NightRecord:
    """Return the record with which a night was recorded."""
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
        teaches=night.teaches,
    )


def measurement_of(row: RepetitionRow) -> Measurement:
    """Return the measurement with which a repetition was recorded."""
    from nexmark.measure.measurement import Measurement

    values = {field.name: getattr(row, field.name) for field in dataclasses.fields(Measurement)}
    values |= {"hosts": tuple(row.hosts or ()), "figures": row.figures or {}}
    return Measurement(**values)
