"""The verb that kills a query and looks at how it recovers."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from nexmark.cli.recovery_options import (
    LATENCY_MS,
    MB_PER_S,
    Bandwidth,
    Conf,
    Latency,
    check_out,
    check_query,
    marked_processes,
    resolved,
    tell,
)
from nexmark.cli.shared_options import Engine, confs_of, given, whole

if TYPE_CHECKING:
    from nexmark.recovery.remote_storage import RemoteStorage

_BATCHES = 10


def recovery(
    query: Annotated[str, typer.Option(callback=given, help="q0 to q23.")],
    out: Annotated[Path, typer.Option(metavar="DIR", help="A new directory.")],
    kills: Annotated[int, typer.Option(parser=whole(0, 100), metavar="K")] = 3,
    events: Annotated[int, typer.Option(parser=whole(1, 10**10), metavar="N")] = 100_000,
    tps: Annotated[int, typer.Option(parser=whole(1, 10**7), metavar="T")] = 1_000,
    seed: Annotated[int, typer.Option(parser=whole(0, 2**31 - 1), metavar="S")] = 1,
    rows_per_batch: Annotated[
        int | None,
        typer.Option(parser=whole(1, 10**9), metavar="B", help="Default: a tenth of the events."),
    ] = None,
    state: Annotated[Literal["rocksdb", "hdfs"], typer.Option(help="The state store.")] = "rocksdb",
    changelog: Annotated[
        bool, typer.Option("--changelog", help="RocksDB uploads changes, not snapshots.")
    ] = False,
    kill: Annotated[
        Literal["driver", "executor", "both"],
        typer.Option(help="SIGKILL to the driver, to one of two executors, or to all three."),
    ] = "driver",
    checkpoint: Annotated[
        Literal["local", "remote"], typer.Option(help="The disk, or a stand-in for remote storage.")
    ] = "local",
    latency_ms: Latency = None,
    mb_per_s: Bandwidth = None,
    remote_fault: Annotated[
        str | None,
        typer.Option(
            callback=given,
            metavar="KIND:SIZE",
            help="outage:SECONDS, slow:FACTOR or errors:PERCENT, from the first commit on.",
        ),
    ] = None,
    pace: Annotated[
        int,
        typer.Option(parser=whole(0, 3600), metavar="S", help="A batch is due every S seconds."),
    ] = 0,
    conf: Conf = None,
    engine: Engine = None,
) -> int:
    """Kill a query at random moments, restart it from its checkpoint, and compare its result.

    The final table is then in DIR/result, the checkpoint in DIR/checkpoint, and what each kill and
    commit cost is printed as JSON. 0 if the final table equals the reference, 1 if not.
    """
    from nexmark.recovery.recovery_run import RecoveryOptions, recover

    check_query(query)
    check_out(out)
    if changelog and state != "rocksdb":
        raise typer.BadParameter("--changelog: only RocksDB has it; leave out --state hdfs")
    remote = _remote(checkpoint, latency_ms, mb_per_s, remote_fault, seed)
    rows = rows_per_batch or max(1, events // _BATCHES)
    options = RecoveryOptions(
        *(query, kills, events, tps, seed, rows, state, changelog, kill, remote),
        pace_s=pace,
        conf=confs_of(conf),
    )
    name, build = resolved(engine)
    with marked_processes(f"recovery {out.absolute()}") as mark:
        told = recover(build, options, out.absolute(), mark, tell)
    print(json.dumps({"engine": name, **told}, indent=1))
    if not told["right"]:
        print(f"recovery: {query}: {'; '.join(told['failures'])}"[:500], file=sys.stderr)
    return 0 if told["right"] else 1


def _remote(
    checkpoint: str, latency_ms: int | None, mb_per_s: int | None, fault: str | None, seed: int
) -> RemoteStorage | None:
    from nexmark.recovery.remote_storage import Fault, RemoteStorage

    if checkpoint == "local":
        given = {"--latency-ms": latency_ms, "--mb-per-s": mb_per_s, "--remote-fault": fault}
        for option, value in given.items():
            if value is not None:
                raise typer.BadParameter(f"{option}: is of remote storage; add --checkpoint remote")
        return None
    try:
        parsed = Fault.parse(fault) if fault else None
    except ValueError as error:
        raise typer.BadParameter(f"--remote-fault: {error}") from None
    return RemoteStorage(
        LATENCY_MS if latency_ms is None else latency_ms, mb_per_s or MB_PER_S, seed, parsed
    )
