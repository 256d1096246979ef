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
from nexmark.model import WITHOUT_SIZE, Arm, Mode
from nexmark.night.kinds import kind_of
from nexmark.night.plan import Night

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
    kind, slowed_confs = kind_of(night.workload), None
    with open_store(paths.database_url()) as store:
        accepted = store.accepted(*place, at=datetime.now(UTC))
        builds = {
            query: accepted[query].build_id
            for query in night.queries
            if query in accepted and not night.against
        }
        known = {query: build for query, build in builds.items() if build}
        sources = {x: parse_source(store.build(x).source) for x in set(known.values())}
        against = night.against or {query: sources[build] for query, build in known.items()}
        before = count_nights(store, [night.dag_id])
        tests = _self_test(night, list(against), before)

        def usual() -> list[RepetitionRow]:
            row = accepted.get(slowed)
            return store.repetitions(row.night_id, [slowed]) if row else []

        if slowed := tests.get(Arm.SLOWED, ""):
            slowed_confs = kind.slowed_confs(night, slowed, usual)
    if slowed_confs is None:
        tests.pop(Arm.SLOWED, None)
    found = {"against": against, "accepted": known, "self_test": tests}
    seed = secrets.randbelow(2**31)
    return night.model_copy(update={**found, "seed": seed, "slowed_confs": slowed_confs or {}})


def _self_test(night: Night, queries: Sequence[str], before: int) -> dict[str, str]:
    """Another query tests the gate each night; none does where that is switched off."""
    from nexmark.verdict.order import self_test_queries

    if not queries or not night.gate.self_test:
        return {}
    control, slowed = self_test_queries(queries, before)
    found: dict[str, str] = {Arm.CONTROL: control}
    if kind_of(night.workload).has_slowed_arm:
        found[Arm.SLOWED] = slowed
    return found
