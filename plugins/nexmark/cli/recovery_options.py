"""Options that the verbs about recovery share."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from nexmark.cli.shared_options import confs, whole
from nexmark_jobs.host.processes import OWNER_VARIABLE, owner_mark
from nexmark_jobs.host.processes import main as processes

if TYPE_CHECKING:
    from nexmark.engines import Build

LATENCY_MS = 20
MB_PER_S = 20
_GRACE_S = 5.0

Latency = Annotated[
    int | None,
    typer.Option(
        parser=whole(0, 60_000), metavar="MS", help=f"Of remote storage (default: {LATENCY_MS})."
    ),
]
Bandwidth = Annotated[
    int | None,
    typer.Option(
        parser=whole(1, 100_000), metavar="MB", help=f"Of remote storage (default: {MB_PER_S})."
    ),
]
Conf = Annotated[
    list[str] | None,
    typer.Option(
        "--conf",
        callback=confs,
        metavar="NAME=VALUE",
        help="A Spark conf of the query. Repeat for more.",
    ),
]


def check_query(query: str) -> None:
    """Refuse a query that does not exist, or whose result cannot be compared."""
    from nexmark.config import suggest
    from nexmark_jobs.queries import QUERIES

    if query not in QUERIES:
        raise typer.BadParameter(f"--query: unknown query {query!r}; {suggest(query, QUERIES)}")
    if not QUERIES[query].deterministic:
        raise typer.BadParameter(
            f"--query: the result of {query} differs from run to run; give another query"
        )


def check_out(out: Path) -> None:
    """Refuse a directory in use."""
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise typer.BadParameter(f"--out: {out} is not an empty directory; name a new one")


def resolved(engine: str | None) -> tuple[str, Build]:
    """The name and the build of an engine, by default of the newest."""
    from nexmark.config import load, paths, suggest
    from nexmark.engines import resolve
    from nexmark.errors import NexmarkError

    engines = load().engines
    name = engine or next(iter(engines))
    if name not in engines:
        raise NexmarkError(f"--engine: unknown engine {name!r}; {suggest(name, engines)}")
    return name, resolve(engines[name].build, paths.builds_dir(), say=tell)


@contextmanager
def marked_processes(what: str) -> Iterator[Mapping[str, str]]:
    """The variable that marks the processes of a verb; they end with the context."""
    from nexmark.config import paths

    mark = owner_mark(paths.home(), what)
    try:
        yield {OWNER_VARIABLE: mark}
    finally:
        processes({"do": "end", "mark": mark, "grace_s": _GRACE_S})


def tell(text: str) -> None:
    """Say on stderr what happens."""
    print(text, file=sys.stderr, flush=True)
