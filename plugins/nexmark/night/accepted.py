"""The accepted builds: a night is compared with them; and which of its red verdicts are known.

A person accepts a query of a run (the DAG or `nexmark accept`). That does two things:

1. *The baseline moves.* From then on the query is compared with the build (in mode bounds: the run)
   that was accepted, and anything worse is red again, by its own size. No ack may hide that: the
   size that was accepted was of another baseline.
2. *The red verdict itself is known.* Where a query is still compared with what it was compared with
   when it was accepted (the same night judged again, a night or sign-off `against` that build), the
   accepted build is covered whatever is measured of it, and another build up to the accepted size.
   Against any third baseline the sizes do not compare: only the accepted build is covered there.

Accepting a green night sets a baseline and excuses nothing; neither does a run of another input.
When the acceptance expires or is withdrawn, both end. Nothing covers a night that tried a setting
(`candidate_conf`): it is of no build that was accepted. The suite as a whole cannot be accepted: it
follows the baselines of its queries.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from nexmark.config import paths
from nexmark.engines import parse_source
from nexmark.model import P50, WITHOUT_SIZE, Arm, Mode, median_of
from nexmark.night.plan import Night
from nexmark_jobs.real_time import later_confs

if TYPE_CHECKING:
    from nexmark.store import Store
    from nexmark.store.table_rows import AcceptanceRow, RepetitionRow
    from nexmark.verdict.acks import Ack
    from nexmark.verdict.measured_night import QueryVerdict


#: No other build is covered up to this size.
OWN_BUILD_ONLY = 0.0


def covered(store: Store, run: str, verdicts: Sequence[QueryVerdict]) -> dict[str, int]:
    """The id of the acceptance that covers each red verdict of a night, by query."""
    from nexmark.verdict.acks import acked

    night = store.night(run)
    if night.candidate_conf:
        return {}
    red = [one for one in verdicts if one.red]
    acks = list(_acks(store, run, red)) if red else []
    known = acked(red, night.build_id, acks, night.started)
    return {query: int(ack.id) for (query, _), ack in known.items()}


def _acks(store: Store, run: str, red: Iterable[QueryVerdict]) -> Iterator[Ack]:
    """Return the acceptances of the red queries that apply to this night."""
    night, now = store.night(run), datetime.now(UTC)
    rows = store.acceptances(night.engine, night.workload, night.cluster)
    for verdict in red:
        for row in rows:
            applies = row.query == verdict.query and not row.withdrawn(now)
            if applies and store.night(row.night_id).shape == night.shape:
                yield from _ack(store, row, verdict)


def _ack(store: Store, row: AcceptanceRow, tonight: QueryVerdict) -> Iterator[Ack]:
    """Return the ack that `row` is for tonight's verdict; none if it excuses nothing."""
    from nexmark.verdict.acks import Ack

    verdicts = (x for x in store.verdicts(row.night_id) if x.query == row.query and x.decides)
    accepted = next(verdicts, None)
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


def with_baselines(night: Night) -> Night:
    """Return `night` with the baseline of each query and the queries of the self-test.

    A build that was asked for stays; else it is the one that was accepted for each query. Nights
    that are judged by bounds measure no second build.
    """
    if night.mode != Mode.PAIRED:
        return night
    from nexmark.store import open_store
    from nexmark.store.history import count_nights

    place = (night.engine.name, night.workload.name, night.cluster.name)
    with open_store(paths.database_url()) as store:
        accepted = store.accepted(*place, at=datetime.now(UTC))
        builds = {query: row.build_id for query, row in accepted.items() if row.build_id}
        sources = {x: parse_source(store.build(x).source) for x in set(builds.values())}
        before = count_nights(store, [night.dag_id])
        rows = accepted.items() if night.workload.is_paced else ()
        usual = {query: _p50(store.repetitions(row.night_id, [query])) for query, row in rows}
    builds = {x: builds[x] for x in night.queries if x in builds and not night.against}
    against = night.against or {query: sources[build] for query, build in builds.items()}
    tests, seed = _self_test(night, list(against), before), secrets.randbelow(2**31)
    slowed, trigger = tests.get(Arm.SLOWED, ""), str(night.workload.trigger)
    p50 = usual.get(slowed)
    confs = later_confs(slowed, trigger, p50, night.gate.self_test) if p50 else {}
    if night.workload.is_paced and not confs:
        tests.pop(Arm.SLOWED, None)
    found = {"against": against, "accepted": builds, "self_test": tests, "seed": seed}
    return night.model_copy(update=found | {"slowed_confs": confs})


def _self_test(night: Night, queries: Sequence[str], before: int) -> dict[str, str]:
    """Another query tests the gate each night; none does where that is switched off."""
    from nexmark.verdict.order import self_test_queries

    if not queries or not night.gate.self_test:
        return {}
    control, slowed = self_test_queries(queries, before)
    if night.workload.recovery:  # more events are no slowdown of what decides there
        return {Arm.CONTROL: control}
    return {Arm.CONTROL: control, Arm.SLOWED: slowed}


def _p50(rows: Iterable[RepetitionRow]) -> float | None:
    return median_of(
        (row.figures or {}).get(P50) for row in rows if row.counts and row.arm == Arm.CANDIDATE
    )
