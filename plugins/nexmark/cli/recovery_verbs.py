"""The verbs about recovery: queries are killed, checkpoints damaged, states restored by size."""

import json
import re
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from nexmark.cli import shared_options as option
from nexmark.config import paths
from nexmark.errors import suggest
from nexmark.terminal import columns
from nexmark_jobs.host.processes import OWNER_VARIABLE, owner_mark
from nexmark_jobs.host.processes import main as processes

if TYPE_CHECKING:
    from nexmark.recovery.remote_storage import Fault, RemoteStorage

_LATENCY_MS, _MB_PER_S = 20, 20
_GRACE_S = 5.0
_BATCHES = 10
_UNITS = {"MB": 1, "GB": 1024}
_TASKS = 2

Tps = Annotated[int, option.number(1, 10**7, "T")]
Latency = Annotated[
    int | None, option.number(0, 60_000, "MS", f"Of remote storage (default: {_LATENCY_MS}).")
]
Bandwidth = Annotated[
    int | None, option.number(1, 100_000, "MB", f"Of remote storage (default: {_MB_PER_S}).")
]


def recovery(
    query: Annotated[str, option.text("q0 to q23.")],
    out: Annotated[Path, typer.Option(metavar="DIR", help="A new directory.")],
    kills: Annotated[int, option.number(0, 100, "K")] = 3,
    events: Annotated[int, option.number(1, 10**10)] = 100_000,
    tps: Tps = 1_000,
    seed: option.Seed = 1,
    rows_per_batch: Annotated[
        int | None, option.number(1, 10**9, "B", "Default: a tenth of the events.")
    ] = None,
    state: Annotated[Literal["rocksdb", "hdfs"], typer.Option(help="The state store.")] = "rocksdb",
    changelog: Annotated[
        bool, typer.Option("--changelog", help="RocksDB uploads changes, not snapshots.")
    ] = False,
    kill: Annotated[
        Literal["driver", "executor", "worker", "both"],
        typer.Option(
            help="SIGKILL to the driver, to one of two executors, to a worker with its executor, "
            "or to the driver and both executors."
        ),
    ] = "driver",
    checkpoint: Annotated[
        Literal["local", "remote", "hdfs"],
        typer.Option(help="The disk, a stand-in for remote storage, or an HDFS of this command."),
    ] = "local",
    latency_ms: Latency = None,
    mb_per_s: Bandwidth = None,
    remote_fault: Annotated[
        str | None,
        option.text(
            "outage:SECONDS, slow:FACTOR or errors:PERCENT, from the first commit on.",
            metavar="KIND:SIZE",
        ),
    ] = None,
    pace: Annotated[int, option.number(0, 3600, "S", "A batch is due every S seconds.")] = 0,
    conf: option.Conf = None,
    bootstrap_servers: Annotated[
        str | None,
        option.text("Of Kafka: rows go to a new topic there, by Spark's own sink.", metavar="LIST"),
    ] = None,
    engine: option.Engine = None,
) -> int:
    """Kill a query at random moments, restart it from its checkpoint, and compare its result.

    The final table is then in DIR/result, the checkpoint in DIR/checkpoint (not one in HDFS), and
    what each kill and commit cost is printed as JSON. 0 if the final table equals the reference, 1
    if not.
    """
    from nexmark.recovery.recovery_run import RecoveryOptions, recover

    _check_query(query)
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise typer.BadParameter(f"--out: {out} is not an empty directory; name a new one")
    if changelog and state != "rocksdb":
        raise typer.BadParameter("--changelog: only RocksDB has it; leave out --state hdfs")
    if pace and bootstrap_servers:
        raise typer.BadParameter("--pace: only rows in parquet wait; leave one of the two out")
    remote = _remote(checkpoint, latency_ms, mb_per_s, remote_fault, seed)
    rows = rows_per_batch or max(1, events // _BATCHES)
    options = RecoveryOptions(
        *(query, kills, events, tps, seed, rows, state, changelog, kill, remote),
        hdfs=checkpoint == "hdfs",
        pace_s=pace,
        conf=option.confs_of(conf),
        servers=bootstrap_servers,
    )
    name, build = option.build_of(engine, option.on_stderr)
    with marked_processes(f"recovery {out.absolute()}") as mark:
        told = recover(build, options, out.absolute(), mark, option.on_stderr)
    print(json.dumps({"engine": name, **told}, indent=1))
    if not told["right"]:
        print(f"recovery: {query}: {'; '.join(told['failures'])}"[:500], file=sys.stderr)
    return 0 if told["right"] else 1


def recovery_damage(
    query: Annotated[str, option.text("One that keeps state.")] = "q20",
    damage: Annotated[
        list[str] | None,
        typer.Option(metavar="KIND", help="One kind of damage (default: all). Repeat for more."),
    ] = None,
    events: Annotated[int, option.number(200, 10**9)] = 4_000,
    tps: Tps = 100,
    seed: option.Seed = 1,
    engine: option.Engine = None,
    out: option.Out = None,
) -> int:
    """Damage checkpoints of a query, go on with them, and say what Spark did.

    It refuses, with the class of its error; it goes on and its result is right; or it answers
    wrongly. 1 if it answered wrongly anywhere.
    """
    from nexmark.compatibility.classes import Input
    from nexmark.compatibility.damage_run import PLACES, run_damaged
    from nexmark.recovery.damage import DAMAGES

    _check_query(query)
    kinds = damage or list(DAMAGES)
    for kind in kinds:
        if kind not in DAMAGES:
            raise typer.BadParameter(f"--damage: no kind {kind!r}; {suggest(kind, DAMAGES)}")
    name, build = option.build_of(engine, option.on_stderr)
    found = run_damaged(build, query, kinds, Input(events, tps, seed), option.on_stderr)
    rows = {(each.kind, each.state): ["", ""] for each in found}
    for each in found:
        rows[each.kind, each.state][PLACES.index(each.place)] = each.words
    order = sorted(rows, key=lambda key: [*("(none)", *kinds)].index(key[0]))
    print(columns(("damage", "state", *PLACES), [[*key, *rows[key]] for key in order]))
    wrong = [each for each in found if each.is_wrong]
    for each in wrong:
        option.on_stderr(f"{name}: {each.kind}, {each.state}, {each.place}: {each.restart.reason}")
    told = [
        {
            **{"damage": each.kind, "state": each.state, "checkpoint": each.place},
            **{"outcome": each.words, "reason": each.restart.reason},
        }
        for each in found
    ]
    option.write(out, {"engine": name, "query": query, "found": told})
    return 1 if wrong else 0


def recovery_sizes(
    query: Annotated[str, option.text("One that keeps all rows.")] = "q20",
    grow_to: Annotated[
        str, option.text("Of the state, e.g. 64MB,1GB.", metavar="SIZES")
    ] = "64MB,256MB",
    repetitions: Annotated[int, option.number(1, 100)] = 5,
    tps: Tps = 1_000,
    seed: option.Seed = 1,
    rows_per_batch: Annotated[int, option.number(1, 10**9, "B")] = 100_000,
    latency_ms: Latency = None,
    mb_per_s: Bandwidth = None,
    conf: option.Conf = None,
    engine: option.Engine = None,
    out: option.Out = None,
    keep: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR", help="Keeps states and restarts: after Ctrl-C the same command goes on."
        ),
    ] = None,
) -> None:
    """Grow the state of a query, restart it at each size, and print what a restart costs.

    RocksDB with snapshots and with changelogs, with the checkpoint on the local disk and on the
    stand-in for remote storage. The second table has seconds per MB of a task, and what they
    predict for a state of 57 GB in 8 tasks, beside Oceanus' figures for Flink.
    """
    from nexmark.recovery.restore_sizes import Growth, cells, predictions, restarts

    _check_query(query)
    sizes = _sizes(grow_to)
    name, build = option.build_of(engine, option.on_stderr)
    remote = _storage(latency_ms, mb_per_s, seed)
    growth = Growth(query, tps, seed, rows_per_batch, repetitions, remote, option.confs_of(conf))
    with marked_processes(f"recovery-sizes {query}") as mark:
        found = list(restarts(build, growth, sizes, mark, option.on_stderr, keep))
    costs = ("restore s", "interruption s", "commit s")
    print(columns(("state", "checkpoint", "MB", *costs), cells(found)))
    fits = ("restore s/MB", "restore s", "interruption s/MB", "interruption s")
    print("\nby task, and at 57 GB in 8 tasks:")
    print(columns(("state", "checkpoint", *fits), predictions(found, _TASKS)))
    told = {"engine": name, "query": query, "restarts": [asdict(each) for each in found]}
    option.write(out, told)


def _check_query(query: str) -> None:
    """Refuse a query that does not exist, or whose result cannot be compared."""
    from nexmark_jobs.queries import QUERIES

    option.known_query(query)
    if not QUERIES[query].deterministic:
        problem = f"the result of {query} differs from run to run; give another query"
        raise typer.BadParameter(f"--query: {problem}")


def _remote(
    checkpoint: str, latency_ms: int | None, mb_per_s: int | None, fault: str | None, seed: int
) -> "RemoteStorage | None":
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
    return _storage(latency_ms, mb_per_s, seed, parsed)


def _storage(
    latency_ms: int | None, mb_per_s: int | None, seed: int, fault: "Fault | None" = None
) -> "RemoteStorage":
    from nexmark.recovery.remote_storage import RemoteStorage

    latency = _LATENCY_MS if latency_ms is None else latency_ms
    return RemoteStorage(latency, mb_per_s or _MB_PER_S, seed, fault)


def _sizes(text: str) -> list[int]:
    """Sizes like 64MB,1GB in MB, in ascending order."""
    found = []
    for part in text.split(","):
        matched = re.fullmatch(r"([1-9][0-9]{0,5})(MB|GB)", part.strip())
        if matched is None:
            raise typer.BadParameter(f"--grow-to: {part!r} is not a size; write 64MB,256MB or 1GB")
        found.append(int(matched[1]) * _UNITS[matched[2]])
    return sorted(set(found))


@contextmanager
def marked_processes(what: str) -> Iterator[Mapping[str, str]]:
    """The variable that marks the processes of a command; they end with the context."""
    mark = owner_mark(paths.home(), what)
    try:
        yield {OWNER_VARIABLE: mark}
    finally:
        processes({"do": "end", "mark": mark, "grace_s": _GRACE_S})
