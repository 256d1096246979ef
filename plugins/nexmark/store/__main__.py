"""Look at recorded runs and accept one as the baseline: ``python -m nexmark.store``.

    accept --run RUN [--by NAME] [--reason TEXT] [--query Q ...]
    list [--limit N]
    show --run RUN

RUN is a run's name as ``list`` prints it, or any part of it that is unique.
"""

from __future__ import annotations

import argparse
import getpass
import os
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from typing import NoReturn

from nexmark.config import paths
from nexmark.errors import NexmarkError
from nexmark.store import Store, open_store
from nexmark.store.models import Night

TIME = "%Y-%m-%d %H:%M UTC"


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; 0, 1 after a one-line error on stderr, 2 for a wrong argument."""
    options = _parser().parse_args(argv)
    commands: dict[str, Callable[[Store, argparse.Namespace], None]] = {
        "accept": _accept,
        "list": _list,
        "show": _show,
    }
    try:
        with open_store(options.db or paths.database_url()) as store:
            commands[options.command](store, options)
    except NexmarkError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        self.exit(2, f"{self.prog}: {message}; see --help\n")


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(prog="nexmark.store", description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--db", help="database URL (default: $NEXMARK_DB, else under .nexmark)")
    commands = parser.add_subparsers(dest="command", required=True)
    accept = commands.add_parser("accept", help="make a run the baseline of its queries")
    accept.add_argument("--run", required=True)
    accept.add_argument("--by", help="who accepts (default: the user of this process)")
    accept.add_argument("--reason", default="", help="why, for those who ask later")
    accept.add_argument("--query", action="append", help="only this query; repeat for more")
    listing = commands.add_parser("list", help="the newest runs")
    listing.add_argument("--limit", type=int, default=20)
    show = commands.add_parser("show", help="one run, and what is accepted for its engine")
    show.add_argument("--run", required=True)
    return parser


def _accept(store: Store, options: argparse.Namespace) -> None:
    done = store.accept(options.run, options.by or _user(), options.reason, options.query)
    night = store.night(done.run)
    print(f"{done.run} is now the baseline of {_place(night)} for {_queries(done.queries)}.")
    for query, why in done.left_out.items():
        print(f"  not {query}: {why}")


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a container's user without a name
        return f"uid {os.getuid()}"


def _list(store: Store, options: argparse.Namespace) -> None:
    nights = store.nights(max(options.limit, 1))
    if not nights:
        print("No run is recorded yet.")
    accepted = Counter(row.night_id for row in store.acceptances())
    for night in nights:
        verdicts = Counter(row.value for row in store.verdicts(night.id))
        summary = ", ".join(f"{number} {value}" for value, number in verdicts.most_common())
        baseline = f"  baseline of {accepted[night.id]} queries" if accepted[night.id] else ""
        print(f"{night.started:{TIME}}  {night.id}")
        print(f"    {_place(night)}: {summary or 'not judged'}{baseline}")


def _show(store: Store, options: argparse.Namespace) -> None:
    night = store.find_run(options.run)
    print(f"run        {night.id}")
    print(f"started    {night.started:{TIME}}")
    print(f"place      {_place(night)}")
    print(f"build      {night.build_id}")
    print(f"directory  {night.directory}")
    for row in store.verdicts(night.id):
        print(f"  {row.query:<15} {row.value:<12} {row.reason}")
    print("accepted for this engine and workload, newest last:")
    history = store.acceptances(night.engine, night.workload, night.cluster)
    for moment in dict.fromkeys((row.accepted, row.night_id) for row in history):
        rows = [row for row in history if (row.accepted, row.night_id) == moment]
        names = _queries([row.query for row in rows])
        print(
            f"  {moment[0]:{TIME}}  {moment[1]}  {names}, by {rows[0].who}: {rows[0].reason or '-'}"
        )
    if not history:
        print("  nothing yet")


def _place(night: Night) -> str:
    return f"{night.engine} on {night.workload}, cluster {night.cluster}"


def _queries(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{len(names)} queries ({', '.join(names)})"


if __name__ == "__main__":
    sys.exit(main())
