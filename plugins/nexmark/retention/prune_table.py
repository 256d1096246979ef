"""Print what goes and what stays, a line for each kind, and how much a year of nights leaves."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from rich.filesize import decimal

from nexmark.config import Retention
from nexmark.model import grouped
from nexmark.retention.decision import ArtifactKind, PruneDecision
from nexmark.retention.yearly_growth import yearly_growth
from nexmark.terminal import columns

_HEADS = (
    "kind",
    "go",
    "bytes",
    "oldest",
    "newest",
    "stay",
    "bytes",
    "oldest",
    "why they stay",
)
_GROWTH_HEADS = ("kind", "a night", "a year", "a year with the limits")


def prune_table(decisions: Iterable[PruneDecision]) -> str:
    """Return the table: how many of each kind go and stay, with bytes and dates."""
    by_kind = grouped(decisions, lambda one: one.artifact.kind)
    rows = [_row(kind, by_kind.get(kind, [])) for kind in ArtifactKind]
    return columns(_HEADS, [*rows, _row_of_all(by_kind)])


def growth_table(decisions: Iterable[PruneDecision], rules: Retention) -> str:
    """Return the table of the bytes that nights leave: in one night, and in a year of nights."""
    growths = yearly_growth(decisions, rules)
    sizes = [(each.night, each.year, each.kept) for each in growths]
    totals = map(sum, zip(*sizes, strict=True))
    return columns(
        _GROWTH_HEADS,
        [
            *((each.kind, *map(_size, row)) for each, row in zip(growths, sizes, strict=True)),
            ("all", *map(_size, totals)),
        ],
    )


def _size(number: float) -> str:
    return decimal(round(number))


def _row(kind: str, decisions: Sequence[PruneDecision]) -> tuple[str, ...]:
    go = [one for one in decisions if one.goes]
    stay = [one for one in decisions if not one.goes]
    first, last = _days(go)
    why = Counter(one.reason for one in stay)
    reasons = ", ".join(f"{count} {reason}" for reason, count in why.most_common())
    return (
        kind,
        str(len(go)),
        decimal(_bytes(go)),
        first,
        last,
        str(len(stay)),
        decimal(_bytes(stay)),
        _days(stay)[0],
        reasons or "-",
    )


def _row_of_all(by_kind: Mapping[ArtifactKind, Sequence[PruneDecision]]) -> tuple[str, ...]:
    """Return the row for all kinds together.

    Event logs are a part of the run directories that stay, so they are not counted a second time.
    """
    every = [one for decisions in by_kind.values() for one in decisions]
    go = [one for one in every if one.goes]
    stay = [one for one in every if not one.goes and one.artifact.kind != ArtifactKind.EVENT_LOGS]
    of_logs = _bytes(one for one in go if one.artifact.kind == ArtifactKind.EVENT_LOGS)
    row = _row("all", every)
    return (*row[:5], str(len(stay)), decimal(_bytes(stay) - of_logs), row[7], "-")


def _days(decisions: Sequence[PruneDecision]) -> tuple[str, str]:
    if not decisions:
        return "-", "-"
    moments = sorted(one.artifact.moment for one in decisions)
    return f"{moments[0]:%Y-%m-%d}", f"{moments[-1]:%Y-%m-%d}"


def _bytes(decisions: Iterable[PruneDecision]) -> int:
    return sum(one.artifact.bytes for one in decisions)
