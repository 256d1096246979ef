"""Run a query with kills: return the cost of each kill, and whether its rows are right."""

from __future__ import annotations

import json
import tempfile
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nexmark.engines import Build
from nexmark.engines.launcher import CLUSTER, Launcher, dump_events
from nexmark.engines.short_runs import C1, untimed_options
from nexmark.expectations.contract import contract
from nexmark.expectations.suites import validate
from nexmark.model import Say
from nexmark.recovery.checkpoint_files import CheckpointDirectory, commits, size
from nexmark.recovery.daemons import standalone
from nexmark.recovery.kill_plan import Kill, kill_plan
from nexmark.recovery.mini_hdfs import CONFS, mini_hdfs
from nexmark.recovery.remote_storage import RemoteStorage
from nexmark.recovery.splits import commit_splits, kill_split, regular_gap
from nexmark.recovery.supervisor import Story, Supervisor, What
from nexmark_jobs.queries import QUERIES

if TYPE_CHECKING:
    from nexmark.kafka.topics import KafkaCluster

_STORES = "org.apache.spark.sql.execution.streaming.state"
_PROVIDERS = {
    "hdfs": f"{_STORES}.HDFSBackedStateStoreProvider",
    "rocksdb": f"{_STORES}.RocksDBStateStoreProvider",
}
_FAULT_FILE = "fault"
_PARTITIONS = 2


@dataclass(frozen=True)
class RecoveryOptions:
    """The run of a query that is killed.

    Attributes:
        query: The query.
        kills: The number of kills.
        events, tps, seed, rows_per_batch: The generated input; the seed draws the kills, too.
        state: The state store, hdfs or rocksdb.
        changelog: Whether RocksDB uploads changelogs in place of snapshots.
        kill: The processes that a kill hits.
        remote: The storage of the checkpoint; None is the local disk.
        hdfs: Whether the checkpoint is in an HDFS that starts and ends with this run.
        pace_s: Seconds from the start of one batch to the start of the next; 0 starts each batch
            when the one before it has ended.
        conf: More Spark confs.
        servers: The addresses of Kafka's brokers, if the rows go to a topic; None if they go to
            Parquet files.
        untimed: Whether nobody reads the run's times, so that its JVMs may start quicker.
    """

    query: str
    kills: int
    events: int
    tps: int
    seed: int
    rows_per_batch: int
    state: str
    changelog: bool
    kill: What = "driver"
    remote: RemoteStorage | None = None
    hdfs: bool = False
    pace_s: float = 0.0
    conf: Mapping[str, str] = field(default_factory=dict)
    servers: str | None = None
    untimed: bool = False

    @property
    def input(self) -> list[str]:
        """Return the arguments of the generator."""
        return ["--events", str(self.events), "--tps", str(self.tps), "--seed", str(self.seed)]

    @property
    def confs(self) -> dict[str, str]:
        """Return the Spark confs of the state store and of `conf`, which has the last word."""
        return state_confs(self.state, changelog=self.changelog) | dict(self.conf)


def state_confs(state: str, *, changelog: bool) -> dict[str, str]:
    """Return the Spark confs of a state store, and of as few partitions as there are cores."""
    name = "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled"
    return {
        "spark.sql.shuffle.partitions": str(_PARTITIONS),
        "spark.sql.streaming.stateStore.providerClass": _PROVIDERS[state],
        **({name: "true"} if changelog else {}),
    }


def recover(
    build: Build,
    options: RecoveryOptions,
    out: Path,
    mark: Mapping[str, str],
    say: Say,
    plan: Sequence[Kill] | None = None,
    events: Path | None = None,
) -> dict[str, Any]:
    """Run the query with its kills; its final table is then in `out`/result.

    Args:
        build: The Spark build that runs the query.
        options: The query, its input, and what is killed.
        out: The directory of the result.
        mark: The environment variable that marks the processes of the run.
        say: Called with each line of progress.
        plan: The kills; None draws them from the seed.
        events: The input as Parquet, for the reference; None writes it for this run.

    Returns:
        The cost of each kill and commit, and whether the table equals the reference.

    Raises:
        NexmarkError: The query failed by itself.
    """
    table = out / "result"
    if options.servers:
        from nexmark.kafka.jars import connector

        connector(build.version, say)  # refuses a build without a connector before anything starts
    out.mkdir(parents=True, exist_ok=True)
    repeated = None
    with ExitStack() as stack:
        temporary = tempfile.TemporaryDirectory(
            prefix="nexmark-recovery-", ignore_cleanup_errors=True
        )
        work = Path(stack.enter_context(temporary))
        sink = ["--sink", f"parquet:{table}"]
        if options.servers:
            kafka, topic = stack.enter_context(row_topic(options.servers))
            sink = ["--sink", f"kafka:{topic}", "--bootstrap-servers", options.servers]
        arguments = ["--query", options.query, *options.input, *sink]
        arguments += ["--rows-per-batch", str(options.rows_per_batch)]
        if options.pace_s:
            arguments += ["--pace", str(options.pace_s)]
        batches = -(-options.events // options.rows_per_batch)
        checkpoint: CheckpointDirectory = out / "checkpoint"
        if options.hdfs:
            checkpoint = stack.enter_context(mini_hdfs(work, mark, say)) / "checkpoint"
        with _launching(build, options, work, mark, say) as launcher:
            supervisor = Supervisor(
                launcher,
                arguments,
                checkpoint,
                _url(options, checkpoint),
                table,
                options.kill,
                work / _FAULT_FILE if options.remote and options.remote.fault else None,
                say,
            )
            drawn = kill_plan(options.kills, batches, options.seed) if plan is None else plan
            story = supervisor.run(drawn, options.seed)
        if options.servers:
            values = (record.value() or b"{}" for record in kafka.records(topic))
            repeated = table_of(values, options.query, table)
        say("comparing the final table with the reference")
        if events is None:
            events = work / "events"
            dump_events(Launcher(build, {}, work, mark), options.input, events, "parquet")
        outcome = validate(options.query, table, events)
        splits = splits_of(story, commits(checkpoint / "checkpoint"), options.pace_s)
        splits |= {"ended_by_itself": story.ends, "checkpoint_bytes": size(checkpoint)}
    return {
        "query": options.query,
        "spark_version": build.version,
        "state": options.state,
        "changelog": options.changelog,
        "kill": options.kill,
        "checkpoint": {"kind": "hdfs"} if options.hdfs else _as_json(options.remote),
        **splits,
        "right": outcome.success,
        "failures": list(outcome.failures),
        "rows": outcome.statistics["rows"],
        "repeated_rows": repeated,
    }


@contextmanager
def _launching(
    build: Build,
    options: RecoveryOptions,
    work: Path,
    mark: Mapping[str, str],
    say: Say,
) -> Iterator[Launcher]:
    """Yield the launcher of the query's processes, on the kind of cluster that the kills need.

    Args:
        build: The Spark build that runs the query.
        options: The query, its input, and what is killed.
        work: The directory of the run's files.
        mark: The environment variable that marks the processes.
        say: Called with each line of progress.
    """
    remote = options.remote.confs(build, work / _FAULT_FILE) if options.remote else {}
    confs = options.confs | remote | (CONFS if options.hdfs else {})
    if options.servers:
        from nexmark.kafka.jars import connector

        confs["spark.jars"] = ",".join(map(str, connector(build.version, say)))
    quick = untimed_options(build.spark_home, build.version) if options.untimed else C1
    launcher = Launcher(build, confs, work, mark, java_options=quick)
    if options.kill == "worker":
        with standalone(build, work, mark) as (master, local):
            yield replace(launcher, master=master, local=local)
    else:
        yield launcher if options.kill == "driver" else replace(launcher, master=CLUSTER)


def _url(options: RecoveryOptions, checkpoint: CheckpointDirectory) -> str:
    """Return the URL or path of the checkpoint, as Spark takes it."""
    if not isinstance(checkpoint, Path):
        return checkpoint.url
    return options.remote.url(checkpoint) if options.remote else str(checkpoint)


def _as_json(remote: RemoteStorage | None) -> dict[str, Any]:
    """Return the storage of the checkpoint for the output of the command; None is the disk."""
    if remote is None:
        return {"kind": "local"}
    fault = str(remote.fault) if remote.fault else None
    return {"kind": "remote", **asdict(remote), "fault": fault}


def splits_of(story: Story, committed: Mapping[int, float], pace_s: float = 0.0) -> dict[str, Any]:
    """Return the cost of a query's kills and commits.

    `committed` is the moment of each batch's commit, in seconds since 1970. `pace_s` is the time
    from one batch to the next, in seconds; 0 if batches were not paced.
    """
    start = story.attempts[0].started
    ends = [*(kill.at for kill in story.killed[1:]), float("inf")]
    kills = []
    for number, (kill, until) in enumerate(zip(story.killed, ends, strict=False), start=1):
        has_started = kill.attempt < len(story.attempts)
        batches = story.attempts[kill.attempt].progress if has_started else []
        if has_started and kill.restarted is not None:
            kill = replace(kill, restarted=story.attempts[kill.attempt].started)
        kills.append(kill_split(number, kill, start, committed, batches, until, pace_s))
    return {
        "kills": kills,
        "regular_gap_s": regular_gap(committed, [kill.at for kill in story.killed]),
        "commit": [line for each in story.attempts for line in commit_splits(each.progress)],
    }


@contextmanager
def row_topic(servers: str) -> Iterator[tuple[KafkaCluster, str]]:
    """Create a topic for output rows; yield Kafka's cluster and the name of the topic.

    The topic has one partition, so that the rows keep their order. It is deleted at the end of the
    context.
    """
    from nexmark.kafka.topics import KafkaCluster

    kafka, topic = KafkaCluster(servers), f"nexmark-recovery-{uuid.uuid4().hex[:10]}"
    kafka.create(topic, 1)
    try:
        yield kafka, topic
    finally:
        kafka.delete(topic)


def table_of(values: Iterable[str | bytes], query: str, target: Path) -> int:
    """Write the final table of a query to `target`, a new directory.

    `values` are the query's output rows as JSON, in their order. A later row replaces an earlier
    one with the same key. For a query without a key, equal rows are written once.

    Returns:
        The number of rows that are equal to an earlier row in all columns.
    """
    import duckdb

    target.mkdir()
    lines, columns, key = target / "rows.jsonl", contract(query).columns, QUERIES[query].key
    with lines.open("w") as file:
        for number, value in enumerate(values):
            print(json.dumps({"n": number, "row": json.loads(value)}), file=file)
    row = ", ".join(f"{column.name} VARCHAR" for column in columns)
    casts = ", ".join(
        f'CAST("row".{column.name} AS {column.type}) {column.name}' for column in columns
    )
    names = ", ".join(column.name for column in columns)
    of_key = f"PARTITION BY {', '.join(key)} ORDER BY n DESC" if key else f"PARTITION BY {names}"
    with duckdb.connect() as database:
        database.execute(
            f"CREATE TABLE output AS SELECT n, {casts} FROM read_json(?, columns = "
            f"{{n: 'BIGINT', row: 'STRUCT({row})'}}, format = 'newline_delimited')",
            [str(lines)],
        )
        database.execute(
            f"COPY (SELECT {names} FROM output QUALIFY row_number() OVER ({of_key}) = 1) "
            f"TO '{target / 'part-0.parquet'}'"
        )
        count_repeated = f"SELECT count(*) - count(DISTINCT ({names})) FROM output"
        (repeated,) = database.execute(count_repeated).fetchone() or (0,)
    lines.unlink()
    return int(repeated)
