"""Spark's own metrics of the state stores of an operator, out of the progress of a batch."""

from collections.abc import Mapping
from typing import Any

LOAD_MS = "rocksdbLoadLatencyMs"
"""How long RocksDB loaded the stores of an operator, summed over tasks; since Spark 4.1."""
REPLAY_MS = "rocksdbReplayChangeLogLatencyMs"
"""How long it replayed changelogs, a part of the load."""
LOADED = "rocksdbNumLoadedFromDfs"
"""How many stores were loaded from the checkpoint; since Spark 4.2."""


def state_metric(operator: Mapping[str, Any], name: str) -> int | None:
    """A metric of the stores of an operator; None where the engine does not report it.

    Spark runs an aggregation as two operators. The first one loads the stores, to read them, and
    reports nothing; the second one, which saves, finds them loaded and reports 0 to 3 ms. So of an
    aggregation nothing is reported of the load.
    """
    saves = "statestoresave" in operator["operatorName"].lower()
    if saves and name in (LOAD_MS, REPLAY_MS, LOADED):
        return None
    value = operator.get("customMetrics", {}).get(name)
    return None if value is None else int(value)
