"""One query over all nights: its ratios, the changes that lasted, what was accepted of it."""

from __future__ import annotations

import csv
import io
import math
import subprocess
import sys
from dataclasses import replace
from datetime import timedelta
from typing import Any

import numpy as np
import pytest

from nexmark.cli.app import main
from nexmark.config import BUILD_DAG_ID
from nexmark.model import CPU, METRICS, Value
from nexmark.store import BuildRecord, Store, StoreError
from nexmark.store.query_history import lasting_changes, trail
from nexmark.store.verdict_rows import row_of
from nexmark.verdict.verdict import Verdict
from tests.unit.store.night_builder import paired
from tests.unit.store.store_builder import STARTED, record, statements

NOISE = 0.01


def verdict(run: str, shift: float, **changes: Any) -> Verdict:
    """A quiet verdict with all numbers on a shift."""
    numbers = {
        name: math.exp(shift + z * NOISE) for name, z in (("ratio", 0), ("lo", -2), ("hi", 2))
    }
    values = {"decides": True, "shift": shift, "pairs": 5, "noise": NOISE, "baseline_build": "b0"}
    blank = Verdict(run, "q5", CPU, Value.OK, "", "paired", 2)
    return replace(blank, **{**numbers, **values, **changes})


def judged_night(store: Store, number: int, shift: float = 0.0, **changes: Any) -> str:
    """A judged night with its own build; ``fields`` are fields of the night."""
    fields = changes.pop("fields", {})
    made = paired(
        number,
        run_id=f"n{number}",
        started=STARTED + timedelta(days=number),
        build=BuildRecord(f"b{number}", "4.3.0", f"tarball:{number}"),
        **fields,
    )
    store.record_night(made)
    store.record_verdicts(made.run, [verdict(made.run, shift, **changes)])
    return made.run


def season(store: Store, count: int = 30, slower_from: int = 21, size: float = 0.1) -> None:
    """``count`` nights; from ``slower_from`` on they are slower."""
    noise = np.random.default_rng(1).normal(0, NOISE, count + 1)
    for number in range(1, count + 1):
        judged_night(store, number, noise[number] + (size if number >= slower_from else 0.0))


class TestReading:
    def test_a_change_is_dated_with_the_builds_on_both_sides(self, store: Store) -> None:
        season(store)
        history = store.history("q5")
        assert [point.verdict.build for point in history.points] == [f"b{n}" for n in range(1, 31)]
        (change,) = history.changes
        assert (change.last.verdict.build, change.first.verdict.build) == ("b20", "b21")
        assert change.change.ratio == pytest.approx(math.exp(0.1), abs=0.01)

    @pytest.mark.parametrize(
        "other",
        [
            {"fields": {"workload_spec": {"events": 7, "seed": 1, "repetitions": 1}}},
            {"baseline_build": "never compared with b0"},
            {"ratio": None, "shift": None, "value": Value.MISSING},
        ],
        ids=["another shape", "a baseline without a link", "nothing measured"],
    )
    def test_the_good_build_of_a_change_is_of_its_series(
        self, store: Store, other: dict[str, Any]
    ) -> None:
        """A bisection begins with it."""
        season(store)
        changes = {name: value for name, value in other.items() if name != "fields"}
        between = STARTED + timedelta(days=20, hours=9)
        fields = {"started": between, **other.get("fields", {})}
        made = replace(paired(31, run_id="n31"), build=BuildRecord("b31", "4.3.0", "tarball:31"))
        store.record_night(replace(made, **fields))
        store.record_verdicts(made.run, [replace(verdict(made.run, 0.3), **changes)])
        history = store.history("q5")
        (change,) = history.changes
        assert (change.last.verdict.build, change.first.verdict.build) == ("b20", "b21")
        night = store.night(history.points[-1].verdict.night)
        (found,) = lasting_changes(trail(store, night, "q5", CPU, 60))
        assert (found.last.verdict.build, found.first.verdict.build) == ("b20", "b21")

    def test_a_moved_baseline_neither_hides_nor_makes_a_change(self, store: Store) -> None:
        noise = np.random.default_rng(2).normal(0, NOISE, 41)
        for number in range(1, 21):
            judged_night(store, number, noise[number])
        judged_night(store, 21, 0.1, value=Value.REGRESSION, fresh_pairs=10)
        for number in range(22, 41):
            judged_night(store, number, noise[number], baseline_build="b21")
        (change,) = store.history("q5").changes
        assert (change.first.verdict.build, change.first.verdict.value) == ("b21", "REGRESSION")

    def test_acceptances_are_there_with_what_became_of_them(self, store: Store) -> None:
        run = record(store, paired(1, repetitions=1))
        store.record_verdicts(run, [verdict(run, 0.0)])
        store.accept(run, "ada", "first", ["q5"])
        store.accept(run, "ada", "again", ["q0", "q5"])
        elsewhere = record(store, paired(2, repetitions=1, cluster="moon", run_id="elsewhere"))
        store.accept(elsewhere, "ada", "of another cluster", ["q5"])
        found = store.history("q5").acceptances
        assert [(x.reason, state) for x, state in found] == [
            ("first", "superseded"),
            ("again", "counts"),
        ]

    def test_the_newest_gate_is_believed(self, store: Store) -> None:
        run = judged_night(store, 1, 0.2, gate_version=3)
        store.record_verdicts(run, [verdict(run, 0.1)])
        (point,) = store.history("q5").points
        assert point.verdict.ratio == pytest.approx(math.exp(0.2))

    def test_what_a_person_tried_is_not_among_the_nights(self, store: Store) -> None:
        judged_night(store, 1)
        judged_night(store, 2, fields={"dag_id": BUILD_DAG_ID, "teaches": False})
        judged_night(store, 3, fields={"teaches": False})
        assert [point.verdict.build for point in store.history("q5").points] == ["b1"]

    def test_what_is_not_asked_for_is_that_of_the_newest_night(self, store: Store) -> None:
        judged_night(store, 1, fields={"workload": "large"})
        judged_night(store, 2)
        judged_night(store, 3, query="q0", fields={"workload": "tiny"})
        assert store.history("q5").workload == "smoke"
        assert store.history("q5", place={"workload": "large"}).points[0].verdict.build == "b1"

    def test_without_pairs_no_change_is_looked_for(self, store: Store) -> None:
        for number in range(1, 31):
            judged_night(store, number, 0.0 if number < 16 else 0.5, mode="bounds")
        history = store.history("q5")
        assert (len(history.points), history.changes, history.paired) == (30, (), False)

    @pytest.mark.parametrize(
        ("query", "metric", "place", "said"),
        [
            ("q55", CPU, {}, "query 'q55' is not known; did you mean 'q5'?"),
            ("q5", "wall", {}, "metric 'wall' is not known; did you mean 'wall_s'?"),
            ("q5", CPU, {"engine": "spark-4.3"}, "did you mean 'spark-4.3.0'?"),
            ("q5", CPU, {"cluster": "moon"}, "cluster 'moon': no night of it is recorded"),
            ("q7", CPU, {}, "q7: no night has judged it by .*; the queries that were: q5"),
            ("q5", "wall_s", {"workload": "smoke"}, "q5, workload smoke: no night .* were: none"),
        ],
    )
    def test_what_is_not_there_is_reported(
        self, store: Store, query: str, metric: str, place: dict[str, str | None], said: str
    ) -> None:
        judged_night(store, 1)
        with pytest.raises(StoreError, match=said):
            store.history(query, metric, place)

    def test_nothing_at_all_is_reported(self, store: Store) -> None:
        with pytest.raises(StoreError, match="no night is judged yet; `nexmark run` first"):
            store.history("q5")

    def test_the_statements_do_not_grow_with_the_nights(self, store: Store) -> None:
        """A page of the web UI asks for 400 nights of 23 queries."""
        rows = []
        for number in range(40):
            night = paired(
                run_id=f"night {number}", started=STARTED + timedelta(days=number), queries=[]
            )
            store.record_night(night)
            for query in (0, 5):
                for metric in METRICS:
                    one = verdict(night.run, 0.001 * (number % 7), query=f"q{query}", metric=metric)
                    rows.append(row_of(one, night.run, STARTED))
        with store._writing() as session:
            session.add_all(rows)
        with statements(store) as made:
            assert len(store.history("q5").points) == 40
        assert len(made) < 8


def test_whoever_opens_the_store_does_not_wait_for_numpy() -> None:
    """Every task of a night opens it."""
    code = "import nexmark.store, sys; print({'numpy', 'scipy', 'pandas'} & set(sys.modules))"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout == "set()\n"


class TestCommand:
    @pytest.fixture(autouse=True)
    def setting(self, monkeypatch: pytest.MonkeyPatch, database: str) -> None:
        monkeypatch.setenv("NEXMARK_DB", database)

    def test_series_changes_and_acceptances_are_printed(
        self, store: Store, capsys: pytest.CaptureFixture[str]
    ) -> None:
        season(store)
        assert main(["history", "--query", "q5", "--limit", "3"]) == 0
        lines = capsys.readouterr().out.splitlines()
        assert lines[0] == f"q5, {CPU}: spark-4.3.0 on smoke, cluster local"
        assert lines[1] == "30 nights since 2026-11-22 04:00 UTC, the last 3"
        assert lines[2].split()[:4] == ["night", "build", "against", "ratio"]
        assert lines[5].split()[3:7] == ["4.3.0", "30", "b30", "b0"]
        assert "2026-12-12 04:00 UTC  10." in lines[8]
        assert "more" in lines[8]
        assert "from 4.3.0 20 b20 to 4.3.0 21 b21" in lines[8]
        assert lines[9] == "acceptances: none"

    def test_csv_has_every_night_and_where_a_change_begins(
        self, store: Store, capsys: pytest.CaptureFixture[str]
    ) -> None:
        season(store)
        assert main(["history", "--query", "q5", "--limit", "3", "--format", "csv"]) == 0
        rows = list(csv.DictReader(io.StringIO(capsys.readouterr().out)))
        assert len(rows) == 30
        assert {row["night"][-3:] for row in rows if row["change"]} == {"n21"}
        assert rows[0]["verdict"] == "OK"

    def test_without_pairs_it_says_that_changes_were_not_looked_for(
        self, store: Store, capsys: pytest.CaptureFixture[str]
    ) -> None:
        judged_night(store, 1, mode="bounds")
        assert main(["history", "--query", "q5"]) == 0
        assert "none of these nights has pairs" in capsys.readouterr().out

    def test_an_unknown_query_is_one_line(
        self, store: Store, capsys: pytest.CaptureFixture[str]
    ) -> None:
        judged_night(store, 1)
        assert main(["history", "--query", "q55"]) == 2
        captured = capsys.readouterr()
        assert captured.out == ""
        assert captured.err.count("\n") == 1

    def test_no_query_is_reported(self, capsys: pytest.CaptureFixture[str]) -> None:
        assert main(["history", "--query", ""]) == 2
        assert "which query? give --query q5" in capsys.readouterr().err
