"""The verb `site`, which writes the pages as files."""

from pathlib import Path
from typing import Annotated

import typer

from nexmark.cli import shared_options as option
from nexmark.cli.results import out_directory
from nexmark.terminal import COULD_NOT_RUN


def site(
    out: Annotated[
        Path,
        typer.Option(
            parser=out_directory,
            metavar="DIR",
            help="A new directory, or a site to bring up to date.",
        ),
    ],
    db: option.Database = None,
) -> int:
    """Write the pages as files, to share without a login.

    0 if all pages were written, 2 if not.
    """
    from nexmark.static_site.site_files import write_site

    with option.opened(db) as store:
        done = write_site(out, store)
    for problem in done.problems:
        option.on_stderr(problem)
    same = done.files - done.written - len(done.problems)
    counts = f"{done.written} written, {same} as they were, {done.removed} removed"
    print(f"{out}: {done.files} files: {counts}")
    print(f"open {out / 'index.html'}")
    return COULD_NOT_RUN if done.problems else 0
