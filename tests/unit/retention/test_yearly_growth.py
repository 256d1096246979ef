"""What a year of nights leaves is worked out from the newest nights of each DAG and the limits."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from nexmark.config import Retention
from nexmark.retention.decision import Artifact, ArtifactKind, PruneDecision
from nexmark.retention.prune_table import growth_table
from nexmark.retention.yearly_growth import YearlyGrowth, yearly_growth

RULES = Retention(event_log_nights=14, run_nights=60, raw_row_nights=400, builds=4)


def left(
    size: int, kind: ArtifactKind = ArtifactKind.RUNS, dag: str = "a", days: int = 0
) -> PruneDecision:
    """What a night of a DAG left some days ago."""
    moment = datetime(2026, 11, 27, tzinfo=UTC) - timedelta(days=days)
    return PruneDecision(Artifact(kind, f"{dag}-{days}", dag, moment, size), "newest 60")


def growth_of(kind: ArtifactKind, *decisions: PruneDecision) -> YearlyGrowth:
    (growth,) = (each for each in yearly_growth(decisions, RULES) if each.kind == kind)
    return growth


def test_a_night_is_the_mean_of_each_dag_and_the_limit_counts_for_each() -> None:
    growth = growth_of(ArtifactKind.RUNS, left(100), left(300, days=1), left(1000, dag="b"))
    assert growth == YearlyGrowth(ArtifactKind.RUNS, 1200, 1200 * 365, 1200 * 60)


def test_old_nights_do_not_count() -> None:
    nights = [left(100, days=days) for days in range(10)]
    assert growth_of(ArtifactKind.RUNS, *nights, left(10**9, days=10)).night == 100


def test_event_logs_are_not_counted_with_their_run() -> None:
    decisions = left(1000), left(900, ArtifactKind.EVENT_LOGS)
    assert growth_of(ArtifactKind.RUNS, *decisions).night == 100
    assert growth_of(ArtifactKind.EVENT_LOGS, *decisions).kept == 900 * 14


def test_a_limit_beyond_a_year_keeps_the_whole_year() -> None:
    growth = growth_of(ArtifactKind.RAW_ROWS, left(10, ArtifactKind.RAW_ROWS))
    assert growth.kept == growth.year == 3650


def test_an_experiment_is_no_night() -> None:
    assert growth_of(ArtifactKind.RUNS, left(100, dag="experiments")).night == 0


@pytest.mark.parametrize("kind", [ArtifactKind.JOBS, ArtifactKind.ARCHIVES])
def test_what_no_night_adds_does_not_grow(kind: ArtifactKind) -> None:
    lines = growth_table([left(100, kind)], RULES).splitlines()
    assert kind.value not in "".join(lines)
    assert lines[-1].split() == ["all", *["0", "bytes"] * 3]
