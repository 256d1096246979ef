"""What `nexmark prune` prints: a line for each kind, and why what stays does."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from rich.filesize import decimal

from nexmark.model import grouped
from nexmark.retention.kept_things import Kind, ThingDecision
from nexmark.terminal import columns

_HEADS = (
    *("kind", "go", "bytes", "oldest", "newest"),
    *("stay", "bytes", "oldest", "why they stay"),
)


def prune_table(decisions: Iterable[ThingDecision]) -> str:
    """Return the table: how many of each kind go and stay, with bytes and dates."""
    by_kind = grouped(decisions, lambda one: one.thing.kind)
    rows = [_row(kind, by_kind.get(kind, [])) for kind in Kind]
    return columns(_HEADS, [*rows, _row_of_all(by_kind)])


def _row(kind: str, decisions: Sequence[ThingDecision]) -> tuple[str, ...]:
    go = [one for one in decisions if one.goes]
    stay = [one for one in decisions if not one.goes]
    first, last = _days(go)
    why = Counter(one.reason for one in stay)
    told = ", ".join(f"{count} {reason}" for reason, count in why.most_common())
    return (
        *(kind, str(len(go)), decimal(_bytes(go)), first, last),
        *(str(len(stay)), decimal(_bytes(stay)), _days(stay)[0], told or "-"),
    )


def _row_of_all(by_kind: Mapping[Kind, Sequence[ThingDecision]]) -> tuple[str, ...]:
    """Return the row of all kinds; event logs are a part of the run directories that stay."""
    every = [one for own in by_kind.values() for one in own]
    go = [one for one in every if one.goes]
    stay = [one for one in every if not one.goes and one.thing.kind != Kind.EVENT_LOGS]
    of_logs = _bytes(one for one in go if one.thing.kind == Kind.EVENT_LOGS)
    row = _row("all", every)
    return (*row[:5], str(len(stay)), decimal(_bytes(stay) - of_logs), row[7], "-")


def _days(decisions: Sequence[ThingDecision]) -> tuple[str, str]:
    if not decisions:
        return "-", "-"
    moments = sorted(one.thing.moment for one in decisions)
    return f"{moments[0]:%Y-%m-%d}", f"{moments[-1]:%Y-%m-%d}"


def _bytes(decisions: Iterable[ThingDecision]) -> int:
    return sum(one.thing.bytes for one in decisions)
