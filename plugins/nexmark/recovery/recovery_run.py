"""A query with kills: from its arguments to what each kill cost, and the check of its result."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from nexmark.config import paths
from nexmark.engines import Build
from nexmark.expectations import validate
from nexmark.recovery.checkpoint_files import commits, size
from nexmark.recovery.kill_plan import kill_plan
from nexmark.recovery.splits import KillRecord, commit_splits, kill_split, regular_gap
from nexmark.recovery.supervisor import Attempt, RecoveryError, Supervisor

_STORES = "org.apache.spark.sql.execution.streaming.state"
_PROVIDERS = {
    "hdfs": f"{_STORES}.HDFSBackedStateStoreProvider",
    "rocksdb": f"{_STORES}.RocksDBStateStoreProvider",
}
_DUMP_S = 3600
_PARTITIONS = 2


@dataclass(frozen=True)
class RecoveryOptions:
    """What is run and killed.

    Attributes:
        query: its name.
        kills: how many.
        events, tps, seed, rows_per_batch: the generated input; the seed draws the kills, too.
        state: hdfs or rocksdb, the state store.
        changelog: whether RocksDB uploads changes, in place of snapshots.
    """

    query: str
    kills: int
    events: int
    tps: int
    seed: int
    rows_per_batch: int
    state: str
    changelog: bool

    @property
    def input(self) -> list[str]:
        """The arguments of the generator."""
        return ["--events", str(self.events), "--tps", str(self.tps), "--seed", str(self.seed)]

    @property
    def confs(self) -> dict[str, str]:
        """The Spark confs of the state."""
        changelog = "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled"
        return {
            "spark.sql.shuffle.partitions": str(_PARTITIONS),
            "spark.sql.streaming.stateStore.providerClass": _PROVIDERS[self.state],
            **({changelog: "true"} if self.changelog else {}),
        }


def recover(
    build: Build,
    options: RecoveryOptions,
    out: Path,
    mark: Mapping[str, str],
    say: Callable[[str], None],
) -> dict[str, Any]:
    """Run the query with its kills; its final table is then in `out`/result.

    Returns:
        The splits of each kill and commit, and whether the table equals the reference.

    Raises:
        RecoveryError: The query failed by itself.
    """
    table = out / "result"
    out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="nexmark-recovery-") as temporary:
        work = Path(temporary)
        arguments = [
            *("--query", options.query, *options.input, "--sink", f"parquet:{table}"),
            *("--rows-per-batch", str(options.rows_per_batch)),
        ]
        supervisor = Supervisor(
            build, options.confs, arguments, out / "checkpoint", table, work, mark, say
        )
        batches = -(-options.events // options.rows_per_batch)
        plan = kill_plan(options.kills, batches, options.seed)
        attempts, killed = supervisor.run(plan, options.seed)
        say("comparing the final table with the reference")
        events = _events(build, options, work, supervisor)
        outcome = validate(options.query, table, events)
    told = _splits(attempts, killed, commits(out / "checkpoint" / "checkpoint"))
    return {
        "query": options.query,
        "spark_version": build.version,
        "state": options.state,
        "changelog": options.changelog,
        **told,
        "checkpoint_bytes": size(out / "checkpoint"),
        "right": outcome.success,
        "failures": list(outcome.failures),
        "rows": _rows(table),
    }


def _splits(
    attempts: list[Attempt], killed: list[KillRecord], committed: Mapping[int, float]
) -> dict[str, Any]:
    start = attempts[0].started
    ends = [*(kill.at for kill in killed[1:]), float("inf")]
    kills = []
    for number, (kill, until) in enumerate(zip(killed, ends, strict=False), start=1):
        after = attempts[number] if number < len(attempts) else None
        record = KillRecord(kill.at, after.started if after else kill.at, kill.batch, kill.moment)
        progress = after.progress if after else []
        kills.append(kill_split(number, record, start, committed, progress, until))
    return {
        "kills": kills,
        "regular_gap_s": regular_gap(committed, [kill.at for kill in killed]),
        "commit": [line for each in attempts for line in commit_splits(each.progress)],
    }


def _events(build: Build, options: RecoveryOptions, work: Path, supervisor: Supervisor) -> Path:
    """The events of the query, for the reference."""
    target = work / "events"
    script = str(paths.repository() / "nexmark_jobs" / "dump_events.py")
    scratch = work / "dump.tmp"
    scratch.mkdir()
    done = subprocess.run(
        [
            *(str(build.spark_home / "bin" / "spark-submit"), "--master", "local[2]", script),
            *(*options.input, "--out", str(target), "--format", "parquet"),
        ],
        env=supervisor.environment(scratch),
        capture_output=True,
        text=True,
        timeout=_DUMP_S,
    )
    shutil.rmtree(scratch, ignore_errors=True)
    if done.returncode != 0:
        raise RecoveryError(f"recovery: no events to compare with: {done.stderr.strip()[-300:]}")
    return target


def _rows(table: Path) -> int:
    import duckdb

    with duckdb.connect() as database:
        found = database.execute("SELECT count(*) FROM read_parquet(?)", [f"{table}/*.parquet"])
        return int((found.fetchone() or (0,))[0])
