"""A recovery night: judged by its restores, shown with its commits and restores batch by batch."""

from __future__ import annotations

from nexmark.evidence.night_evidence import night_evidence
from nexmark.evidence.query_evidence import query_evidence
from nexmark.model import COMMIT, CPU, RESTORE, Value
from nexmark.report.charts import time_charts
from nexmark.report.table import report_text
from nexmark.store import BuildRecord, Store
from nexmark.verdict.nightly import judge_night
from tests.unit.store.night_builder import RULES, cpu, paired, record_pair, validate

GATE = RULES.model_copy(update={"metric": RESTORE, "calibration_nights": 3})
BASELINE = BuildRecord("sha-429", "4.2.9", "pypi:4.2.1")


def record(store: Store, number: int, ratio: float = 1.0) -> str:
    """A night whose candidate restores `ratio` times as long, and uses no more CPU time."""
    night = paired(
        number, queries=("q0",), gate_spec=GATE.model_dump(mode="json"), baseline_builds=[BASELINE]
    )
    store.record_night(night)
    validate(store, night.run, ("q0",))
    for stage, count in ((1, 3), (2, 6)):
        for pair in range(1, count + 1):
            noise = 1 + 0.01 * (pair % 3 - 1)
            arms = {
                arm: {
                    "measurement": cpu(10.0, figures={RESTORE: 2.0 * by, COMMIT: 300.0}),
                    "result": {"batches": [batch(0, None), batch(1, round(2000 * by))]},
                }
                for arm, by in (("candidate", ratio * noise), ("baseline", 1.0))
            }
            record_pair(store, night.run, "q0", pair, stage=stage, **arms)
    store.record_verdicts(
        night.run, judge_night(store.paired_night(night.run), store.earlier(night.run, 60), GATE)
    )
    return night.run


def batch(number: int, restore_ms: int | None) -> dict[str, object]:
    sizes = {"state_rows": 5, "state_bytes": 100, "input_rows": 9, "duration_ms": 1000}
    return {"id": number, "phase": "data", **sizes, "state_commit_ms": 300} | (
        {} if restore_ms is None else {"state_restore_ms": restore_ms}
    )


def test_a_doubled_restore_is_red_and_its_page_shows_the_batch(store: Store) -> None:
    for number in range(1, 5):
        record(store, number)
    run = record(store, 5, ratio=2.0)
    verdicts = {row.metric: row for row in store.verdicts(run)}
    assert (verdicts[RESTORE].value, verdicts[RESTORE].red) == (Value.REGRESSION, True)
    assert verdicts[COMMIT].value == verdicts[CPU].value == Value.OK
    text = report_text(night_evidence(store, store.night(run)).report)
    assert "Baseline, restore s" in text
    assert "| restore s | commit ms |" in text

    found = query_evidence(store, store.night(run), "q0")
    (chart,) = (x for x in time_charts(found) if x.title == "Commit and restore")
    assert ("candidate", 1, "restore", 4.0) in chart.rows
    assert ("baseline", 0, "commit", 0.3) in chart.rows
    assert ("baseline", 0, "restore") not in {row[:3] for row in chart.rows}
    assert "svg" in chart.svg()
