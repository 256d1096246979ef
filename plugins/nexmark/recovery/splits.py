"""Compute the cost of kills and commits from Spark's progress and the files of the checkpoint.

A figure that an engine does not report is None, never 0. Spark reports metrics of restores since
4.1, and the number of stores that were loaded from the checkpoint since 4.2; it reports neither
for aggregations.
"""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from nexmark.recovery.checkpoint_files import Moment, gaps
from nexmark_jobs.state_metrics import LOAD_MS, LOADED, REPLAY_MS, state_metric

_MS = 1000
#: The parts of a commit, and Spark's metrics of each in milliseconds: the first one that a batch
#: reports counts.
_PARTS = {
    "write_s": ("rocksdbCommitWriteBatchLatency", "rocksdbChangeLogWriterCommitLatencyMs"),
    "flush_s": ("rocksdbCommitFlushLatency",),
    "compact_s": ("rocksdbCommitCompactLatency",),
    "snapshot_s": ("rocksdbCommitCheckpointLatency",),
    "file_sync_s": ("rocksdbCommitFileSyncLatencyMs",),
    "zip_s": ("rocksdbSaveZipFilesLatencyMs",),
}
_COUNTS = {
    "uploaded_bytes": "rocksdbBytesCopied",
    "files_copied": "rocksdbFilesCopied",
    "files_reused": "rocksdbFilesReused",
}


@dataclass(frozen=True)
class KillRecord:
    """A kill that happened; times are in seconds since 1970.

    Attributes:
        at: When the process was killed.
        restarted: When its successor was started; None if the driver went on.
        batch, moment: What the query was doing; see `checkpoint_files.moment`.
        what: driver, executor, worker or both.
        attempt: The number, from 0, of the process that goes on with the query after the kill.
        left_behind_bytes: The size of the local state stores on disk when it was killed.
    """

    at: float
    restarted: float | None
    batch: int
    moment: Moment
    what: str = "driver"
    attempt: int = 1
    left_behind_bytes: int = 0


def kill_split(
    number: int,
    kill: KillRecord,
    start: float,
    commits: Mapping[int, float],
    progress: Sequence[Mapping[str, Any]],
    until: float,
    pace_s: float = 0.0,
) -> dict[str, Any]:
    """Return the parts of the cost of a kill by their names; times are in seconds.

    Args:
        number: The number of the kill, from 1.
        kill: The kill.
        start: When the first process was started.
        commits: When each batch was committed, by its number.
        progress: Spark's progress of the process that goes on.
        until: When the next kill comes; infinite after the last one.
        pace_s: Seconds from one batch to the next, if they were paced; else 0.
    """
    after = [at for at in commits.values() if kill.at < at <= until]
    before = [at for at in commits.values() if at <= kill.at]
    regular = regular_gap(commits, [kill.at])
    interruption_s = None
    if after and before:
        interruption_s = round(max(0.0, min(after) - max(before) - (regular or 0.0)), 3)
    split: dict[str, Any] = {
        "number": number,
        "what": kill.what,
        "at_s": round(kill.at - start, 3),
        "batch": kill.batch,
        "moment": kill.moment,
        "interruption_s": interruption_s,
        "catch_up_s": catch_up(kill.at, commits, pace_s) if pace_s else None,
        "session_start_s": None,
        "planning_s": None,
        "load_s": None,
        "replay_s": None,
        "first_commit_s": None,
        "stores_loaded_from_checkpoint": None,
        "left_behind_bytes": kill.left_behind_bytes,
    }
    first = next((batch for batch in progress if batch["batchId"] >= kill.batch), None)
    if first is None:
        return split
    began = datetime.fromisoformat(first["timestamp"]).timestamp()
    durations = first["durationMs"]
    replay = _sum(first, REPLAY_MS)
    return split | {
        "session_start_s": None if kill.restarted is None else round(began - kill.restarted, 3),
        "planning_s": durations.get("queryPlanning", 0) / _MS,
        "load_s": restore_s(first),
        "replay_s": None if replay is None else replay / _MS,
        "first_commit_s": round(min(after) - began, 3) if after else None,
        "stores_loaded_from_checkpoint": _sum(first, LOADED),
    }


def commit_splits(progress: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return a line per batch and stateful operator: the parts of its commit, and its state."""
    return [
        {
            "batch": batch["batchId"],
            "operator": operator["operatorName"],
            "commit_s": operator.get("commitTimeMs", 0) / _MS,
            **{name: _part(operator, metrics) for name, metrics in _PARTS.items()},
            **{name: state_metric(operator, metric) for name, metric in _COUNTS.items()},
            "state_rows": operator["numRowsTotal"],
            "state_bytes": operator["memoryUsedBytes"],
            "stores": _stores(operator),
            "stores_loaded": state_metric(operator, LOADED),
        }
        for batch in progress
        for operator in batch.get("stateOperators", [])
    ]


def restore_s(batch: Mapping[str, Any]) -> float | None:
    """Return the seconds in which stores loaded state in a batch, summed over the stores.

    None if no store reports them.
    """
    load = _sum(batch, LOAD_MS)
    return None if load is None else load / _MS


def sst_bytes(batch: Mapping[str, Any]) -> int:
    """Return the bytes of RocksDB's SST files after a batch.

    For a join, these are only the files of the stores that hold its rows.
    """
    return _sum(batch, "rocksdbSstFileSize") or 0


def state_rows(batch: Mapping[str, Any]) -> int:
    """Return the number of rows in the state after a batch."""
    return sum(operator["numRowsTotal"] for operator in batch.get("stateOperators", []))


def regular_gap(commits: Mapping[int, float], kills: Sequence[float]) -> float | None:
    """Return the median seconds from one commit to the next, without the gaps that have a kill.

    `commits` has the moment of each batch's commit, `kills` the moments of the kills, all in
    seconds since 1970. None if no gap is without a kill.
    """
    undisturbed = [
        gap
        for batch, gap in gaps(commits).items()
        if not any(commits[batch] - gap < kill <= commits[batch] for kill in kills)
    ]
    return round(statistics.median(undisturbed), 3) if undisturbed else None


def catch_up(kill: float, commits: Mapping[int, float], pace_s: float) -> float | None:
    """Return the seconds from a kill until the query is as punctual as before; None if it never is.

    It is as punctual again with the first batch whose delay exceeds the median delay before the
    kill by less than half of `pace_s`, the seconds from one batch to the next.
    """
    late = {batch: at - batch * pace_s for batch, at in commits.items()}
    before = [late[batch] for batch, at in commits.items() if at <= kill]
    if not before:
        return None
    bound = statistics.median(before) + pace_s / 2
    ends = [at for batch, at in commits.items() if at > kill and late[batch] < bound]
    return round(min(ends) - kill, 3) if ends else None


def _stores(operator: Mapping[str, Any]) -> int | None:
    """Return the number of stores that the metrics cover; None if the engine does not report it.

    If a join has several stores in a partition, the metrics cover half of them.
    """
    stores = operator.get("numStateStoreInstances")
    partitions = operator.get("numShufflePartitions")
    if stores is None or partitions is None:
        return None
    several = operator["operatorName"] == "symmetricHashJoin" and stores > partitions
    return int(stores) // (2 if several else 1)


def _part(operator: Mapping[str, Any], metrics: Sequence[str]) -> float | None:
    """Return the first of some metrics that is reported, in seconds; None if none is."""
    values = (state_metric(operator, name) for name in metrics)
    return next((value / _MS for value in values if value is not None), None)


def _sum(batch: Mapping[str, Any], name: str) -> int | None:
    """Return a metric summed over the stateful operators; None if no operator reports it."""
    values = [state_metric(operator, name) for operator in batch.get("stateOperators", [])]
    reported = [value for value in values if value is not None]
    return sum(reported) if reported else None
