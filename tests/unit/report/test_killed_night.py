"""A recovery night: judged by its restores, shown with its commits and restores batch by batch."""

from __future__ import annotations

from nexmark.evidence.night_evidence import night_evidence
from nexmark.evidence.query_evidence import query_evidence
from nexmark.model import COMMIT, CPU, RESTORE, Value
from nexmark.report.charts import time_charts
from nexmark.report.table import report_text
from nexmark.store import Store
from tests.unit.store.night_builder import cpu, record_of_metric


def record(store: Store, number: int, ratio: float = 1.0) -> str:
    """A night whose candidate restores `ratio` times as long, and uses no more CPU time."""

    def repetition(by: float) -> dict[str, object]:
        return {
            "measurement": cpu(10.0, figures={RESTORE: 2.0 * by, COMMIT: 300.0}),
            "result": {"batches": [batch(0, None), batch(1, round(2000 * by))]},
        }

    return record_of_metric(store, number, RESTORE, ratio, repetition)


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
