"""What the store is asked for is what it gives: of one run, place or query, in order."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from nexmark.model import CPU, FIRST_ROUND, SUITE, Mode, Value
from nexmark.store import BuildRecord, Store, StoreError, ValidationRecord
from nexmark.store.query_history import RatioPoint, trail
from nexmark.store.reading import LISTED, of_one_moment
from nexmark.store.table_rows import CompatibilityRow, ExperimentRow, SelfTestRow
from nexmark.verdict.bounds import BoundsArm, BoundsRepetition
from nexmark.verdict.verdict import Verdict
from tests.unit.store.conftest import SQLITE
from tests.unit.store.night_builder import canary, judged
from tests.unit.store.store_builder import (
    STARTED,
    by_bounds,
    measurement,
    night,
    record,
    repetition,
    series,
)

PLACE = ("spark-4.3.0", "smoke", "local")
FULL = Verdict(
    "", "q5", CPU, Value.REGRESSION, "slower", "paired", 2, True, 1.2, 1.1, 1.3, 0.07, 0.18,
    0.01, 5, 10, 0.02, 1.5, 0.25, "b0",
    repetitions=5,
)  # fmt: skip


@pytest.fixture
def backend() -> str:
    return SQLITE


class TestRuns:
    def some(self, store: Store, count: int) -> list[str]:
        for number in range(1, count + 1):
            store.record_night(night(number, run_id=f"manual__{number}"))
        return [night(run_id=f"manual__{number}").run for number in range(count, 0, -1)]

    @pytest.mark.parametrize(("count", "more"), [(2, ""), (LISTED, ""), (LISTED + 1, ", ...")])
    def test_five_are_listed_the_newest_first(self, store: Store, count: int, more: str) -> None:
        listed = ", ".join(self.some(store, count)[:5]) + more
        with pytest.raises(StoreError) as caught:
            store.find_run("")
        assert str(caught.value) == f"which run? The newest are: {listed}; give one: --run NAME"
        with pytest.raises(StoreError) as caught:
            store.find_run("manual")
        assert str(caught.value) == f"run 'manual' may be any of: {listed}; give the whole"

    def test_the_nearest_are_listed_each_once(self, store: Store) -> None:
        for number, name in enumerate(("release", "nightly", "nightly-2"), 1):
            store.record_night(night(number, dag_id=f"dag_{name}", run_id=name))
        with pytest.raises(StoreError) as caught:
            store.find_run("nightli")
        nearest = "dag_nightly/nightly, dag_nightly-2/nightly-2"
        assert str(caught.value) == f"run 'nightli' is not known; the nearest are: {nearest}"

    def test_where_nothing_is_near_the_newest_are_listed(self, store: Store) -> None:
        runs = self.some(store, 2)
        with pytest.raises(StoreError) as caught:
            store.find_run("%")
        assert str(caught.value).endswith(f"the nearest are: {', '.join(runs)}")

    def test_as_many_are_near_as_there_are_runs_to_list(self, store: Store) -> None:
        """Each has two names, and both may be near."""
        self.some(store, LISTED + 1)
        with pytest.raises(StoreError) as caught:
            store.find_run("manual_7")
        assert str(caught.value).count("manual__") == LISTED

    def test_the_whole_name_is_found_before_a_part_of_others(self, store: Store) -> None:
        self.some(store, 12)
        assert store.find_run("manual__1").run_id == "manual__1"
        assert store.find_run(night(run_id="manual__1").run).run_id == "manual__1"
        assert store.find_run("__12").run_id == "manual__12"

    def test_the_same_name_in_two_dags_is_refused(self, store: Store) -> None:
        for number, dag in enumerate(("a", "b"), 1):
            store.record_night(night(number, dag_id=dag, run_id="same"))
        with pytest.raises(StoreError, match="run 'same' may be any of: b/same, a/same; give"):
            store.find_run("same")

    def test_a_run_is_recorded_or_not(self, store: Store) -> None:
        (run,) = self.some(store, 1)
        assert (store.recorded(run), store.recorded("x"), store.night(run).id) == (True, False, run)
        with pytest.raises(StoreError, match="run 'x' is not recorded; its preflight has to pass"):
            store.night("x")

    def test_builds_are_known_by_id_and_by_run(self, store: Store) -> None:
        other = BuildRecord("sha-429", "4.2.9", "pypi")
        first = judged(store, 1, FULL)
        second = judged(store, 2, FULL, build=other)
        assert store.build("sha-429").version == "4.2.9"
        assert [x.id for x in store.builds(["sha-429", "none"])] == ["sha-429"]
        assert store.candidates([first, second, "none"]) == {first: "sha-430", second: "sha-429"}
        with pytest.raises(StoreError, match="build 'none' is not recorded"):
            store.build("none")


class TestRows:
    def test_repetitions_are_by_query_arm_stage_and_number(self, store: Store) -> None:
        other = night(2).run
        for number in (1, 2):
            store.record_night(night(number))
        wanted = [
            (query, arm, stage, number)
            for query in ("q0", "q5")
            for arm in ("baseline", "candidate")
            for stage in (FIRST_ROUND, 2)
            for number in (1, 2)
        ]
        for query, arm, stage, number in wanted[::-1]:
            store.record_repetition(repetition(night().run, query, number, arm=arm, stage=stage))
        store.record_repetition(repetition(other, "q5"))
        found = store.repetitions(night().run)
        assert [(x.query, x.arm, x.stage, x.number) for x in found] == wanted
        own = store.repetitions(night().run, ["q5"], leave_out=("confs",))
        assert [x.query for x in own] == ["q5"] * 8
        assert "confs" not in vars(own[0])
        assert "batch_list" in vars(own[0])

    def test_series_are_of_one_repetition(self, store: Store) -> None:
        store.record_night(night())
        for number in (1, 2):
            own = [series(f"host{number}"), series(f"a{number}")]
            store.record_repetition(repetition(night().run, "q5", number, series=own))
        first, second = store.repetitions(night().run)
        assert [x.host for x in store.sample_series(second.id)] == ["a2", "host2"]
        assert [x.host for x in store.sample_series(first.id)] == ["a1", "host1"]

    def test_rows_of_a_night_are_of_that_night_in_order(self, store: Store) -> None:
        runs = [night(number).run for number in (1, 2)]
        early, late = STARTED, STARTED + timedelta(hours=1)
        for number, run in enumerate(runs, 1):
            store.record_night(night(number))
            for query in ("q5", "q0"):
                store.record_validation(ValidationRecord(run, query, True))
            said = {"baseline_build": "b", "outcome": "ok", "red": False, "reason": "r"}
            rows = [CompatibilityRow(query=query, **said) for query in ("q9", "q1")]
            store.record_compatibility(run, rows)
            taken = ((7.0, late), (5.0, early), (6.0, early))
            store.record_canary(run, [canary("before", x, taken=at) for x, at in taken])
        for run in runs:
            assert [x.query for x in store.validations(run)] == ["q0", "q5"]
            assert [x.query for x in store.compatibility(run)] == ["q9", "q1"]
            assert [x.value for x in store.canaries(run)] == [5.0, 6.0, 7.0]

    def test_experiments_are_of_one_measurement_or_of_all(self, store: Store) -> None:
        own = {"name": "e", "question": "?", "spark_version": "4.3.0", "pairs": 3, "query": "q5"}
        own |= {"size": 1, "outcome": "right", "remarks": ""}
        for run in ("a", "b"):
            store.record_experiment(run, [ExperimentRow(**own, arm=f"{run}{n}") for n in (2, 1)])
        assert [x.arm for x in store.experiments("b")] == ["b2", "b1"]
        assert [x.arm for x in store.experiments()] == ["a2", "a1", "b2", "b1"]

    def test_self_tests_are_of_an_engine_a_gate_and_dags(self, store: Store) -> None:
        made = {1: {"dag_id": "a"}, 2: {"dag_id": "b"}, 3: {"dag_id": "a", "engine": "spark-3.5.9"}}
        for number, changes in made.items():
            store.record_night(night(number, **changes))
            for version in (1, 2):
                own = {"kind": "aa", "query": f"q{number}", "size": 1.0, "value": "OK"}
                store.record_self_test(
                    night(number, **changes).run, SelfTestRow(**own, gate_version=version)
                )

        def found(**how: Any) -> list[tuple[str, int]]:
            rows = store.self_tests("spark-4.3.0", **how)
            if "run" not in how:
                outcomes = [(x.kind, x.value, x.gate_version) for x in rows]
                assert store.self_test_outcomes("spark-4.3.0", **how) == outcomes
            return [(x.query, x.gate_version) for x in rows]

        assert found() == [("q2", 2), ("q1", 2)]
        assert found(version=1) == [("q2", 1), ("q1", 1)]
        assert found(limit=1) == [("q2", 2)]
        assert found(dags=["a"]) == [("q1", 2)]
        assert found(dags=[]) == []
        assert found(run=night(1, dag_id="a").run) == [("q1", 2)]
        assert found(run=night(1, dag_id="a").run, version=1) == [("q1", 1)]

    def test_the_newest_benchmark_of_every_kafka_is_given_by_its_name(self, store: Store) -> None:
        for cluster, rate in (("kafka2", 1), ("kafka2", 2), ("kafka1", 3)):
            store.record_broker_bench(cluster, {"rate": rate})
        found = [(row.cluster, row.figures) for row in store.broker_benches()]
        assert found == [("kafka1", {"rate": 3}), ("kafka2", {"rate": 2})]

    def test_verdicts_are_of_one_run_as_they_were_given(self, store: Store) -> None:
        first, second = judged(store, 1, FULL, replace(FULL, query="q0")), judged(store, 2, FULL)
        assert [x.query for x in store.verdicts(first)] == ["q5", "q0"]
        assert store.verdicts(second) == [replace(FULL, night=second, build="sha-430")]

    def test_what_is_read_can_be_used_after_the_session(self, store: Store) -> None:
        run = record(store, night())
        with store.reading() as session:
            (row,) = session.query(type(store.night(run)))
        assert (row.id, row.mode) == (run, "bounds")


class TestBaselines:
    def test_arms_are_right_first_repetitions_of_the_candidate(self, store: Store) -> None:
        store.record_night(night(queries=["q5"]))
        run = night().run
        for number, changes in enumerate(
            ({}, {"arm": "baseline"}, {"stage": 2}, {"invalid": "x"}, {}), 1
        ):
            own = measurement(float(number))
            store.record_repetition(repetition(run, "q5", number, measurement=own, **changes))
        right = (BoundsRepetition(1, 1.0, 20.0), BoundsRepetition(5, 5.0, 20.0))
        assert store.arms(run) == {"q5": BoundsArm(run, store.night(run).shape, right)}

    def test_a_baseline_is_of_the_place_and_of_now(self, store: Store) -> None:
        run = record(store, night())
        store.accept(run, "ada", "right")
        assert {query: arm.run for query, arm in store.baseline(*PLACE[:2]).items()} == {
            **{"q0": run, "q5": run}
        }
        for place in (("x", *PLACE[1:]), (PLACE[0], "x", PLACE[2]), (*PLACE[:2], "x")):
            assert store.baseline(*place) == {}
        assert store.baseline(*PLACE, at=datetime(2000, 1, 1, tzinfo=UTC)) == {}

    def test_an_acceptance_counts_from_its_moment_on(self, store: Store) -> None:
        store.accept(record(store, night()), "ada", "right", ["q5"])
        (row,) = store.acceptances()
        assert set(store.accepted(*PLACE, row.accepted)) == {"q5"}
        assert store.accepted(*PLACE, row.accepted - timedelta(seconds=1)) == {}

    @pytest.mark.parametrize("name", ["engine", "workload", "cluster"])
    def test_acceptances_are_listed_by_place(self, store: Store, name: str) -> None:
        for number, changes in ((1, {}), (2, {name: "other"})):
            store.accept(record(store, night(number, **changes)), "ada", "right", ["q5"])
        first, second = store.acceptances()
        assert [x.id for x in store.acceptances(**{name: "other"})] == [second.id]
        assert [x.id for x in store.acceptances(*PLACE)] == [first.id]


class TestMoments:
    def test_a_function_is_given_the_store_and_all_else(self, store: Store) -> None:
        def asked(moment: Store, one: int, *, two: int) -> tuple[int, int, bool]:
            return one, two, moment is store

        assert of_one_moment(asked)(store, 1, two=2) == (1, 2, False)
        with store.at_one_moment() as moment:
            assert of_one_moment(asked)(moment, 1, two=2) == (1, 2, False)
            with moment.at_one_moment() as same:
                assert same is moment

    def test_an_export_is_parquet_unless_it_is_asked_for(
        self, store: Store, tmp_path: Path
    ) -> None:
        record(store, night())
        store.export(tmp_path / "out")
        assert (tmp_path / "out" / "night.parquet").is_file()


class TestHistory:
    def test_a_point_is_whole(self, store: Store) -> None:
        run = judged(store, 1, FULL, baselines={"q5": "b0"})
        night = store.night(run)
        verdict = replace(FULL, night=run)
        names = ("4.3.0 pypi sha-430", "b0")
        expected = RatioPoint(night.started, "4.3.0", night.shape, "b0", verdict, *names)
        found = store.history("q5")
        assert found.points == (expected,)
        assert (found.query, found.metric, found.changes, found.acceptances) == ("q5", CPU, (), ())
        assert (found.engine, found.workload, found.cluster) == PLACE
        assert trail(store, night, "q5", CPU, 9) == [expected]

    def test_of_a_night_by_bounds_it_is_the_accepted_run(self, store: Store) -> None:
        store.record_night(night())
        figures = {"baseline_run": "dag/base", "repetitions": 3, "candidate": 12.0}
        said = by_bounds("q5", Value.OK, metric=CPU, ratio=1.1, **figures)
        store.record_verdicts(night().run, [replace(said, decides=False)])
        (point,) = store.history("q5").points
        assert point.baseline == "dag/base"
        assert point.verdict == replace(said, night=night().run, decides=False)

    def test_without_a_baseline_it_is_against_nothing(self, store: Store) -> None:
        judged(store, 1, replace(FULL, baseline_build=""))
        assert [x.baseline for x in store.history("q5").points] == [""]

    @pytest.mark.parametrize(
        ("baselines", "expected"),
        [({"q0": "b2", "q5": "b1", "q7": "b2"}, "b1 b2"), ({}, ""), (None, "")],
    )
    def test_of_the_suite_it_is_against_all_baselines(
        self, store: Store, baselines: dict[str, str] | None, expected: str
    ) -> None:
        judged(store, 1, replace(FULL, query=SUITE), baselines=baselines)
        assert [x.baseline for x in store.history(SUITE).points] == [expected]

    def test_an_acceptance_that_covers_a_night_is_in_its_point(self, store: Store) -> None:
        run = record(store, night())
        store.accept(run, "ada", "right", ["q5"])
        (row,) = store.acceptances()
        store.record_verdicts(run, [replace(FULL, night=run, mode=Mode.BOUNDS, acceptance=row.id)])
        found = store.history("q5")
        assert [x.verdict.acceptance for x in found.points] == [row.id]
        assert [(x.id, state) for x, state in found.acceptances] == [(row.id, "counts")]

    @pytest.mark.parametrize("name", ["engine", "workload", "cluster"])
    def test_it_is_of_the_place_of_the_newest_night(self, store: Store, name: str) -> None:
        first = judged(store, 1, FULL, **{name: "other"})
        last = [judged(store, 2, FULL), judged(store, 3, FULL)]
        for place in (None, {}, {name: None}, {name: ""}, {name: dict_of(PLACE)[name]}):
            assert [x.verdict.night for x in store.history("q5", CPU, place).points] == last
        found = store.history("q5", place={name: "other"})
        assert [x.verdict.night for x in found.points] == [first]
        assert getattr(found, name) == "other"

    @pytest.mark.parametrize(
        "change",
        [
            {"dag_id": "other"},
            {"engine": "other"},
            {"workload": "other"},
            {"cluster": "other"},
            {"workload_spec": {"events": 7}},
            {"mode": "bounds"},
            {"teaches": False},
        ],
    )
    def test_a_trail_is_of_comparable_nights_up_to_one(
        self, store: Store, change: dict[str, Any]
    ) -> None:
        runs = [judged(store, 1, FULL), judged(store, 2, FULL)]
        judged(store, 3, replace(FULL, mode=change.get("mode", "paired")), **change)
        runs += [judged(store, 4, FULL)]
        judged(store, 5, FULL)
        last = store.night(runs[-1])
        assert [x.verdict.night for x in trail(store, last, "q5", CPU, 9)] == runs
        assert [x.verdict.night for x in trail(store, last, "q5", CPU, 2)] == runs[1:]
        assert trail(store, last, "q0", CPU, 9) == trail(store, last, "q5", "wall_s", 9) == []

    @pytest.mark.parametrize(
        ("query", "metric", "place", "said"),
        [
            ("q55", CPU, {}, "query 'q55' is not known; did you mean 'q5'?"),
            ("mine", CPU, {}, "mine: no night has judged it by cpu_s_per_mevent; "),
            ("q7", "wal_s", {}, "metric 'wal_s' is not known; did you mean 'wall_s'?"),
            ("q7", "own", {}, "q7: no night has judged it by own; the queries that were: mine"),
            (
                "q7",
                "wall_s",
                {},
                "q7: no night has judged it by wall_s; the queries that were: none",
            ),
            (
                "q7",
                CPU,
                {"cluster": "local"},
                f"q7, cluster local: no night has judged it by {CPU};"
                " the queries that were: q5, q10, suite",
            ),
            (
                "q7",
                CPU,
                {"cluster": "moon", "workload": "smoke"},
                f"q7, cluster moon, workload smoke: no night has judged it by {CPU};"
                " the queries that were: q0",
            ),
            (
                "q5",
                CPU,
                {"cluster": "lokal"},
                "cluster 'lokal': no night of it is recorded; did you mean 'local'?",
            ),
            (
                "q5",
                CPU,
                {"engine": "x"},
                "engine 'x': no night of it is recorded; known: spark-4.3.0",
            ),
        ],
    )
    def test_what_is_not_there_is_said_with_what_is(
        self, store: Store, query: str, metric: str, place: dict[str, str | None], said: str
    ) -> None:
        of = [replace(FULL, query=x) for x in (SUITE, "q10", "q5")]
        judged(store, 1, *of, replace(FULL, query="mine", metric="own"))
        judged(store, 2, replace(FULL, query="q0"), cluster="moon")
        with pytest.raises(StoreError) as caught:
            store.history(query, metric, place)
        assert str(caught.value).startswith(said)

    @pytest.mark.parametrize(
        ("tried", "but"), [(True, ", but for what was tried by hand"), (False, "")]
    )
    def test_where_no_night_teaches_that_is_said(self, store: Store, tried: bool, but: str) -> None:
        if tried:
            judged(store, 1, FULL, teaches=False)
        with pytest.raises(StoreError) as caught:
            store.history("q5")
        assert str(caught.value) == f"no night is judged yet{but}; `nexmark run` first"


def dict_of(place: tuple[str, str, str]) -> dict[str, str]:
    return dict(zip(("engine", "workload", "cluster"), place, strict=True))
