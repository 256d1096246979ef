"""The verbs about recorded nights: accept, withdraw, acks, history, nights, show, report, export.

RUN is the name of a run as `nexmark nights` prints it, or any part of it that is unique.
"""

from __future__ import annotations

import getpass
import os
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from nexmark.cli.shared_options import By, Database, Optional, given, whole
from nexmark.errors import NexmarkError
from nexmark.terminal import columns

if TYPE_CHECKING:
    from nexmark.store import Store
    from nexmark.store.table_rows import AcceptanceRow, NightRow

_ACKS = tuple(
    "id accepted state query of metric ratio build run by until reason link".split()  # noqa: SIM905
)
_TIME = "%Y-%m-%d %H:%M UTC"
_Count = typer.Option(parser=whole(1, 10**6), metavar="N")


def _names(texts: list[str] | None) -> list[str]:
    """Return the names in texts like q5 and q1,q5."""
    from nexmark.night.planning import query_names

    try:
        return [name for text in texts or () for name in query_names(given(text))]
    except NexmarkError as error:
        raise typer.BadParameter(str(error)) from None


def _until(text: str) -> datetime:
    from nexmark.store.accepting import parse_expiry

    try:
        moment = parse_expiry(text, datetime.now(UTC))
    except NexmarkError as error:
        raise typer.BadParameter(str(error)) from None
    if moment is None:
        raise typer.BadParameter("until when? give a day (2027-01-31) or 30d")
    return moment


def _directory(text: str) -> Path:
    if not text.strip():
        raise typer.BadParameter("where to? give --out DIR")
    return Path(text)


def _query(text: str) -> str:
    if not text.strip():
        raise typer.BadParameter("which query? give --query q5")
    return text


Run = Annotated[str, typer.Option(help="The name of the run, or a unique part of it.")]
Limit = Annotated[int, _Count]


@contextmanager
def _opened(url: str | None) -> Iterator[Store]:
    """Yield the results database; NexmarkError where there is none."""
    from nexmark.config import paths
    from nexmark.store import open_store
    from nexmark.store.connecting import BRIEF_S

    with open_store(url or paths.database_url(), create=False, patience_s=BRIEF_S) as store:
        yield store


def accept(
    run: Run,
    reason: Annotated[str, typer.Option(help="Why it is accepted; kept on record.")] = "",
    query: Annotated[
        list[str] | None,
        typer.Option("--query", "--queries", callback=_names, metavar="q1,q5", help="Only these."),
    ] = None,
    expires: Annotated[
        datetime | None,
        typer.Option(
            parser=_until,
            metavar="DAY|30d",
            help="It counts until this day (2027-01-31, UTC), or for a number of days (30d).",
        ),
    ] = None,
    link: Optional = None,
    by: By = None,
    db: Database = None,
) -> int:
    """Make a run the baseline of its queries; 1 where some of them are refused."""
    with _opened(db) as store:
        done = store.accept(
            run,
            by or _user(),
            reason,
            query,
            expires=expires,
            link=link,
        )
        night = store.night(done.run)
    until = f" until {expires:{_TIME}}" if expires else ""
    print(f"{done.run} is now the baseline of {_place(night)} for {_queries(done.queries)}{until}.")
    for name, why in done.left_out.items():
        print(f"not accepted: {name}: {why}", file=sys.stderr)
    return 1 if done.left_out else 0


def withdraw(
    id: Annotated[int, typer.Option(help="As `nexmark acks` prints it.")],
    reason: Annotated[str, typer.Option(help="Why it is withdrawn; kept on record.")] = "",
    by: By = None,
    db: Database = None,
) -> None:
    """Take an acceptance back; it stays on record."""
    with _opened(db) as store:
        row = store.withdraw(id, by or _user(), reason)
        place = (row.engine, row.workload, row.cluster)
        before = store.accepted(*place, datetime.now(UTC)).get(row.query)
    now = f"the baseline is {before.night_id} again" if before else "it has no baseline now"
    print(f"Acceptance {row.id} of {row.query} ({row.night_id}) is withdrawn; {now}.")


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a container's user without a name
        return f"uid {os.getuid()}"


def acks(limit: Limit = 50, db: Database = None) -> None:
    """List all acceptances, and whether each still counts."""
    from nexmark.store.accepting import states

    with _opened(db) as store:
        found = states(store.acceptances(), datetime.now(UTC))
    if not found:
        print("Nothing is accepted yet.")
        return
    print(columns(_ACKS, [_ack(row, state) for row, state in found[::-1][:limit]]))


def _ack(row: AcceptanceRow, state: str) -> tuple[str, ...]:
    return (
        str(row.id),
        f"{row.accepted:{_TIME}}",
        state,
        row.query,
        f"{row.engine}, {row.workload}, {row.cluster}",
        row.metric,
        "-" if row.size is None else f"{row.size:.3f}",
        (row.build_id or "-")[:19],
        row.night_id,
        row.who,
        f"{row.expires:{_TIME}}" if row.expires else "-",
        row.reason,
        row.link or "-",
    )


def history(
    query: Annotated[str, typer.Option(parser=_query, metavar="Q", help="As q5, or suite.")],
    metric: Annotated[str | None, typer.Option(callback=given, help="Default: CPU time.")] = None,
    engine: Optional = None,
    workload: Optional = None,
    cluster: Optional = None,
    limit: Limit = 30,
    format: Literal["table", "csv"] = "table",
    db: Database = None,
) -> None:
    """Show one query over all nights, and what changed; --format csv has all nights.

    Without engine, workload or cluster, it takes the newest night's.
    """
    from nexmark.cli.history_table import print_history, write_history
    from nexmark.model import CPU

    with _opened(db) as store:
        place = {"engine": engine, "workload": workload, "cluster": cluster}
        found = store.history(query, metric or CPU, place)
    if format == "csv":
        write_history(found, sys.stdout)
    else:
        print_history(found, limit)


def nights(limit: Limit = 20, db: Database = None) -> None:
    """List the newest runs."""
    from nexmark.store.store import MOST_ROWS

    with _opened(db) as store:
        found = store.nights(min(limit, MOST_ROWS))
        if not found:
            print("No run is recorded yet.")
        accepted = Counter(row.night_id for row in store.acceptances())
        for night in found:
            verdicts = Counter(row.value for row in store.verdicts(night.id))
            summary = ", ".join(f"{number} {value}" for value, number in verdicts.most_common())
            baseline = f"  baseline of {accepted[night.id]} queries" if accepted[night.id] else ""
            print(f"{night.started:{_TIME}}  {night.id}")
            print(f"    {_place(night)}: {summary or 'not judged'}{baseline}")


def show(run: Run, db: Database = None) -> None:
    """Show one run, and the acceptances of its engine."""
    with _opened(db) as store:
        night = store.find_run(run)
        verdicts = store.verdicts(night.id)
        history = store.acceptances(night.engine, night.workload, night.cluster)
    print(f"run        {night.id}")
    print(f"started    {night.started:{_TIME}}")
    print(f"place      {_place(night)}")
    print(f"build      {night.build_id}")
    print(f"directory  {night.directory}")
    for row in verdicts:
        print(f"  {row.query:<15} {row.value:<12} {row.reason}")
    print("accepted for this engine and workload, newest last:")
    for moment in dict.fromkeys((row.accepted, row.night_id) for row in history):
        rows = [row for row in history if (row.accepted, row.night_id) == moment]
        names = _queries([row.query for row in rows])
        why = rows[0].reason or "-"
        print(f"  {moment[0]:{_TIME}}  {moment[1]}  {names}, by {rows[0].who}: {why}")
    if not history:
        print("  nothing yet")


def report(
    run: Run,
    out: Annotated[Path | None, typer.Option(help="Also write table, CSV and JSON here.")] = None,
    db: Database = None,
) -> None:
    """Print the table of a recorded run again."""
    from nexmark.report import make_report, report_text, write_report

    with _opened(db) as store:
        try:
            made = make_report(store, run) if out is None else write_report(out, store, run)
        except OSError as error:
            raise NexmarkError(f"cannot write the report: {error}; give another --out") from None
    print(report_text(made))


def export(
    out: Annotated[
        Path, typer.Option(parser=_directory, metavar="DIR", help="New or empty directory.")
    ],
    format: Literal["parquet", "csv"] = "parquet",
    db: Database = None,
) -> None:
    """Write every table, and the nights for replay, as files."""
    with _opened(db) as store:
        for name, count in store.export(out, format).items():
            what = "nights" if name.startswith("nights") else "rows"
            print(f"{count:>10} {what:<6} {out / name}")


def _place(night: NightRow) -> str:
    return f"{night.engine} on {night.workload}, cluster {night.cluster}"


def _queries(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{len(names)} queries ({', '.join(names)})"
