"""Pages of experiments: every arm, what it saves, where the gain comes from; not for everybody."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from fastapi.testclient import TestClient

from nexmark.config import EXPERIMENT_DAG_ID, load_experiments
from nexmark.evidence.experiment_evidence import experiments_of
from nexmark.experiments.experiment_rows import keep, records_of
from nexmark.experiments.experiment_run import ExperimentResult
from nexmark.experiments.gains import crossings
from nexmark.store import Store, StoreError
from tests.unit.experiments.test_gains import gain_of, of_gain
from tests.unit.web.conftest import TestAccess
from tests.unit.web.pages import shown

ENTRY = load_experiments()["long-window"]
TRIALS = (of_gain(1000, 1.25), of_gain(16_000, 0.5))
RESULT = ExperimentResult(
    ENTRY, {"first": "4.3.0", "second": "4.2.1"}, 4, TRIALS, tuple(crossings(TRIALS))
)


def test_a_page_shows_every_arm_with_its_gain_and_where_it_turns_round(
    browser: TestClient, store: Store
) -> None:
    assert "Nothing has been measured" in shown(browser, "/experiments")
    store.record_experiment("manual__2026-11-24T10:00:00+00:00", records_of(RESULT))
    assert "/experiment/manual__2026-11-24T10:00:00+00:00" in shown(browser, "/experiments")
    page = shown(browser, "/experiment/manual__2026-11-24T10:00:00+00:00")
    gains = [f"{100 * gain_of(trial).share:.1f} %" for trial in TRIALS]
    for text in (ENTRY.question, *gains, "60 %", "4.3.0, 4.2.1", "pays above about"):
        assert text in page
    assert "same speed" in page or "faster" in page  # of the attribution, which comes back whole
    assert browser.get("/experiment/another").status_code == 404


def test_who_may_not_read_the_dag_sees_no_experiment(
    browser: TestClient, store: Store, access: TestAccess
) -> None:
    store.record_experiment("one", records_of(RESULT))
    access.dags = lambda dag: dag != EXPERIMENT_DAG_ID
    assert ENTRY.name not in shown(browser, "/experiments")
    assert browser.get("/experiment/one").status_code == 404


def test_a_result_is_kept_once_with_a_page_that_says_what_is_wrong(
    store: Store, database: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NEXMARK_DB", database)
    keep(RESULT, "one", tmp_path)
    wrong = replace(RESULT, trials=(replace(TRIALS[0], reference="WRONG: a row is missing"),))
    found, page = keep(wrong, "one", tmp_path)
    assert not found.right
    text = page.read_text()
    assert "Not all arms are equal and right." in text
    assert "WRONG: a row is missing" in text
    assert "<script" not in text
    assert [len(one.arms) for one in experiments_of(store)] == [2]


def test_a_result_that_cannot_be_recorded_has_its_page_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NEXMARK_DB", "postgresql://ada@127.0.0.1:9/results")
    with pytest.raises(StoreError, match=r"refused.*; what was measured is kept: .*html") as caught:
        keep(RESULT, "one", tmp_path / "kept")
    assert "\n" not in str(caught.value)
    assert ENTRY.question in (tmp_path / "kept" / "experiment.html").read_text()
    assert "saves" in (tmp_path / "kept" / "experiment.json").read_text()
