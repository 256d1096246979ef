"""What must be the same for two nights to be compared."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any

#: How often and how finely something is measured, and how it is reached, does not change it.
NOT_SHAPE = frozenset(
    {"name", "queries", "repetitions", "verify", "sampling_interval_s", "spark_connection"}
    | {"master_port", "master_ui_port", "worker_port", "worker_ui_port", "start_timeout_s"}
    | {"baseline_ports", "history_server"}
)


def shape(workload: Mapping[str, Any], cluster: Mapping[str, Any]) -> str:
    """Return the hash of everything in a workload and a cluster that changes what is measured."""
    kept = [{k: v for k, v in spec.items() if k not in NOT_SHAPE} for spec in (workload, cluster)]
    text = json.dumps(kept, sort_keys=True, separators=(",", ":"), default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:16]
