"""The verb `prune`, which deletes what nights have left behind."""

import sys
from datetime import UTC, datetime
from typing import Annotated

import typer

from nexmark.cli import shared_options as option
from nexmark.config import load
from nexmark.terminal import COULD_NOT_RUN


def prune(
    dry_run: Annotated[
        bool,
        typer.Option(
            "--dry-run", help="Print what would go, and what a year leaves; delete nothing."
        ),
    ] = False,
    db: option.Database = None,
) -> int:
    """Delete what is beyond the limits of retention.yaml.

    0 if all of it went, 2 if not. What a baseline, an open alarm, a sealed sign-off, the gate or a
    running night needs stays.
    """
    from rich.filesize import decimal

    from nexmark.retention.prune_table import growth_table, prune_table
    from nexmark.retention.pruning import plan
    from nexmark.retention.pruning import prune as pruned

    config = load()
    with option.opened(db) as store:
        if dry_run:
            decisions = plan(config, store, datetime.now(UTC))
            print(prune_table(decisions))
            print("\nif each DAG runs once a day, each time with a new build:")
            print(f"{growth_table(decisions, config.retention)}\n")
            print("nothing was deleted: this was a dry run")
            return 0
        done = pruned(config, store, option.on_stderr)
    print(prune_table(done.decisions))
    if done.shrunk:
        print(f"the database is {decimal(done.shrunk)} smaller")
    for problem in done.problems:
        print(problem, file=sys.stderr)
    return COULD_NOT_RUN if done.problems else 0
