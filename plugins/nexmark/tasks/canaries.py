"""The canary of a night: what the hosts can do before and after the repetitions of a query.

<run directory>/<query>/canary-before.json, canary-after.json     [{host: {metric: value}}]
"""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeAlias

from nexmark.cluster import ClusterError
from nexmark.night.night_progress import say
from nexmark.night.plan import Night

if TYPE_CHECKING:
    from nexmark.store import CanaryRecord

Moment: TypeAlias = Literal["before", "after"]
BEFORE: Moment = "before"
AFTER: Moment = "after"


def run_canary(night: Night, group: str, moment: Moment) -> None:
    """Run the canary on all hosts at once and keep its figures; if it fails, the night goes on.

    If a host fails the canary, its queries fail too, with a better message.
    """
    if night.mode == "bounds" or not night.gate.canary:
        return
    try:
        found = [night.spark_cluster.canary() for _ in range(night.gate.canary)]
    except ClusterError as error:
        say(f"{group}: no canary {moment}: {error}")
        return
    path = _path(night, group, moment)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(found))


def canary_records(night: Night, group: str) -> list[CanaryRecord]:
    """Return the canary's readings around a group, for the results database."""
    from nexmark.store import CanaryRecord

    records = []
    for moment in (BEFORE, AFTER):
        path = _path(night, group, moment)
        if not path.exists():
            continue
        taken = datetime.fromtimestamp(path.stat().st_mtime, UTC)
        records += [
            CanaryRecord(metric, value, moment, taken, host, group)
            for reading in json.loads(path.read_text())
            for host, metrics in reading.items()
            for metric, value in metrics.items()
        ]
    return records


def _path(night: Night, group: str, moment: Moment) -> Path:
    return night.query_dir(group) / f"canary-{moment}.json"
