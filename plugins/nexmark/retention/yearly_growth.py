"""How much a home grows in a year of nights, estimated from what its newest nights left behind."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from statistics import fmean

from nexmark.config import Retention
from nexmark.model import grouped
from nexmark.retention.decision import Artifact, ArtifactKind, PruneDecision
from nexmark.retention.inventory import EXPERIMENTS

NIGHTS_A_YEAR = 365
#: The mean is over this many of the newest artifacts of each group.
NEWEST = 10


@dataclass(frozen=True)
class YearlyGrowth:
    """The bytes of one kind of artifact that nights leave."""

    kind: ArtifactKind
    night: float  # in a night of each DAG
    year: float  # in a year of such nights
    kept: float  # in a year, with the limits


def yearly_growth(decisions: Iterable[PruneDecision], rules: Retention) -> list[YearlyGrowth]:
    """Estimate the growth of each kind that every night adds to.

    Each DAG that has left something runs once a day, and each night has a new build. Copies of the
    jobs and class archives are left out: no night adds one, only a new version does.

    Args:
        decisions: The decisions on all artifacts of a home.
        rules: The limits.
    """
    limits = {
        ArtifactKind.RUNS: rules.run_nights,
        ArtifactKind.EVENT_LOGS: rules.event_log_nights,
        ArtifactKind.RAW_ROWS: rules.raw_row_nights,
        ArtifactKind.BUILDS: rules.builds,
        ArtifactKind.LOGS: rules.run_nights,
    }
    by_kind = grouped(_of_nights(decisions), lambda artifact: artifact.kind)
    return [_growth(kind, by_kind.get(kind, []), limit) for kind, limit in limits.items()]


def _of_nights(decisions: Iterable[PruneDecision]) -> list[Artifact]:
    """Return the artifacts of nights; the bytes of event logs do not count in run directories."""
    artifacts = [one.artifact for one in decisions if one.artifact.group != EXPERIMENTS]
    logs = {each.key: each.bytes for each in artifacts if each.kind == ArtifactKind.EVENT_LOGS}
    return [
        replace(each, bytes=each.bytes - logs.get(each.key, 0))
        if each.kind == ArtifactKind.RUNS
        else each
        for each in artifacts
    ]


def _growth(kind: ArtifactKind, artifacts: Sequence[Artifact], limit: int | None) -> YearlyGrowth:
    night = 0.0
    for group in grouped(artifacts, lambda artifact: artifact.group).values():
        newest = sorted(group, key=lambda artifact: artifact.moment)[-NEWEST:]
        night += fmean(artifact.bytes for artifact in newest)
    nights = NIGHTS_A_YEAR if limit is None else min(limit, NIGHTS_A_YEAR)
    return YearlyGrowth(kind, night, night * NIGHTS_A_YEAR, night * nights)
