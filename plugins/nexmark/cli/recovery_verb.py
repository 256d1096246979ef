"""The verb that kills a query and looks at how it recovers."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated, Literal

import typer

from nexmark.cli.shared_options import Engine, given, whole
from nexmark_jobs.host.processes import OWNER_VARIABLE, owner_mark
from nexmark_jobs.host.processes import main as processes

_BATCHES = 10
_GRACE_S = 5.0


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
    engine: Engine = None,
) -> int:
    """Kill a query at random moments, restart it from its checkpoint, and compare its result.

    The driver is killed, with all that belongs to it (SIGKILL). The final table is then in
    DIR/result, the checkpoint in DIR/checkpoint, and what each kill and commit cost is printed as
    JSON. 0 if the final table equals the reference, 1 if not.
    """
    from nexmark.config import load, paths, suggest
    from nexmark.engines import resolve
    from nexmark.errors import NexmarkError
    from nexmark.recovery.recovery_run import RecoveryOptions, recover
    from nexmark_jobs.queries import QUERIES

    if query not in QUERIES:
        raise typer.BadParameter(f"--query: unknown query {query!r}; {suggest(query, QUERIES)}")
    if not QUERIES[query].deterministic:
        raise typer.BadParameter(
            f"--query: the result of {query} differs from run to run; give another query"
        )
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise typer.BadParameter(f"--out: {out} is not an empty directory; name a new one")
    if changelog and state != "rocksdb":
        raise typer.BadParameter("--changelog: only RocksDB has it; leave out --state hdfs")
    engines = load().engines
    name = engine or next(iter(engines))
    if name not in engines:
        raise NexmarkError(f"--engine: unknown engine {name!r}; {suggest(name, engines)}")
    build = resolve(engines[name].build, paths.builds_dir(), say=_say)
    rows = rows_per_batch or max(1, events // _BATCHES)
    options = RecoveryOptions(query, kills, events, tps, seed, rows, state, changelog)
    mark = owner_mark(paths.home(), f"recovery {out.absolute()}")
    try:
        told = recover(build, options, out.absolute(), {OWNER_VARIABLE: mark}, _say)
    finally:
        processes({"do": "end", "mark": mark, "grace_s": _GRACE_S})
    print(json.dumps({"engine": name, **told}, indent=1))
    if not told["right"]:
        print(f"recovery: {query}: {'; '.join(told['failures'])}"[:500], file=sys.stderr)
    return 0 if told["right"] else 1


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)
