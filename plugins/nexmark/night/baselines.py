"""The build to compare a night's candidate with: the accepted one, or a named one."""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from nexmark.config import paths
from nexmark.engines import parse_source
from nexmark.model import P50, Arm, median_of
from nexmark.night.plan import Night
from nexmark_jobs.real_time import later_confs

if TYPE_CHECKING:
    from nexmark.store.table_rows import RepetitionRow


def with_baselines(night: Night) -> Night:
    """Return `night` with the baseline of each query and the queries of the self-test.

    A build that was asked for stays; else it is the one that was accepted for each query. Nights
    that are judged by bounds measure no second build.
    """
    if night.mode != "paired":
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
    tests = _self_test(night, list(against), before)
    slowed = tests.get(Arm.SLOWED, "")
    confs = _later(night, slowed, usual.get(slowed))
    if night.workload.is_paced and not confs:
        tests.pop(Arm.SLOWED, None)
    return night.model_copy(
        update={
            "against": against,
            "accepted": builds,
            "self_test": tests,
            "slowed_confs": confs,
            "seed": secrets.randbelow(2**31),
        }
    )


def _self_test(night: Night, queries: Sequence[str], before: int) -> dict[str, str]:
    """Another query tests the gate each night; none does where that is switched off."""
    from nexmark.verdict.order import self_test_queries

    if not queries or not night.gate.self_test:
        return {}
    control, slowed = self_test_queries(queries, before)
    if night.workload.recovery:  # more events are no slowdown of what decides there
        return {Arm.CONTROL: control}
    return {Arm.CONTROL: control, Arm.SLOWED: slowed}


def _later(night: Night, slowed: str, p50: float | None) -> dict[str, str]:
    """What makes the rows of a paced query later by the size of the seeded slowdown."""
    if not (night.workload.is_paced and p50):
        return {}
    return later_confs(slowed, str(night.workload.trigger), p50, night.gate.self_test)


def _p50(rows: Iterable[RepetitionRow]) -> float | None:
    """The usual latency of the accepted repetitions of a query."""
    return median_of(
        (row.figures or {}).get(P50) for row in rows if row.ok and row.arm == Arm.CANDIDATE
    )
