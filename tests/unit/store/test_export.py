"""What is recorded can be had as files, whole or not at all, and be judged again from them."""

from __future__ import annotations

import csv
import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import duckdb
import pytest
import yaml

from nexmark.model import PROFILED
from nexmark.store import Store, StoreError, ValidationRecord
from nexmark.store.table_base import Base
from nexmark.verdict.__main__ import main as replay
from nexmark.verdict.measured_night import MeasuredNight
from nexmark.verdict.stored_nights import read_nights, write_verdicts
from nexmark.verdict.verdict import Verdict
from tests.unit.store.night_builder import RULES, canary, judge, paired, record_night, record_pair
from tests.unit.store.store_builder import night, record, repetition, series

EARLIER = 5


@pytest.fixture
def out(tmp_path: Path) -> Path:
    return tmp_path / "exports" / "all"


def rows(path: Path) -> list[dict[str, str]]:
    with path.open(newline="") as lines:
        return list(csv.DictReader(lines))


def without_before(night: MeasuredNight) -> MeasuredNight:
    """The night by itself: a file has each pair once, in its own night."""
    return replace(night, measured=tuple(replace(one, before=()) for one in night.measured))


def in_order(night: MeasuredNight) -> MeasuredNight:
    measured = sorted(night.measured, key=lambda one: (one.query, one.metric))
    return replace(night, measured=tuple(measured))


class Judging:
    """Judges nights as they come, and again from what is exported."""

    def __init__(self, store: Store, out: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.store, self.out, self._capsys = store, out, capsys
        self.gate = out.parents[1] / "gate.yaml"
        self.gate.write_text(yaml.safe_dump(RULES.model_dump(mode="json")))
        self.verdicts: list[Verdict] = []
        for number in range(1, EARLIER + 1):
            self.night(record_night(store, paired(number)))

    def night(self, run: str) -> list[Verdict]:
        found = judge(self.store, run)
        self.verdicts += found
        return found

    def value(self, query: str) -> str:
        """The last verdict on a query that decides."""
        return [str(x.value) for x in self.verdicts if x.query == query and x.decides][-1]

    def again(self) -> list[list[str]]:
        self.store.export(self.out, "csv")
        self._capsys.readouterr()
        arguments = ["--nights", str(self.out / "nights.csv"), "--gate", str(self.gate)]
        assert replay(arguments) == 0
        return sorted(csv.reader(self._capsys.readouterr().out.splitlines()))

    def as_judged(self) -> list[list[str]]:
        table: list[Sequence[str]] = list(write_verdicts(self.verdicts))
        return sorted(list(row) for row in table)


@pytest.fixture
def judging(store: Store, out: Path, capsys: pytest.CaptureFixture[str]) -> Judging:
    return Judging(store, out, capsys)


class TestReplay:
    """``python -m nexmark.verdict`` says of the exported nights what was said of them then."""

    def test_quiet_nights_and_a_slowdown_in_two_rounds(self, judging: Judging) -> None:
        judging.night(record_night(judging.store, paired(6), {"q5": 1.2}))
        assert judging.value("q5") == "REGRESSION"
        assert judging.again() == judging.as_judged()

    def test_what_ran_with_a_recorder_changes_no_verdict_and_no_history(
        self, judging: Judging
    ) -> None:
        run = record_night(judging.store, paired(6), {"q5": 1.2})
        before = judging.night(run)
        for query in ("q0", "q5"):
            record_pair(judging.store, run, query, stage=PROFILED, candidate=99, baseline=1)
        assert judge(judging.store, run) == before
        judging.night(record_night(judging.store, paired(7)))
        assert judging.again() == judging.as_judged()
        exported = rows(judging.out / "repetition.csv")
        recorded = [(x["query"], x["arm"]) for x in exported if x["stage"] == str(PROFILED)]
        assert sorted(recorded) == [
            (query, arm) for query in ("q0", "q5") for arm in ("baseline", "candidate")
        ]

    def test_a_candidate_with_confs_of_its_own_is_another_candidate(self, judging: Judging) -> None:
        for number, confs in ((6, {"spark.a": "1"}), (7, {"spark.a": "2"}), (8, {"spark.a": "1"})):
            tried = paired(number, candidate_conf=confs)
            judging.night(record_night(judging.store, tried))
        judging.again()
        exported = rows(judging.out / "nights.csv")
        of_night = {row["night"]: row["candidate"] for row in exported}
        *plain, first, second, again = of_night.values()
        assert set(plain) == {paired().build.id}
        assert first == again != second
        assert {x.split()[0] for x in (first, second)} == {paired().build.id}

    def test_a_wrong_result_and_one_that_was_not_verified(self, judging: Judging) -> None:
        run = record_night(judging.store, paired(6))
        judging.store.record_validation(ValidationRecord(run, "q5", False, ["rows missing"]))
        record_pair(judging.store, run, "q0", 2, baseline={"invalid": "digest differs"})
        judging.night(run)
        assert (judging.value("q5"), judging.value("q0")) == ("INVALID", "INVALID")
        assert judging.again() == judging.as_judged()

    def test_repetitions_queries_and_pairs_that_are_missing(self, judging: Judging) -> None:
        store = judging.store
        run = record_night(store, paired(6, queries=["q0", "q5"]))
        store.record_night(paired(6, repetitions=4))  # q10 did not run, and nothing ran four times
        record_pair(store, run, "q5", 2, candidate={"failed": "executor lost"})
        judging.night(run)
        values = {query: judging.value(query) for query in ("q0", "q5", "q10")}
        assert values == {"q0": "OK", "q5": "MISSING", "q10": "MISSING"}
        assert judging.again() == judging.as_judged()

    def test_a_night_of_few_queries_misses_no_others(self, judging: Judging) -> None:
        judging.night(record_night(judging.store, paired(6, queries=["q5"])))
        assert judging.again() == judging.as_judged()

    def test_a_job_of_a_person_is_judged_again_as_a_query_is(self, judging: Judging) -> None:
        names = ("q0", "busy_auctions")
        for number in (6, 7):
            run = record_night(judging.store, paired(number, queries=names), {"busy_auctions": 1.3})
            judging.night(run)
        assert judging.value("busy_auctions") == "REGRESSION"
        assert judging.again() == judging.as_judged()
        for name in ("nights.csv", "repetition.csv"):
            assert "busy_auctions" in {row["query"] for row in rows(judging.out / name)}

    def test_the_nights_that_are_read_are_those_of_the_store(self, judging: Judging) -> None:
        run = record_night(judging.store, paired(6, baselines={"q0": "sha-430"}))
        readings = [canary("before", 5, group="q5"), canary("after", 6, host="nexmark03")]
        judging.store.record_canary(run, readings)
        judging.store.export(judging.out, "csv")
        with (judging.out / "nights.csv").open(newline="") as lines:
            found = read_nights(lines)
        stored = [judging.store.paired_night(paired(number).run) for number in range(1, 7)]
        alone = [without_before(night) for night in stored]
        assert list(map(in_order, found)) == list(map(in_order, alone))

    @pytest.mark.parametrize(("after", "value"), [(11.5, "OK"), (16, "INVALID")])
    def test_a_host_that_was_not_steady(self, judging: Judging, after: float, value: str) -> None:
        """Of two hosts one changes; of the queries one has a canary of its own."""
        run = record_night(judging.store, paired(6))
        readings = [("nexmark02", 5.0, 5.0), ("nexmark03", 10.0, after)]
        for host, before, later in readings:
            both = [canary("before", before, host=host), canary("after", later, host=host)]
            judging.store.record_canary(run, both)
        group = [canary("before", 10, group="q5"), canary("after", 20, group="q5")]
        judging.store.record_canary(run, group)
        judging.night(run)
        assert (judging.value("q0"), judging.value("q5")) == (value, "INVALID")
        assert judging.again() == judging.as_judged()

    def test_nights_that_cannot_be_compared_are_in_files_of_their_own(
        self, judging: Judging
    ) -> None:
        other = paired(2, engine="spark-3.5.9", run_id="other")
        record_night(judging.store, other)
        record(judging.store, night(9))  # of bounds: in no file
        assert judging.again() == judging.as_judged()
        shape = judging.store.night(other.run).shape
        (file,) = judging.out.glob("nights-*.csv")
        assert file.name == f"nights-spark-3.5.9-smoke-local-{shape}.csv"
        assert {row["night"] for row in rows(file)} == {other.run}


class TestTables:
    @pytest.mark.parametrize("form", ["csv", "parquet"])
    def test_every_table_is_there_with_every_row(self, store: Store, out: Path, form: str) -> None:
        store.accept(record(store, night()), "ada", "right")
        written = store.export(out, form)
        names = {f"{name}.{form}" for name in [*Base.metadata.tables, "samples"]}
        assert set(written) == names == {x.name for x in out.iterdir()}
        assert written[f"repetition.{form}"] == written[f"acceptance.{form}"] == 2

    def test_csv_has_what_was_recorded(self, store: Store, out: Path) -> None:
        record(store, night())
        store.export(out, "csv")
        (recorded,) = rows(out / "night.csv")
        assert recorded["started"] == "2026-11-22T04:00:00+00:00"
        assert json.loads(recorded["queries"]) == ["q0", "q5"]
        assert recorded["seed"] == ""
        figures = rows(out / "repetition.csv")[0]
        assert (float(figures["cpu_s_per_mevent"]), figures["status"]) == (10.0, "ok")

    def test_parquet_has_the_types_of_the_columns(self, store: Store, out: Path) -> None:
        record(store, night())
        store.export(out, "parquet")
        query = f"SELECT started, repetitions, mode, seed FROM '{out / 'night.parquet'}'"
        ((started, *others),) = duckdb.sql(query).fetchall()
        assert started == night().started
        assert others == [1, "bounds", None]
        query = f"SELECT sum(cpu_s_per_mevent), bool_and(success) FROM '{out}/repetition.parquet'"
        query += f" JOIN '{out}/validation.parquet' USING (night_id, query)"
        assert duckdb.sql(query).fetchall() == [(20.0, True)]

    @pytest.mark.parametrize("form", ["csv", "parquet"])
    def test_samples_are_unpacked(self, store: Store, out: Path, form: str) -> None:
        store.record_night(night())
        store.record_repetition(repetition(night().run, "q5", series=[series()]))
        store.export(out, form)
        found = duckdb.sql(f"SELECT * FROM '{out}/samples.{form}' ORDER BY time").fetchall()
        assert [row[1:] for row in found] == [
            ("nexmark02", 1000.0, 0.0, 0.0, None, 9.0, None),
            ("nexmark02", 1001.001, 1.5, 0.0, None, 10.0, None),
            ("nexmark02", 1002.0, 3.25, 0.1, None, 12.5, None),
        ]
        (about,) = duckdb.sql(f"SELECT host, readings FROM '{out}/sample_series.{form}'").fetchall()
        assert about == ("nexmark02", 3)


class TestWhole:
    def test_a_directory_with_something_in_it_is_refused(self, store: Store, out: Path) -> None:
        out.mkdir(parents=True)
        (out / "mine").write_text("")
        with pytest.raises(
            StoreError, match=r"is not empty; give another directory: --out"
        ) as caught:
            store.export(out)
        assert "\n" not in str(caught.value)
        assert [x.name for x in out.iterdir()] == ["mine"]

    def test_an_empty_directory_is_filled(self, store: Store, out: Path) -> None:
        out.mkdir(parents=True)
        assert store.export(out)["night.parquet"] == 0
        assert (out / "night.parquet").exists()

    def test_what_cannot_be_finished_is_not_there(
        self, store: Store, out: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def full(*_: object) -> None:
            raise OSError(28, "No space left on device")

        monkeypatch.setattr("nexmark.store.export.write_nights", full)
        with pytest.raises(
            StoreError, match="No space left on device; give another directory: --out"
        ):
            store.export(out, "csv")
        assert list(out.parent.iterdir()) == []

    def test_a_place_that_cannot_be_written_is_one_line(self, store: Store) -> None:
        with pytest.raises(StoreError, match=r"cannot export to /proc/nowhere/x") as caught:
            store.export(Path("/proc/nowhere/x"))
        assert "\n" not in str(caught.value)
