"""The verb that damages checkpoints and looks at what a build does with them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from nexmark.cli.recovery_options import check_query, resolved, tell
from nexmark.cli.shared_options import Engine, given, whole


def recovery_damage(
    query: Annotated[str, typer.Option(callback=given, help="One that keeps state.")] = "q20",
    damage: Annotated[
        list[str] | None,
        typer.Option(metavar="KIND", help="One kind of damage (default: all). Repeat for more."),
    ] = None,
    events: Annotated[int, typer.Option(parser=whole(200, 10**9), metavar="N")] = 4_000,
    tps: Annotated[int, typer.Option(parser=whole(1, 10**7), metavar="T")] = 100,
    seed: Annotated[int, typer.Option(parser=whole(0, 2**31 - 1), metavar="S")] = 1,
    engine: Engine = None,
    out: Annotated[Path | None, typer.Option(help="A new file for all outcomes, JSON.")] = None,
) -> int:
    """Damage checkpoints of a query, go on with them, and say what Spark did.

    It refuses, with the class of its error; it goes on and its result is right; or it answers
    wrongly. 1 if it answered wrongly anywhere.
    """
    from nexmark.compatibility import Input
    from nexmark.compatibility.damage_run import PLACES, run_damaged
    from nexmark.errors import suggest
    from nexmark.recovery.damage import DAMAGES
    from nexmark.terminal import columns
    from nexmark_jobs.host.leases import write_whole

    check_query(query)
    kinds = damage or list(DAMAGES)
    for kind in kinds:
        if kind not in DAMAGES:
            raise typer.BadParameter(f"--damage: no kind {kind!r}; {suggest(kind, DAMAGES)}")
    if out is not None and (out.exists() or not out.parent.is_dir()):
        raise typer.BadParameter(f"--out: {out} is there, or its directory is not; name a new file")
    name, build = resolved(engine)
    found = run_damaged(build, query, kinds, Input(events, tps, seed), tell)
    rows = {(each.kind, each.state): ["", ""] for each in found}
    for each in found:
        rows[each.kind, each.state][PLACES.index(each.place)] = each.words
    order = sorted(rows, key=lambda key: [*("(none)", *kinds)].index(key[0]))
    print(columns(("damage", "state", *PLACES), [[*key, *rows[key]] for key in order]))
    wrong = [each for each in found if each.is_wrong]
    for each in wrong:
        tell(f"{name}: {each.kind}, {each.state}, {each.place}: {each.restart.reason}")
    if out is not None:
        told = [
            {
                **{"damage": each.kind, "state": each.state, "checkpoint": each.place},
                **{"outcome": each.words, "reason": each.restart.reason},
            }
            for each in found
        ]
        write_whole(out, json.dumps({"engine": name, "query": query, "found": told}, indent=1))
    return 1 if wrong else 0
