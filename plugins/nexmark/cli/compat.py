"""The verb `compat`: will running jobs survive the upgrade?"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from nexmark.cli.shared_options import confs, confs_of, given, whole

if TYPE_CHECKING:
    from nexmark.compatibility import Input, Side
    from nexmark.engines import Build

_BUILD = "as pypi:4.3.0, tarball:PATH-OR-URL#sha512=HEX or directory:PATH"
_LEAST_SPARK = (3, 5)


def compat(
    first: Annotated[
        str | None, typer.Option("--from", help=f"The build that jobs run on now, {_BUILD}.")
    ] = None,
    second: Annotated[
        str | None, typer.Option("--to", help="The build they are to go on with (default: --from).")
    ] = None,
    query: Annotated[
        str | None, typer.Option(callback=given, help="One query (default: all with state).")
    ] = None,
    formulation: Annotated[
        str | None, typer.Option(callback=given, help="Of --query: on both sides.")
    ] = None,
    against: Annotated[
        str | None, typer.Option(callback=given, help="Instead of it, on the side of --to.")
    ] = None,
    formulations: Annotated[
        Path | None, typer.Option(help="A Python file with formulations of your own.")
    ] = None,
    events: Annotated[int, typer.Option(parser=whole(200, 10**9), metavar="N")] = 20_000,
    tps: Annotated[int, typer.Option(parser=whole(1, 10**9), metavar="T")] = 200,
    seed: Annotated[int, typer.Option(parser=whole(0, 2**31 - 1), metavar="S")] = 1,
    from_conf: Annotated[
        list[str] | None,
        typer.Option(callback=confs, metavar="KEY=VALUE", help="Of Spark SQL. Repeat for more."),
    ] = None,
    to_conf: Annotated[
        list[str] | None, typer.Option(callback=confs, metavar="KEY=VALUE", help="On --to.")
    ] = None,
    plans_only: Annotated[
        bool, typer.Option("--plans-only", help="Compare the plans; run nothing.")
    ] = False,
    corpus: Annotated[
        Path | None, typer.Option(help="A new directory: leave the checkpoints of --from in it.")
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="A new file for all that was found, with plans, JSON.")
    ] = None,
) -> int:
    """Go on from checkpoints of one Spark build with another one, and back; 0 if all survives.

    1 if a query is incompatible, silently wrong or could not be run; 2 for bad arguments.
    """
    from nexmark.compatibility import (
        Input,
        Side,
        as_json,
        cases_of,
        check,
        check_plans,
        is_red,
        matrix,
        write_corpus,
    )
    from nexmark.engines import BuildError
    from nexmark_jobs.ending import UsageError
    from nexmark_jobs.host.leases import write_whole

    for option, path in (("--out", out), ("--corpus", corpus)):
        if path is not None and (path.exists() or not path.parent.is_dir()):
            raise typer.BadParameter(
                f"{option}: {path} is there, or its directory is not; name a new one"
            )
    try:
        _check(first, query, formulation, against)
        names = _queries(query, formulations, formulation, against)
        builds = _builds(str(first), second or str(first))
        cases = cases_of(names, builds, formulation, against)
        sides = Side(builds[0], confs_of(from_conf)), Side(builds[1], confs_of(to_conf))
        chosen = Input(events, tps, seed, formulations.resolve() if formulations else None)
        _check_events(chosen)
    except (BuildError, UsageError) as error:
        print(f"nexmark compat: {error}", file=sys.stderr)
        return 2
    if corpus is not None:
        missing = write_corpus(sides[0], cases, chosen, _progress, corpus)
        print(f"{corpus}: checkpoints of Spark {builds[0].version}; missing: {missing or 'none'}")
        return 1 if missing else 0
    print(_title(sides, chosen), flush=True)
    run = check_plans if plans_only else check
    found = run(*sides, cases, chosen, _progress, only_stateful=query is None)
    print(matrix(found))
    if out is not None:
        write_whole(out, json.dumps(as_json(found), indent=1) + "\n")
    return 1 if is_red(found) else 0


def _check(
    first: str | None, query: str | None, formulation: str | None, against: str | None
) -> None:
    if not (first or "").strip():
        raise typer.BadParameter(f"--from: none is given; give a build {_BUILD}")
    if formulation is not None and query is None:
        raise typer.BadParameter("--formulation: is of a query; give that by --query")
    if against is not None and formulation is None:
        raise typer.BadParameter("--against: is compared with --formulation; give that, too")


def _queries(
    query: str | None, file: Path | None, formulation: str | None, against: str | None
) -> list[str]:
    """The names of the queries; refuses unknown queries and formulations."""
    from nexmark.errors import suggest
    from nexmark_jobs.ending import UsageError
    from nexmark_jobs.extra_formulations import add_formulations
    from nexmark_jobs.queries import QUERIES

    if file is not None:
        try:
            add_formulations(file)
        except UsageError as error:
            raise UsageError(f"--formulations: {error}") from None
    if query is None:
        return list(QUERIES)
    if query not in QUERIES:
        raise typer.BadParameter(f"--query: no query {query!r}; {suggest(query, QUERIES)}")
    known = [each.name for each in QUERIES[query].formulations]
    for option, name in (("--formulation", formulation), ("--against", against)):
        if name is not None and name not in known:
            raise typer.BadParameter(
                f"{option}: {query} has no formulation {name!r}; {suggest(name, known)}"
            )
    return [query]


def _builds(first: str, second: str) -> tuple[Build, Build]:
    """The builds of --from and --to, on this machine; BuildError if one cannot be used."""
    from nexmark.compatibility import release
    from nexmark.config import paths
    from nexmark.engines import BuildError, java_problem, parse_source, resolve

    sources = []
    for option, text in (("--from", first), ("--to", second)):
        try:
            sources.append(parse_source(text))
        except BuildError as error:
            raise BuildError(f"{option}: {error}") from None
    found = [resolve(source, paths.builds_dir(), say=_progress) for source in sources]
    for option, build in zip(("--from", "--to"), found, strict=True):
        if release(build) < _LEAST_SPARK:
            raise BuildError(f"{option}: Spark {build.version} is too old; give 3.5 or newer")
        if problem := java_problem(build.version):
            raise BuildError(f"{option}: Spark {build.version}: {problem}")
    return found[0], found[1]


def _check_events(chosen: Input) -> None:
    """UsageError if the generator cannot make such events."""
    from nexmark_jobs.generator.generator_options import generator_config

    generator_config(chosen.seed, chosen.tps, (), chosen.events)


def _title(sides: tuple[Side, Side], chosen: Input) -> str:
    builds = " to ".join(f"Spark {x.build.version} ({x.build.id})" for x in sides)
    return f"{builds}: {chosen.events:,} events, {chosen.tps:,} per second, seed {chosen.seed}\n"


def _progress(text: str) -> None:
    print(text, file=sys.stderr, flush=True)
