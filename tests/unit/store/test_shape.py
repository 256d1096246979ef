"""Nights of earlier versions stay comparable when a workload gets a new key."""

from __future__ import annotations

from nexmark.config import load
from nexmark.store.store import shape

#: The keys of the first workloads that were recorded.
FIRST = (
    *("name", "kind", "source", "partitions", "events", "tps", "rows_per_batch", "verify"),
    *("rate", "seconds", "warm_up", "trigger", "recovery", "compatibility", "bounds_only"),
    *("seed", "repetitions", "warmup_batches", "queries", "sampling_interval_s"),
    *("conf_profile", "generator"),
)


def test_a_workload_that_uses_no_later_key_has_the_shape_that_it_had() -> None:
    workload = load().workloads["nightly"].model_dump(mode="json")
    first = {key: workload[key] for key in FIRST}
    assert workload.keys() > first.keys()
    assert shape(workload, {}) == shape(first, {})


def test_a_later_key_that_is_used_makes_another_shape() -> None:
    workload = load().workloads["nightly"].model_dump(mode="json")
    changed = {**workload, "formulations": {"q7": "join"}}
    assert shape(changed, {}) != shape(workload, {})
