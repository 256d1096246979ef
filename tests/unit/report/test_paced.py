"""A paced night: judged by latency, shown with the latencies of both arms."""

from __future__ import annotations

import pytest
from hdrh.histogram import HdrHistogram

from nexmark.evidence.night_evidence import night_evidence
from nexmark.evidence.query_evidence import query_evidence
from nexmark.evidence.rows import latencies_of
from nexmark.model import P50, P99, Value
from nexmark.report.charts import query_charts
from nexmark.report.evidence_files import night_html
from nexmark.report.table import report_text
from nexmark.store import Store
from tests.unit.store.night_builder import cpu, paired, record_of_metric, record_pair


def histogram(milliseconds: int, events: int = 1000) -> str:
    made = HdrHistogram(1, 3_600_000, 3)
    for n in range(events):
        made.record_value(milliseconds + n // 100)
    return str(made.encode().decode())


def record(store: Store, number: int, ratio: float = 1.0) -> str:
    """A night whose candidate takes `ratio` times as long, and no more CPU time."""

    def repetition(by: float) -> dict[str, object]:
        figures = {P50: 20.0 * by, P99: 50.0 * by}
        return {"measurement": cpu(10.0, figures=figures, latency=histogram(round(20 * by)))}

    return record_of_metric(store, number, P50, ratio, repetition)


def test_a_delay_is_a_regression_of_the_latency_and_is_shown_as_such(store: Store) -> None:
    for number in range(1, 5):
        record(store, number)
    run = record(store, 5, ratio=1.3)
    verdicts = {row.metric: row for row in store.verdicts(run)}
    assert verdicts[P50].value == Value.REGRESSION
    assert verdicts[P50].red
    assert (verdicts[P99].value, verdicts[P99].decides) == (Value.WATCH, False)
    assert verdicts["cpu_s_per_mevent"].value == Value.OK

    night = night_evidence(store, store.night(run))
    text = report_text(night.report)
    assert "Baseline, p50 ms" in text
    assert "| p50 ms | p99 ms |" in text
    assert "p50 ms 1.3" in text
    page = night_html(night)
    assert "p50 ms, ratio and 95 % interval" in page
    (line,) = night.lines
    assert line.row.cpu_s_per_mevent == 10.0
    assert line.row.verdict is not None
    assert line.row.verdict.baseline == pytest.approx(20.0)

    found = query_evidence(store, store.night(run), "q0")
    assert found.pairs[0].baseline_figure == 20.0
    chart = next(each for each in query_charts(found) if each.title == "Latency")
    assert chart.rows[1][:5] == ("baseline", 9, 9000, 24, 28)
    assert "svg" in chart.svg()


def test_histograms_of_an_arm_are_added(store: Store) -> None:
    run = record(store, 1)
    (ours, theirs) = latencies_of(store.repetitions(run))
    assert (ours.events, theirs.events, theirs.longest) == (9000, 9000, 29)
    assert theirs.percentiles == (24, 28, 29, 29)
    assert theirs.curve[0] == (0.0, 20)
    assert theirs.curve[-1][0] == 99.95  # of 9,000 events, 4 are rarer


def test_other_nights_have_no_latencies(store: Store) -> None:
    night = paired(1, queries=("q0",))
    store.record_night(night)
    record_pair(store, night.run, "q0", candidate=10.0)
    assert latencies_of(store.repetitions(night.run)) == []
