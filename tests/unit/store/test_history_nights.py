"""Stored nights of mode history, which is gone, can be read by everything that reads nights."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from nexmark.cli.app import main
from nexmark.evidence.night_evidence import make_report, night_evidence
from nexmark.report.evidence_files import night_html, write_report
from nexmark.store import Store
from nexmark.verdict.__main__ import main as replay
from tests.unit.store.history_nights import (
    GATE_SPEC,
    SLOWER,
    history_night,
    record_history,
    verdicts,
)
from tests.unit.store.night_builder import judge, paired, record_night


@pytest.fixture
def run(store: Store) -> str:
    """The newest of three nights of the mode."""
    return [record_history(store, number) for number in (1, 2, 3)][-1]


@pytest.fixture(autouse=True)
def _database(database: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NEXMARK_DB", database)


def test_the_night_and_its_verdicts_are_as_they_were(store: Store, run: str) -> None:
    assert (store.night(run).mode, store.night(run).gate_spec) == ("history", GATE_SPEC)
    assert store.query_verdicts(run) == verdicts(run)


def test_the_report_has_its_verdicts_and_files(store: Store, run: str, tmp_path: Path) -> None:
    report = make_report(store, run)
    assert [(row.query, row.verdict, row.red) for row in report.rows] == [
        ("q0", "CALIBRATING", False),
        ("q5", "REGRESSION", True),
    ]
    written = tmp_path / "written"
    write_report(written, store, run)
    table = (written / "table.txt").read_text()
    assert SLOWER in table
    assert "mode history" in table


def test_the_evidence_of_it_can_be_collected(store: Store, run: str) -> None:
    page = night_html(night_evidence(store, store.night(run)))
    assert "mode history" in page


def test_the_history_of_a_query_has_it(run: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["history", "--query", "q5"]) == 0
    assert capsys.readouterr().out.count("REGRESSION") == 3
    assert main(["history", "--query", "q5", "--format", "csv"]) == 0
    assert capsys.readouterr().out.count(",history,") == 3
    assert main(["nights"]) == 0
    assert run.split("/")[1] in capsys.readouterr().out


def test_it_is_exported_and_is_no_night_to_judge_again(
    store: Store, run: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    tonight = record_night(store, paired(5))
    judge(store, tonight)
    store.export(tmp_path / "out", "csv")
    with (tmp_path / "out" / "night.csv").open(newline="") as lines:
        assert [row["mode"] for row in csv.DictReader(lines)] == [*["history"] * 3, "paired"]
    with (tmp_path / "out" / "nights.csv").open(newline="") as lines:
        assert {row["night"] for row in csv.DictReader(lines)} == {tonight}
    assert replay(["--nights", str(tmp_path / "out" / "nights.csv")]) == 0
    assert run not in capsys.readouterr().out


def test_the_gate_learns_nothing_from_it(store: Store, run: str) -> None:
    store.record_night(paired(5))
    assert store.earlier(paired(5).run, 60) == []


def test_the_past_of_pairs_goes_on_beside_it(store: Store, run: str) -> None:
    judge(store, record_night(store, paired(5, queries=["q5"])))
    record_history(store, 6)
    assert {point.mode for point in store.history("q5").points} == {"history", "paired"}


def test_it_can_be_accepted_as_the_baseline(store: Store, run: str) -> None:
    store.accept(run, "ada", "wanted", ["q5"])
    (row,) = store.acceptances()
    assert row.night_id == history_night(3).run
