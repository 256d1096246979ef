"""The verbs about acceptances: accept, withdraw, acks. RUN is as in `nexmark.cli.results`."""

import sys
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated

import typer

from nexmark.cli import shared_options as option
from nexmark.errors import NexmarkError
from nexmark.people import process_user, signed
from nexmark.terminal import COULD_NOT_RUN, columns

if TYPE_CHECKING:
    from nexmark.evidence.alarms import AcceptedTogether
    from nexmark.store.history import AnyNight

_ACKS = (
    "id",
    "accepted",
    "state",
    "query",
    "of",
    "metric",
    "ratio",
    "build",
    "run",
    "by",
    "until",
    "reason",
    "link",
)
TIME = "%Y-%m-%d %H:%M UTC"

Limit = Annotated[int, option.number(1, 10**6, help="How many of the newest are printed.")]


def _names(texts: list[str] | None) -> list[str]:
    """Return the names in texts like q5 and q1,q5."""
    from nexmark.night.make_night import query_names

    try:
        return [name for text in texts or () for name in query_names(option.given(text))]
    except NexmarkError as error:
        raise typer.BadParameter(str(error)) from None


def _until(text: str) -> datetime:
    """Return the end of an acceptance from a day like 2027-01-31 or a number of days like 30d."""
    from nexmark.store.accepting import parse_expiry

    try:
        moment = parse_expiry(text, datetime.now(UTC))
    except NexmarkError as error:
        raise typer.BadParameter(str(error)) from None
    if moment is None:
        raise typer.BadParameter("until when? give a day (2027-01-31) or 30d")
    return moment


def accept(
    run: option.Run,
    reason: Annotated[str, option.text("Why it is accepted; kept on record.")],
    query: Annotated[
        list[str] | None,
        typer.Option(
            "--query",
            "--queries",
            callback=_names,
            metavar="q1,q5",
            help="Accept only these queries (default: all).",
        ),
    ] = None,
    expires: Annotated[
        datetime | None,
        typer.Option(
            parser=_until,
            metavar="DAY|30d",
            help="It counts until this day (2027-01-31, UTC), or for a number of days (30d).",
        ),
    ] = None,
    link: Annotated[str | None, option.text("A URL that says more; kept on record.")] = None,
    engine: option.OfEngine = None,
    by: option.By = None,
    db: option.Database = None,
) -> int:
    """Make a run the baseline of its queries.

    2 if some of them were refused.
    """
    with option.opened(db) as store:
        who = signed(process_user(), by)
        run = option.named_run(store, run, engine).id
        done = store.accept(run, who, reason, query, expires=expires, link=link)
        night = store.night(done.run)
    until = f" until {expires:{TIME}}" if expires else ""
    print(f"{done.run} is now the baseline of {place(night)} for {queries(done.queries)}{until}.")
    for name, why in done.left_out.items():
        print(f"not accepted: {name}: {why}", file=sys.stderr)
    return COULD_NOT_RUN if done.left_out else 0


def withdraw(
    id: Annotated[int, option.number(1, 10**9, help="The id that `nexmark acks` prints.")],
    reason: Annotated[str, option.text("Why it is withdrawn; kept on record.")],
    by: option.By = None,
    db: option.Database = None,
) -> None:
    """Take an acceptance back; it stays on record."""
    with option.opened(db) as store:
        row = store.withdraw(id, signed(process_user(), by), reason)
        accepted = store.accepted(row.engine, row.workload, row.cluster, datetime.now(UTC))
    before = accepted.get(row.query)
    now = f"the baseline is {before.night_id} again" if before else "it has no baseline now"
    print(f"Acceptance {row.id} of {row.query} ({row.night_id}) is withdrawn; {now}.")


def acks(
    limit: Limit = 50,
    each: Annotated[
        bool, typer.Option("--each", help="A row for each query, with the id of its acceptance.")
    ] = False,
    db: option.Database = None,
) -> None:
    """List all acceptances, and whether each still counts.

    What was accepted together is one row, with the first and the last of its ids.
    """
    from nexmark.evidence.alarms import AcceptedTogether, acknowledged, together

    with option.opened(db) as opened, opened.at_one_moment() as store:
        newest_first = acknowledged(store.acceptances(), datetime.now(UTC))[::-1]
        builds = store.build_names(ack.row.build_id or "" for ack in newest_first)
    if not newest_first:
        print("Nothing is accepted yet.")
        return
    groups = [AcceptedTogether((ack,)) for ack in newest_first] if each else together(newest_first)
    print(columns(_ACKS, [_accepted(group, builds) for group in groups[:limit]]))


def _accepted(group: "AcceptedTogether", builds: Mapping[str, str]) -> tuple[str, ...]:
    """Return the row of what was accepted together; ``builds`` has the names of builds by id."""
    row, last = group.first.row, group.acks[-1].row
    until = f"{row.expires:{TIME}}" if row.expires else "-"
    return (
        str(row.id) if row is last else f"{row.id} to {last.id}",
        f"{row.accepted:{TIME}}",
        group.first.state,
        queries(group.queries),
        f"{row.engine}, {row.workload}, {row.cluster}",
        row.metric,
        " to ".join(f"{size:.3f}" for size in group.sizes) or "-",
        builds.get(row.build_id or "", "-"),
        row.night_id,
        row.who,
        until,
        row.reason,
        row.link or "-",
    )


def place(night: "AnyNight") -> str:
    """Return the engine, the workload and the cluster of a night in words."""
    return f"{night.engine} on {night.workload}, cluster {night.cluster}"


def queries(names: Sequence[str]) -> str:
    """Return the names of queries in words; from two on with their number."""
    return names[0] if len(names) == 1 else f"{len(names)} queries ({', '.join(names)})"
