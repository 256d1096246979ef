"""Read Spark's metrics of an operator's state stores from the progress of a batch."""

from collections.abc import Mapping
from typing import Any

LOAD_MS = "rocksdbLoadLatencyMs"
"""Time in which RocksDB loaded the stores of an operator, summed over tasks; since Spark 4.1."""
REPLAY_MS = "rocksdbReplayChangeLogLatencyMs"
"""Time in which RocksDB replayed changelogs, a part of the load."""
LOADED = "rocksdbNumLoadedFromDfs"
"""Number of stores that were loaded from the checkpoint; since Spark 4.2."""


def state_metric(operator: Mapping[str, Any], name: str) -> int | None:
    """Return a metric of the stores of an operator; None if Spark does not report it.

    Spark runs an aggregation as two operators. The first one loads the stores, to read them, and
    reports nothing; the second one, which saves, finds them loaded and reports 0 to 3 ms. So of an
    aggregation nothing is reported of the load.
    """
    saves = "statestoresave" in operator["operatorName"].lower()
    if saves and name in (LOAD_MS, REPLAY_MS, LOADED):
        return None
    value = operator.get("customMetrics", {}).get(name)
    return None if value is None else int(value)
