"""The build to compare a night's candidate with: the accepted one, or a named one."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from datetime import UTC, datetime

from nexmark.config import paths
from nexmark.engines import parse_source
from nexmark.model import Arm
from nexmark.night.plan import Night


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
    builds = {x: builds[x] for x in night.queries if x in builds and not night.against}
    against = night.against or {query: sources[build] for query, build in builds.items()}
    return night.model_copy(
        update={
            "against": against,
            "accepted": builds,
            "self_test": _self_test(night, list(against), before),
            "seed": secrets.randbelow(2**31),
        }
    )


def _self_test(night: Night, queries: Sequence[str], before: int) -> dict[str, str]:
    """Another query tests the gate each night; none does where that is switched off."""
    from nexmark.verdict.order import self_test_queries

    if not queries or not night.gate.self_test:
        return {}
    control, slowed = self_test_queries(queries, before)
    if night.workload.kind != "bounded":  # more events are no slowdown of what decides there
        return {Arm.CONTROL: control}
    return {Arm.CONTROL: control, Arm.SLOWED: slowed}
