"""A metric is an entry of ``model.METRICS``; the gate, the store, the CSV and the table follow."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from nexmark.evidence.night_evidence import make_report
from nexmark.model import METRICS, Metric, Value
from nexmark.report.table import render_table
from nexmark.store import Store
from nexmark.verdict.verdict import Verdict
from tests.unit.store.night_builder import cpu, judge, paired, record_pair, validate

MADE_UP = Metric("made_up_s", "s", "Made up(s)", decimals=2, tabled=True)
NIGHTS = 5
NOISE = (0.998, 1.0, 1.003)


@pytest.fixture
def metric(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Metric:
    """A metric that nothing but the registry knows."""
    entry: Metric = getattr(request, "param", MADE_UP)
    monkeypatch.setitem(METRICS, entry.name, entry)
    return entry


def record(store: Store, number: int, candidate: float) -> str:
    """Record a night in which only the figure is new, 4 s in the baseline."""
    night = paired(number, queries=("q5",))
    store.record_night(night)
    validate(store, night.run, night.queries)
    for pair, noise in enumerate(NOISE, 1):
        figures = {"candidate": candidate * noise, "baseline": 4.0 / noise}
        arms = {
            arm: {"measurement": cpu(10.0 * noise, figures={MADE_UP.name: value})}
            for arm, value in figures.items()
        }
        record_pair(store, night.run, "q5", pair, **arms)
    return night.run


def judged(store: Store, ratio: float) -> Verdict:
    """Judge quiet nights, then one with a change; return what is said of the figure."""
    for number in range(1, NIGHTS + 1):
        judge(store, record(store, number, 4.0))
    verdicts = judge(store, record(store, NIGHTS + 1, 4.0 * ratio))
    (found,) = (x for x in verdicts if x.metric == MADE_UP.name)
    return found


@pytest.mark.parametrize(
    ("metric", "ratio", "value"),
    [
        (MADE_UP, 1.0, Value.OK),
        (MADE_UP, 1.5, Value.WATCH),
        (MADE_UP, 0.5, Value.FASTER),
        (Metric("made_up_s", higher_is_better=True), 1.5, Value.FASTER),
        (Metric("made_up_s", higher_is_better=True), 0.5, Value.WATCH),
    ],
    indirect=["metric"],
)
def test_the_gate_judges_it_by_its_direction_and_never_red(
    store: Store, metric: Metric, ratio: float, value: Value
) -> None:
    found = judged(store, ratio)
    assert (found.value, found.red) == (value, False)
    assert found.ratio == pytest.approx(ratio, rel=0.02)


def test_the_store_keeps_its_figures_and_its_verdict(store: Store, metric: Metric) -> None:
    judged(store, 1.5)
    run = paired(NIGHTS + 1).run
    assert {row.figures[metric.name] for row in store.repetitions(run)} >= {4.0, 6.0}
    (row,) = (x for x in store.verdicts(run) if x.metric == metric.name)
    assert (row.value, row.candidate, row.baseline) == ("WATCH", 6.0, 4.0)
    history = store.history("q5", metric.name)
    assert [point.verdict.value for point in history.points][-2:] == ["OK", "WATCH"]


def test_the_replay_csv_has_it(store: Store, metric: Metric, tmp_path: Path) -> None:
    judged(store, 1.5)
    store.export(tmp_path / "out", "csv")
    with (tmp_path / "out" / "nights.csv").open(newline="") as lines:
        rows = [row for row in csv.DictReader(lines) if row["metric"] == metric.name]
    assert len(rows) == 2 * len(NOISE) * (NIGHTS + 1)
    assert {float(row["value"]) for row in rows[-6:]} >= {4.0, 6.0}


def test_the_table_has_a_column_for_it(store: Store, metric: Metric) -> None:
    judged(store, 1.5)
    table = render_table(make_report(store, paired(NIGHTS + 1).run).rows).splitlines()
    assert [cell.strip() for cell in table[1].split("|")][-3:-1] == ["Made up(s)", "Verdict"]
    assert [cell.strip() for cell in table[3].split("|")][-3:-1] == ["6.00", "OK"]
    assert len({len(line) for line in table}) == 1


def test_no_entry_no_trace(store: Store) -> None:
    run = record(store, 1, 4.0)
    assert MADE_UP.name not in {x.metric for x in store.paired_night(run).measured}
    assert "Made up" not in render_table(make_report(store, run).rows)
