"""Which red verdicts of a night are known, since a person has accepted them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from nexmark.model import WITHOUT_SIZE, Mode

if TYPE_CHECKING:
    from nexmark.store import Store
    from nexmark.store.table_rows import AcceptanceRow
    from nexmark.verdict.acks import Ack
    from nexmark.verdict.measured_night import QueryVerdict


#: No other build is covered up to this size.
OWN_BUILD_ONLY = 0.0


def covered(store: Store, run: str, verdicts: Sequence[QueryVerdict]) -> dict[str, int]:
    """Return by query the id of the acceptance that covers its red verdict in a night."""
    from nexmark.verdict.acks import acked

    night = store.night(run)
    if night.candidate_conf:
        return {}
    red = [verdict for verdict in verdicts if verdict.red]
    acks = list(_acks(store, run, red)) if red else []
    known = acked(red, night.build_id, acks, night.started)
    return {query: int(ack.id) for (query, _), ack in known.items()}


def _acks(store: Store, run: str, red: Iterable[QueryVerdict]) -> Iterator[Ack]:
    """Yield the acks of the red verdicts of a night."""
    night, now = store.night(run), datetime.now(UTC)
    rows = store.acceptances(night.engine, night.workload, night.cluster)
    for verdict in red:
        for row in rows:
            applies = row.query == verdict.query and not row.withdrawn(now)
            if applies and store.night(row.night_id).shape == night.shape:
                yield from _ack(store, row, verdict)


def _ack(store: Store, row: AcceptanceRow, tonight: QueryVerdict) -> Iterator[Ack]:
    """Yield the ack that an acceptance is for tonight's verdict; none if it excuses nothing."""
    from nexmark.verdict.acks import Ack

    of_that_night = store.verdicts(row.night_id)
    accepted = next((x for x in of_that_night if x.query == row.query and x.decides), None)
    if accepted is None or row.build_id is None:
        return
    if not accepted.bad or accepted.value in WITHOUT_SIZE:  # it was not slower in itself
        return
    other = baseline = tonight.baseline
    if tonight.figures:
        other = tonight.figures.baseline_run or ""
        baseline = store.night(other).build_id if other else ""
    theirs = accepted.baseline_run if accepted.mode == Mode.BOUNDS else accepted.baseline_build
    if (accepted.mode, theirs or "") == (tonight.mode, other):
        size = row.size
    elif row.build_id == baseline:
        return
    else:
        size = OWN_BUILD_ONLY
    yield Ack(row.query, row.metric, row.build_id, size, row.expires, str(row.id))
