"""Which red verdicts of a night are known, since a person has accepted them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from nexmark.model import CPU_METRICS, WITHOUT_SIZE

if TYPE_CHECKING:
    from nexmark.store import Store
    from nexmark.store.table_rows import AcceptanceRow
    from nexmark.verdict.acks import Ack
    from nexmark.verdict.verdict import Verdict


#: No other build is covered up to this size.
OWN_BUILD_ONLY = 0.0


def covered(store: Store, run: str, verdicts: Sequence[Verdict]) -> dict[str, int]:
    """Return by query the id of the acceptance that covers its red verdict in a night."""
    from nexmark.verdict.acks import acked

    night = store.night(run)
    if night.candidate_conf:
        return {}
    red = [verdict for verdict in verdicts if verdict.bad]
    acks = list(_acks(store, run, red)) if red else []
    known = acked(red, night.build_id, acks, night.started)
    return {query: int(ack.id) for (query, _), ack in known.items()}


def _acks(store: Store, run: str, red: Iterable[Verdict]) -> Iterator[Ack]:
    """Yield the acks of the red verdicts of a night."""
    night, now = store.night(run), datetime.now(UTC)
    rows = store.acceptances(night.engine, night.workload, night.cluster)
    for verdict in red:
        for row in rows:
            applies = row.query == verdict.query and not row.withdrawn(now)
            if applies and store.night(row.night_id).shape == night.shape:
                yield from _ack(store, row, verdict)


def _ack(store: Store, row: AcceptanceRow, tonight: Verdict) -> Iterator[Ack]:
    """Yield the ack that an acceptance is for tonight's verdict; none if it excuses nothing."""
    from nexmark.verdict.acks import Ack

    of_that_night = store.verdicts(row.night_id)
    accepted = next((one for one in of_that_night if one.query == row.query and one.decides), None)
    if accepted is None or row.build_id is None:
        return
    if not accepted.bad or accepted.value in WITHOUT_SIZE:  # it was not slower in itself
        return
    baseline = tonight.baseline_build
    if tonight.baseline_run:
        baseline = store.night(tonight.baseline_run).build_id
    if (accepted.mode, accepted.against) == (tonight.mode, tonight.against):
        size = _size(row, tonight.metric, of_that_night)
    elif row.build_id == baseline:
        return
    else:
        size = OWN_BUILD_ONLY
    metric = tonight.metric if {row.metric, tonight.metric} <= {*CPU_METRICS} else row.metric
    yield Ack(row.query, metric, row.build_id, size, row.expires, str(row.id))


def _size(row: AcceptanceRow, metric: str, verdicts: Iterable[Verdict]) -> float | None:
    """Return how large the change was by a metric in the night that was accepted.

    A person accepts a build, so both CPU times that it had then; where only one was measured, the
    other is taken as large.
    """
    if row.metric == metric:
        return row.size
    ratios = {one.metric: one.ratio for one in verdicts if one.query == row.query}
    return ratios.get(metric, row.size)
