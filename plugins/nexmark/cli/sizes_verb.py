"""The verb that measures restores against the size of the state."""

from __future__ import annotations

import json
import re
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from nexmark.cli.recovery_options import (
    LATENCY_MS,
    MB_PER_S,
    Bandwidth,
    Conf,
    Latency,
    check_query,
    marked_processes,
    resolved,
    tell,
)
from nexmark.cli.shared_options import Engine, confs_of, given, whole

_UNITS = {"MB": 1, "GB": 1024}
_TASKS = 2


def recovery_sizes(
    query: Annotated[str, typer.Option(callback=given, help="One that keeps all rows.")] = "q20",
    grow_to: Annotated[
        str, typer.Option(callback=given, metavar="SIZES", help="Of the state, e.g. 64MB,1GB.")
    ] = "64MB,256MB",
    repetitions: Annotated[int, typer.Option(parser=whole(1, 100), metavar="N")] = 5,
    tps: Annotated[int, typer.Option(parser=whole(1, 10**7), metavar="T")] = 1_000,
    seed: Annotated[int, typer.Option(parser=whole(0, 2**31 - 1), metavar="S")] = 1,
    rows_per_batch: Annotated[int, typer.Option(parser=whole(1, 10**9), metavar="B")] = 100_000,
    latency_ms: Latency = None,
    mb_per_s: Bandwidth = None,
    conf: Conf = None,
    engine: Engine = None,
    out: Annotated[Path | None, typer.Option(help="A new file for all restarts, JSON.")] = None,
) -> int:
    """Grow the state of a query, restart it at each size, and print what a restart costs.

    RocksDB with snapshots and with changelogs, with the checkpoint on the local disk and on the
    stand-in for remote storage. The second table has seconds per MB of a task, and what they
    predict for a state of 57 GB in 8 tasks, beside Oceanus' figures for Flink.
    """
    from nexmark.recovery.remote_storage import RemoteStorage
    from nexmark.recovery.restore_sizes import Growth, restarts
    from nexmark.recovery.size_fit import cells, predictions
    from nexmark.terminal import columns
    from nexmark_jobs.host.leases import write_whole

    check_query(query)
    sizes = _sizes(grow_to)
    if out is not None and (out.exists() or not out.parent.is_dir()):
        raise typer.BadParameter(f"--out: {out} is there, or its directory is not; name a new file")
    name, build = resolved(engine)
    latency = LATENCY_MS if latency_ms is None else latency_ms
    remote = RemoteStorage(latency, mb_per_s or MB_PER_S, seed)
    growth = Growth(query, tps, seed, rows_per_batch, repetitions, remote, confs_of(conf))
    with marked_processes(f"recovery-sizes {query}") as mark:
        found = list(restarts(build, growth, sizes, mark, tell))
    costs = ("restore s", "interruption s", "commit s")
    print(columns(("state", "checkpoint", "MB", *costs), cells(found)))
    fits = ("restore s/MB", "restore s", "interruption s/MB", "interruption s")
    print("\nby task, and at 57 GB in 8 tasks:")
    print(columns(("state", "checkpoint", *fits), predictions(found, _TASKS)))
    if out is not None:
        told = {"engine": name, "query": query, "restarts": [asdict(each) for each in found]}
        write_whole(out, json.dumps(told, indent=1))
    return 0


def _sizes(text: str) -> list[int]:
    """Sizes like 64MB,1GB in MB, in ascending order."""
    found = []
    for part in text.split(","):
        matched = re.fullmatch(r"([1-9][0-9]{0,5})(MB|GB)", part.strip())
        if matched is None:
            raise typer.BadParameter(f"--grow-to: {part!r} is no size; write 64MB,256MB or 1GB")
        found.append(int(matched[1]) * _UNITS[matched[2]])
    return sorted(set(found))
