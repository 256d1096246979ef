"""What Spark's progress says of how the state stores of an operator were loaded."""

from collections.abc import Mapping
from typing import Any

LOAD_MS = "rocksdbLoadLatencyMs"
"""How long RocksDB loaded the stores of an operator, summed over tasks; since Spark 4.1."""


def loading(operator: Mapping[str, Any], metric: str) -> int | None:
    """A metric of how the stores of an operator were loaded; None where nothing reports it.

    Spark runs an aggregation as two operators. The first one loads the stores, to read them, and
    reports nothing; the second one, which saves, finds them loaded and reports 0 to 3 ms.
    """
    if "statestoresave" in operator["operatorName"].lower():
        return None
    value = operator.get("customMetrics", {}).get(metric)
    return None if value is None else int(value)
