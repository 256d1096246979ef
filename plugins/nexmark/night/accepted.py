"""Which red verdicts of a night are known and accepted. Free of Airflow.

A person accepts a query of a run (the DAG or `nexmark accept`). That does two things, which
have to agree:

1. *The baseline moves.* From then on the query is compared with the build (in mode bounds: the run)
   that was accepted. What was accepted is ratio 1 there, so it is silent by itself, and anything
   worse is red again, by its own size. No ack is needed for that, and none may hide it: the size
   that was accepted, 1.08 say, was of another baseline, and 1.08 on top of it is news.
2. *The red verdict itself is known.* Where a query is still compared with what it was compared with
   when it was accepted, the ack speaks: the same night judged again (clear its `judge`), a night or
   sign-off `against` that build. The accepted build is covered whatever is measured of it; another
   build up to the accepted size, and a worse number alarms again. Against any third baseline the
   sizes do not compare: the accepted build is covered there, and no other.

So a verdict is covered by an acceptance only if that one was of a red verdict (accepting a green
night sets a baseline and excuses nothing) and was measured on the same input, and if its build has
not become what the query is compared with. When the acceptance expires or is withdrawn, both end:
the baseline before counts again, and the difference to it is red as on the first day.

Nothing covers a night that tried a setting (`candidate_conf`): it is of no build that was accepted.

The suite as a whole cannot be accepted: it follows the baselines of its queries.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from nexmark.model import WITHOUT_SIZE
from nexmark.verdict import Verdict

if TYPE_CHECKING:
    from nexmark.store import Store
    from nexmark.store.table_rows import AcceptanceRow, VerdictRow
    from nexmark.verdict.acks import Ack
    from nexmark.verdict.measured_night import QueryVerdict

#: No other build is covered up to this size.
OWN_BUILD_ONLY = 0.0


def covered(store: Store, run: str, verdicts: Sequence[Verdict | QueryVerdict]) -> dict[str, int]:
    """The id of the acceptance that covers each red verdict of a night, by query."""
    from nexmark.verdict.acks import acked

    night = store.night(run)
    if night.candidate_conf:
        return {}
    red = [one for one in map(as_query_verdict, verdicts) if one.red]
    acks = list(_acks(store, run, red)) if red else []
    known = acked(red, night.build_id, acks, night.started)
    return {query: int(ack.id) for (query, _), ack in known.items()}


def as_query_verdict(verdict: Verdict | QueryVerdict) -> QueryVerdict:
    """A verdict by bounds as one of the gate on pairs; its baseline is a run."""
    from nexmark.verdict.measured_night import QueryVerdict

    if isinstance(verdict, QueryVerdict):
        return verdict
    return QueryVerdict(
        night="",
        query=verdict.query,
        metric=verdict.metric,
        value=verdict.value,
        reason=verdict.reason,
        mode="bounds",
        gate_version=verdict.gate_version,
        ratio=verdict.ratio,
        baseline=verdict.baseline_run or "",
    )


def _acks(store: Store, run: str, red: Iterable[QueryVerdict]) -> Iterator[Ack]:
    """Return the acceptances of the red queries that apply to this night."""
    night, now = store.night(run), datetime.now(UTC)
    rows = store.acceptances(night.engine, night.workload, night.cluster)
    for verdict in red:
        for row in rows:
            if row.query != verdict.query or row.withdrawn(now):
                continue
            if store.night(row.night_id).shape != night.shape:
                continue
            ack = _ack(row, _accepted_verdict(store, row), verdict, _baseline_build(store, verdict))
            if ack is not None:
                yield ack


def _ack(
    row: AcceptanceRow, accepted: VerdictRow | None, tonight: QueryVerdict, baseline_build: str
) -> Ack | None:
    """Return the ack that `row` is for tonight's verdict; None if it excuses nothing."""
    from nexmark.verdict.acks import Ack

    if accepted is None or not _was_red(accepted) or row.build_id is None:
        return None
    if _reference(accepted) == (tonight.mode, tonight.baseline):
        size = row.size
    elif row.build_id == baseline_build:
        return None
    else:
        size = OWN_BUILD_ONLY
    return Ack(row.query, row.metric, row.build_id, size, row.expires, str(row.id))


def _accepted_verdict(store: Store, row: AcceptanceRow) -> VerdictRow | None:
    found = (x for x in store.verdicts(row.night_id) if x.query == row.query and x.decides)
    return next(found, None)


def _was_red(verdict: VerdictRow) -> bool:
    """Whether it was slower in itself, be it accepted or not."""
    return verdict.bad and verdict.value not in WITHOUT_SIZE


def _reference(verdict: VerdictRow) -> tuple[str, str]:
    """Return the other side of a verdict: the mode, and the build or run."""
    other = verdict.baseline_run if verdict.mode == "bounds" else verdict.baseline_build
    return verdict.mode, other or ""


def _baseline_build(store: Store, verdict: QueryVerdict) -> str:
    """The build that a verdict compares with; '' for none."""
    if verdict.mode == "bounds" and verdict.baseline:
        return store.night(verdict.baseline).build_id
    return verdict.baseline
