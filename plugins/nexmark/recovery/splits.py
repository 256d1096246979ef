"""Compute the cost of kills and commits from Spark's progress and the files of the checkpoint.

None stands for a figure that an engine does not report, never 0: metrics of restores exist since
Spark 4.1, the number of stores loaded from the checkpoint since 4.2, and neither exists for
aggregations.
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
        restarted: When its successor was started; None if only an executor was killed.
        batch, moment: What the query was doing; see `checkpoint_files.moment`.
        what: driver, executor, worker or both.
        attempt: The number of the process that goes on.
        left_behind_bytes: What the local state stores had on disk when it was killed.
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
    """Return the cost of a kill, by the names of its parts; times are in seconds.

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
    away = None
    if after and before:
        away = round(max(0.0, min(after) - max(before) - (regular or 0.0)), 3)
    split: dict[str, Any] = {
        "number": number,
        "what": kill.what,
        "at_s": round(kill.at - start, 3),
        "batch": kill.batch,
        "moment": kill.moment,
        "interruption_s": away,
        "catch_up_s": catch_up(kill.at, commits, pace_s) if pace_s else None,
        **dict.fromkeys(("session_start_s", "planning_s", "load_s", "replay_s"), None),
        **dict.fromkeys(("first_commit_s", "stores_loaded_from_checkpoint"), None),
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
    """Return the parts of the commit of every batch and stateful operator."""
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
    """Return the seconds that state stores loaded in a batch, summed; None if none is reported."""
    load = _sum(batch, LOAD_MS)
    return None if load is None else load / _MS


def sst_bytes(batch: Mapping[str, Any]) -> int:
    """Return the bytes of the SSTs after a batch; of a join, only of the stores with the rows."""
    return _sum(batch, "rocksdbSstFileSize") or 0


def state_rows(batch: Mapping[str, Any]) -> int:
    """Return the number of rows in the state after a batch."""
    return sum(operator["numRowsTotal"] for operator in batch.get("stateOperators", []))


def regular_gap(commits: Mapping[int, float], kills: Sequence[float]) -> float | None:
    """Return the median seconds from one commit to the next, without the gaps that have a kill."""
    calm = [
        gap
        for batch, gap in gaps(commits).items()
        if not any(commits[batch] - gap < kill <= commits[batch] for kill in kills)
    ]
    return round(statistics.median(calm), 3) if calm else None


def catch_up(kill: float, commits: Mapping[int, float], pace_s: float) -> float | None:
    """Return the seconds from a kill until the query is as punctual as before; None if it never is.

    It is as punctual when a batch is late by at most half the pace more than batches usually were
    before the kill.
    """
    late = {batch: at - batch * pace_s for batch, at in commits.items()}
    before = [late[batch] for batch, at in commits.items() if at <= kill]
    if not before:
        return None
    bound = statistics.median(before) + pace_s / 2
    ends = [at for batch, at in commits.items() if at > kill and late[batch] < bound]
    return round(min(ends) - kill, 3) if ends else None


def _stores(operator: Mapping[str, Any]) -> int | None:
    """Return the number of stores that the metrics are of; None if the engine does not report it.

    If a join has several stores in a partition, the metrics are of half of them.
    """
    stores, partitions = (
        operator.get("numStateStoreInstances"),
        operator.get("numShufflePartitions"),
    )
    if stores is None or partitions is None:
        return None
    several = operator["operatorName"] == "symmetricHashJoin" and stores > partitions
    return int(stores) // (2 if several else 1)


def _part(operator: Mapping[str, Any], metrics: Sequence[str]) -> float | None:
    values = (state_metric(operator, name) for name in metrics)
    return next((value / _MS for value in values if value is not None), None)


def _sum(batch: Mapping[str, Any], name: str) -> int | None:
    """Return a metric summed over the stateful operators; None if no operator reports it."""
    values = [state_metric(operator, name) for operator in batch.get("stateOperators", [])]
    known = [value for value in values if value is not None]
    return sum(known) if known else None
