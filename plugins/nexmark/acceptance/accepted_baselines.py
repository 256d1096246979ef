"""Which build each query of a night is compared with, and which queries test the gate itself."""

import secrets
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from nexmark.config import paths
from nexmark.engines import parse_source
from nexmark.model import Arm, Mode
from nexmark.night.kinds import kind_for, kind_of
from nexmark.night.night_plan import Night

if TYPE_CHECKING:
    from nexmark.store.table_rows import RepetitionRow


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
        acceptances = store.accepted(*place, at=datetime.now(UTC))
        builds = {
            query: acceptances[query].build_id
            for query in night.queries
            if query in acceptances and not night.against
        }
        accepted = {query: build for query, build in builds.items() if build}
        sources = {build: parse_source(store.build(build).source) for build in {*accepted.values()}}
        against = night.against or {query: sources[build] for query, build in accepted.items()}
        self_test = self_test_of(night, list(against), count_nights(store, [night.dag_id]))

        def rows_of_baseline() -> "list[RepetitionRow]":
            row = acceptances.get(slowed)
            return store.repetitions(row.night_id, [slowed]) if row else []

        if slowed := self_test.get(Arm.SLOWED, ""):
            slowed_confs = kind.slowed_confs(night, slowed, rows_of_baseline)
    if slowed_confs is None:
        self_test.pop(Arm.SLOWED, None)
    return night.model_copy(
        update={
            "against": against,
            "accepted": accepted,
            "self_test": self_test,
            "seed": secrets.randbelow(2**31),
            "slowed_confs": slowed_confs or {},
        }
    )


def self_test_of(night: Night, queries: Sequence[str], nights_before: int) -> dict[str, str]:
    """Return by arm the query that tests the gate in this night; none where that is switched off.

    It is another query each night.

    Args:
        night: The night.
        queries: The queries that are compared in pairs.
        nights_before: How many nights the DAG has had.
    """
    from nexmark.verdict.order import self_test_queries

    if not queries or not night.gate.self_test:
        return {}
    control, _ = self_test_queries(queries, nights_before)
    tested: dict[str, str] = {Arm.CONTROL: control}
    if slowable := [query for query in queries if kind_for(night, query).has_slowed_arm]:
        _, tested[Arm.SLOWED] = self_test_queries(slowable, nights_before)
    return tested
