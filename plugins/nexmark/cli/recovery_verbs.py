"""The verb that kills a query and restarts it from its checkpoint."""

import json
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from nexmark.cli import shared_options as option
from nexmark.config import paths
from nexmark_jobs.host.processes import OWNER_VARIABLE, owner_mark
from nexmark_jobs.host.processes import main as processes

if TYPE_CHECKING:
    from nexmark.recovery.remote_storage import Fault, RemoteStorage

_LATENCY_MS, _MB_PER_S = 20, 20
_GRACE_S = 5.0
_BATCHES = 10

Tps = Annotated[int, option.number(1, 10**7, "T", "Events per second of event time.")]
Latency = Annotated[
    int | None,
    option.number(0, 60_000, "MS", f"The latency of remote storage (default: {_LATENCY_MS})."),
]
Bandwidth = Annotated[
    int | None,
    option.number(1, 100_000, "MB", f"The bandwidth of remote storage (default: {_MB_PER_S})."),
]


def recovery(
    query: Annotated[str, option.query("The query, q0 to q23.")],
    out: Annotated[Path, typer.Option(metavar="DIR", help="A new directory for the result.")],
    kills: Annotated[int, option.number(0, 100, "K", "How often it is killed.")] = 3,
    events: Annotated[int, option.number(1, 10**10, help="How many events are read.")] = 100_000,
    tps: Tps = 1_000,
    seed: option.Seed = 1,
    rows_per_batch: Annotated[
        int | None,
        option.number(1, 10**9, "B", "Rows of a micro-batch (default: a tenth of the events)."),
    ] = None,
    state: Annotated[Literal["rocksdb", "hdfs"], typer.Option(help="The state store.")] = "rocksdb",
    changelog: Annotated[
        bool, typer.Option("--changelog", help="Let RocksDB upload changes, not snapshots.")
    ] = False,
    kill: Annotated[
        Literal["driver", "executor", "worker", "both"],
        typer.Option(
            help="What SIGKILL hits: the driver, one of two executors, a worker with its executor, "
            "or the driver and both executors."
        ),
    ] = "driver",
    checkpoint: Annotated[
        Literal["local", "remote", "hdfs"],
        typer.Option(
            help="Its storage: the disk, a stand-in for remote storage, or an HDFS of this command."
        ),
    ] = "local",
    latency_ms: Latency = None,
    mb_per_s: Bandwidth = None,
    remote_fault: Annotated[
        str | None,
        option.text(
            "A fault from the first commit on: outage:SECONDS, slow:FACTOR or errors:PERCENT.",
            metavar="KIND:SIZE",
        ),
    ] = None,
    pace: Annotated[int, option.number(0, 3600, "S", "Seconds from one batch to the next.")] = 0,
    conf: option.Conf = None,
    bootstrap_servers: Annotated[
        str | None,
        option.text(
            "Brokers of Kafka: rows go to a new topic there, by Spark's own sink.", metavar="LIST"
        ),
    ] = None,
    engine: option.Engine = None,
) -> int:
    """Kill a query, restart it, and compare its result.

    The kills come at random moments; each restart goes on from the checkpoint. The final table is
    then in DIR/result, the checkpoint in DIR/checkpoint (not one in HDFS), and what each kill and
    commit cost is printed as JSON. 0 if the final table equals the reference, 1 if not.
    """
    from nexmark.recovery.recovery_run import RecoveryOptions, recover

    option.comparable_query(query)
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise typer.BadParameter(f"--out: {out} is not an empty directory; name a new one")
    if changelog and state != "rocksdb":
        raise typer.BadParameter("--changelog: only RocksDB has it; leave out --state hdfs")
    if pace and bootstrap_servers:
        raise typer.BadParameter("--pace: only rows in parquet wait; leave one of the two out")
    remote = _remote(checkpoint, latency_ms, mb_per_s, remote_fault, seed)
    rows = rows_per_batch or max(1, events // _BATCHES)
    options = RecoveryOptions(
        query,
        kills,
        events,
        tps,
        seed,
        rows,
        state,
        changelog,
        kill,
        remote,
        hdfs=checkpoint == "hdfs",
        pace_s=pace,
        conf=option.confs_of(conf),
        servers=bootstrap_servers,
    )
    name, build = option.build_of(engine, option.on_stderr)
    with marked_processes(f"recovery {out.absolute()}") as mark:
        outcome = recover(build, options, out.absolute(), mark, option.on_stderr)
    print(json.dumps({"engine": name, **outcome}, indent=1))
    if not outcome["right"]:
        print(f"recovery: {query}: {'; '.join(outcome['failures'])}"[:500], file=sys.stderr)
    return 0 if outcome["right"] else 1


def _remote(
    checkpoint: str, latency_ms: int | None, mb_per_s: int | None, fault: str | None, seed: int
) -> "RemoteStorage | None":
    """Return the storage that the options name; None for the local disk and for an HDFS.

    Args:
        checkpoint: The value of --checkpoint.
        latency_ms: The value of --latency-ms.
        mb_per_s: The value of --mb-per-s.
        fault: The value of --remote-fault.
        seed: The seed of latencies and errors.

    Raises:
        typer.BadParameter: The fault cannot be read, or the checkpoint is not in remote storage.
    """
    from nexmark.recovery.remote_storage import Fault

    if checkpoint != "remote":
        given = {"--latency-ms": latency_ms, "--mb-per-s": mb_per_s, "--remote-fault": fault}
        for flag, value in given.items():
            if value is not None:
                raise typer.BadParameter(f"{flag}: is of remote storage; add --checkpoint remote")
        return None
    try:
        parsed = Fault.parse(fault) if fault else None
    except ValueError as error:
        raise typer.BadParameter(f"--remote-fault: {error}") from None
    return remote_storage(latency_ms, mb_per_s, seed, parsed)


def remote_storage(
    latency_ms: int | None, mb_per_s: int | None, seed: int, fault: "Fault | None" = None
) -> "RemoteStorage":
    """Return the stand-in for remote storage.

    Args:
        latency_ms: The latency of a request in milliseconds; None for the default.
        mb_per_s: The bandwidth in MB/s; None for the default.
        seed: The seed of latencies and errors.
        fault: A fault of the storage; None for none.
    """
    from nexmark.recovery.remote_storage import RemoteStorage

    latency = _LATENCY_MS if latency_ms is None else latency_ms
    return RemoteStorage(latency, mb_per_s or _MB_PER_S, seed, fault)


@contextmanager
def marked_processes(what: str) -> Iterator[Mapping[str, str]]:
    """Yield the environment variable that marks a command's processes; end them with the context.

    `what` names the command in the value of the variable.
    """
    mark = owner_mark(paths.home(), what)
    try:
        yield {OWNER_VARIABLE: mark}
    finally:
        processes({"do": "end", "mark": mark, "grace_s": _GRACE_S})
