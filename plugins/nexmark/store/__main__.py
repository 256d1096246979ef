"""Look at recorded runs, accept one as the baseline, export all: ``python -m nexmark.store``.

    accept --run RUN --reason TEXT [--by NAME] [--query Q ...] [--expires DAY|30d] [--link URL]
    withdraw --id N --reason TEXT [--by NAME]
    acks [--limit N]
    history --query Q [--metric M] [--engine E --workload W --cluster C] [--limit N] [--format csv]
    list [--limit N]
    show --run RUN
    export --out DIR [--format parquet|csv]

RUN is a run's name as ``list`` prints it, or any part of it that is unique.
"""

from __future__ import annotations

import argparse
import getpass
import os
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import NoReturn

from nexmark.config import paths
from nexmark.errors import NexmarkError
from nexmark.store import Store, open_store
from nexmark.store.accepting import parse_expiry, states
from nexmark.store.models import Acceptance, Night
from nexmark.store.printing import BUILD, TIME, print_history, print_table, write_history
from nexmark.store.query_history import METRICS
from nexmark.store.records import CPU
from nexmark.store.tables import FORMATS

ACKS = tuple(
    "id accepted state query of metric ratio build run by until reason link".split()  # noqa: SIM905
)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; 0, 1 after a one-line error on stderr, 2 for a wrong argument."""
    options = _parser().parse_args(argv)
    commands: dict[str, Callable[[Store, argparse.Namespace], None]] = {
        "accept": _accept,
        "acks": _acks,
        "export": _export,
        "history": _history,
        "list": _list,
        "show": _show,
        "withdraw": _withdraw,
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
    accept.add_argument(
        "--query", action="append", help="only this query, or q1,q5; repeat for more"
    )
    accept.add_argument(
        "--expires",
        type=_moment,
        help="it counts until this day (2027-01-31, UTC), or for so many days (30d)",
    )
    accept.add_argument("--link", help="where it was decided")
    withdraw = commands.add_parser("withdraw", help="take an acceptance back; it stays on record")
    withdraw.add_argument("--id", required=True, type=int, help="as `acks` prints it")
    withdraw.add_argument("--by", help="who takes it back (default: the user of this process)")
    withdraw.add_argument("--reason", default="", help="why, for those who ask later")
    acks = commands.add_parser("acks", help="what was accepted, and what of it counts")
    acks.add_argument("--limit", type=int, default=50)
    history = commands.add_parser("history", help="one query over all nights, and what changed")
    history.add_argument("--query", required=True, type=_query, help="q5 say, or suite")
    history.add_argument("--metric", default=CPU, help=f"{', '.join(METRICS)} (default: the first)")
    for name in ("engine", "workload", "cluster"):
        history.add_argument(f"--{name}", help="default: that of the newest night")
    history.add_argument("--limit", type=int, default=30, help="nights that are shown (30)")
    history.add_argument("--format", choices=("table", "csv"), default="table", help="csv: all")
    exporting = commands.add_parser("export", help="write every table, and the nights for replay")
    exporting.add_argument("--out", required=True, type=_directory, help="new or empty directory")
    exporting.add_argument("--format", choices=FORMATS, default=FORMATS[0])
    listing = commands.add_parser("list", help="the newest runs")
    listing.add_argument("--limit", type=int, default=20)
    show = commands.add_parser("show", help="one run, and what is accepted for its engine")
    show.add_argument("--run", required=True)
    return parser


def _accept(store: Store, options: argparse.Namespace) -> None:
    done = store.accept(
        options.run,
        options.by or _user(),
        options.reason,
        [name.strip() for text in options.query or () for name in text.split(",") if name.strip()],
        expires=options.expires,
        link=options.link,
    )
    night = store.night(done.run)
    until = f" until {options.expires:{TIME}}" if options.expires else ""
    print(f"{done.run} is now the baseline of {_place(night)} for {_queries(done.queries)}{until}.")
    for query, why in done.left_out.items():
        print(f"  not {query}: {why}")


def _withdraw(store: Store, options: argparse.Namespace) -> None:
    row = store.withdraw(options.id, options.by or _user(), options.reason)
    place = (row.engine, row.workload, row.cluster)
    before = store.accepted(*place, datetime.now(UTC)).get(row.query)
    now = f"the baseline is {before.night_id} again" if before else "it has no baseline now"
    print(f"Acceptance {row.id} of {row.query} ({row.night_id}) is withdrawn; {now}.")


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a container's user without a name
        return f"uid {os.getuid()}"


def _moment(text: str) -> datetime:
    try:
        moment = parse_expiry(text, datetime.now(UTC))
    except NexmarkError as error:
        raise argparse.ArgumentTypeError(str(error)) from None
    if moment is None:
        raise argparse.ArgumentTypeError("until when? give a day (2027-01-31) or 30d")
    return moment


def _directory(text: str) -> Path:
    if not text:
        raise argparse.ArgumentTypeError("where to? give OUT=DIR")
    return Path(text)


def _query(text: str) -> str:
    if not text:
        raise argparse.ArgumentTypeError("of which? give QUERY=q5")
    return text


def _acks(store: Store, options: argparse.Namespace) -> None:
    found = states(store.acceptances(), datetime.now(UTC))
    if not found:
        print("Nothing is accepted yet.")
        return
    print_table(ACKS, [_ack(row, state) for row, state in found[::-1][: max(options.limit, 1)]])


def _ack(row: Acceptance, state: str) -> tuple[str, ...]:
    return (
        str(row.id),
        f"{row.accepted:{TIME}}",
        state,
        row.query,
        f"{row.engine}, {row.workload}, {row.cluster}",
        row.metric,
        "-" if row.size is None else f"{row.size:.3f}",
        (row.build_id or "-")[:BUILD],
        row.night_id,
        row.who,
        f"{row.expires:{TIME}}" if row.expires else "-",
        row.reason,
        row.link or "-",
    )


def _history(store: Store, options: argparse.Namespace) -> None:
    place = {name: getattr(options, name) for name in ("engine", "workload", "cluster")}
    found = store.history(options.query, options.metric or CPU, place)
    if options.format == "csv":
        write_history(found, sys.stdout)
    else:
        print_history(found, max(options.limit, 1))


def _export(store: Store, options: argparse.Namespace) -> None:
    for name, count in store.export(options.out, options.format).items():
        what = "nights" if name.startswith("nights") else "rows"
        print(f"{count:>10} {what:<6} {options.out / name}")


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
