"""A baseline is accepted by a person, per query, and stays as it was accepted."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from sqlalchemy.exc import SQLAlchemyError

from nexmark.model import Value
from nexmark.store import Store, StoreError
from nexmark.store.connecting import connect
from tests.unit.store.store_builder import by_bounds, measurement, night, record, repetition

PLACE = ("spark-4.3.0", "smoke", "local")


def baselines(store: Store) -> dict[str, str]:
    """Query -> last two digits of the run that is its baseline."""
    return {query: arm.run[-2:] for query, arm in store.baseline(*PLACE).items()}


def test_without_acceptance_there_is_no_baseline(store: Store) -> None:
    record(store, night())
    assert store.baseline(*PLACE) == {}


def test_an_accepted_run_is_the_baseline(store: Store) -> None:
    run = record(store, night(), 12.5)
    done = store.accept(run, "ada", "first")
    assert (done.queries, done.left_out) == (("q0", "q5"), {})
    arm = store.baseline(*PLACE)["q5"]
    assert (arm.run, arm.repetitions[0].steady) == (run, 12.5)
    assert arm.shape == store.night(run).shape


def test_the_last_acceptance_counts_and_the_first_is_kept(store: Store) -> None:
    for number in (1, 2):
        store.accept(record(store, night(number)), "ada", f"reason {number}")
    store.accept(night(1).run, "bob", "back")
    assert baselines(store) == {"q0": "21", "q5": "21"}
    reasons = [x.reason for x in store.acceptances(*PLACE) if x.query == "q5"]
    assert reasons == ["reason 1", "reason 2", "back"]


def test_accepting_a_run_of_few_queries_leaves_the_other_baselines(store: Store) -> None:
    store.accept(record(store, night(1)), "ada", "right")
    store.accept(record(store, night(2, queries=["q5"])), "ada", "right")
    assert baselines(store) == {"q0": "21", "q5": "22"}


def test_single_queries_can_be_accepted(store: Store) -> None:
    done = store.accept(record(store, night()), "ada", "right", ["q5"])
    assert done.queries == ("q5",)
    assert baselines(store) == {"q5": "21"}


def test_a_wrong_result_is_never_a_baseline(store: Store) -> None:
    store.accept(record(store, night(1)), "ada", "right")
    done = store.accept(record(store, night(2), q5="rows missing"), "ada", "right")
    assert done.left_out == {"q5": "rows missing"}
    assert baselines(store) == {"q0": "22", "q5": "21"}


def test_an_incomplete_query_is_no_baseline(store: Store) -> None:
    run = record(store, night(repetitions=2))
    store.record_repetition(repetition(run, "q5", 2))
    done = store.accept(run, "ada", "right")
    assert done.left_out == {"q0": "1 of 2 repetitions measured"}


def test_nothing_right_is_nothing_to_accept(store: Store) -> None:
    run = record(store, night(), q0="schema", q5="rows missing")
    with pytest.raises(StoreError, match="nothing to accept: q0: schema; q5: rows missing"):
        store.accept(run, "ada", "right")


@pytest.mark.parametrize(
    "change", [{"engine": "spark-3.5.9"}, {"workload": "big"}, {"cluster": "x"}]
)
def test_each_engine_workload_and_cluster_has_its_own(store: Store, change: dict[str, str]) -> None:
    store.accept(record(store, night(**change)), "ada", "right")
    assert store.baseline(*PLACE) == {}


def test_a_night_that_tried_a_setting_is_no_baseline(store: Store) -> None:
    """Later nights would measure the build without the setting."""
    run = record(store, night(candidate_conf={"spark.sql.codegen.wholeStage": "false"}))
    said = "is no baseline: its candidate alone had spark.sql.codegen.wholeStage=false"
    with pytest.raises(StoreError, match=said):
        store.accept(run, "ada", "right", ["q5"])
    assert store.acceptances() == []
    store.accept(record(store, night(2, candidate_conf={})), "ada", "right")
    assert baselines(store) == {"q0": "22", "q5": "22"}


class TestLooks:
    """Changing what is measured gives another shape; changing how often does not."""

    def shape_of(self, store: Store, **workload: object) -> str:
        spec = {"events": 100_000, "seed": 1, "repetitions": 1, **workload}
        store.record_night(night(2, workload_spec=spec))
        return store.night(night(2).run).shape

    @pytest.mark.parametrize(
        "change",
        [{"events": 7}, {"seed": 2}, {"generator": {"x": 1}}, {"sizes": {"q0": {"events": 7}}}],
    )
    def test_another_input_is_another_shape(self, store: Store, change: dict[str, object]) -> None:
        store.record_night(night())
        assert self.shape_of(store, **change) != store.night(night().run).shape

    @pytest.mark.parametrize("change", [{"repetitions": 9}, {"queries": []}, {"verify": {}}])
    def test_more_of_the_same_is_the_same(self, store: Store, change: dict[str, object]) -> None:
        store.record_night(night())
        assert self.shape_of(store, **change) == store.night(night().run).shape

    def test_a_key_that_is_not_used_leaves_earlier_nights_comparable(self, store: Store) -> None:
        store.record_night(night())
        assert self.shape_of(store, sizes={}) == store.night(night().run).shape


class TestUnchanged:
    def test_a_baseline_is_not_measured_again(self, store: Store) -> None:
        run = record(store, night(), 10.0)
        store.accept(run, "ada", "right")
        with pytest.raises(StoreError, match="accepted baseline of q5 and is not measured again"):
            store.record_repetition(repetition(run, "q5", measurement=measurement(5.0)))
        with pytest.raises(StoreError, match="start a new run"):
            store.record_repetition(repetition(run, "q5", 2))
        assert [x.steady for x in store.baseline(*PLACE)["q5"].repetitions] == [10.0]

    def test_recording_the_same_figures_again_is_no_change(self, store: Store) -> None:
        run = record(store, night(), 10.0)
        store.accept(run, "ada", "right")
        store.record_repetition(repetition(run, "q5", measurement=measurement(10.0)))

    @pytest.mark.parametrize(
        "change", ["UPDATE acceptance SET who='eve'", "DELETE FROM acceptance"]
    )
    def test_acceptances_are_only_ever_added(
        self, store: Store, database: str, change: str
    ) -> None:
        store.accept(record(store, night()), "ada", "right")
        connection = connect(database).connect()
        with connection, pytest.raises(SQLAlchemyError, match="only ever added"):
            connection.exec_driver_sql(change)
        assert {x.who for x in store.acceptances()} == {"ada"}


class TestExpiry:
    """An acceptance may end: then the one before it counts again."""

    def at(self, days: int) -> datetime:
        return datetime.now(UTC) + timedelta(days=days)

    def test_until_it_expires_it_counts_and_then_the_one_before_does(self, store: Store) -> None:
        store.accept(record(store, night(1)), "ada", "first")
        store.accept(record(store, night(2)), "ada", "for now", ["q5"], expires=self.at(30))
        assert baselines(store) == {"q0": "21", "q5": "22"}
        later = store.baseline(*PLACE, at=self.at(31))
        assert {query: arm.run[-2:] for query, arm in later.items()} == {"q0": "21", "q5": "21"}

    def test_the_only_one_that_expires_leaves_no_baseline(self, store: Store) -> None:
        store.accept(record(store, night()), "ada", "for now", expires=self.at(30))
        assert set(store.accepted(*PLACE, self.at(29))) == {"q0", "q5"}
        assert store.accepted(*PLACE, self.at(31)) == {}

    def test_a_moment_before_it_was_accepted_does_not_know_it(self, store: Store) -> None:
        store.accept(record(store, night()), "ada", "right")
        assert store.accepted(*PLACE, self.at(-1)) == {}

    def test_a_later_acceptance_for_good_outlives_one_for_now(self, store: Store) -> None:
        store.accept(record(store, night(1)), "ada", "for now", expires=self.at(30))
        store.accept(record(store, night(2)), "ada", "for good")
        assert {row.night_id[-2:] for row in store.accepted(*PLACE, self.at(31)).values()} == {"22"}

    def test_an_expired_baseline_is_still_not_measured_again(self, store: Store) -> None:
        """Nights were compared with it, and are judged again from its figures."""
        run = record(store, night(), 10.0)
        store.accept(run, "ada", "for now", expires=self.at(30))
        with pytest.raises(StoreError, match="not measured again"):
            store.record_repetition(repetition(run, "q5", measurement=measurement(5.0)))

    def test_the_past_is_no_day_to_expire(self, store: Store) -> None:
        run = record(store, night())
        with pytest.raises(StoreError, match=r"is over already; give a later day"):
            store.accept(run, "ada", "right", expires=self.at(-1))
        assert store.acceptances() == []


class TestWithdrawal:
    """An acceptance is taken back by another row: nothing is changed or deleted."""

    def test_the_one_before_counts_again(self, store: Store) -> None:
        store.accept(record(store, night(1)), "ada", "first")
        store.accept(record(store, night(2)), "ada", "too soon", ["q5"])
        number = store.acceptances()[-1].id
        store.withdraw(number, "bob", "the wrong run")
        assert baselines(store) == {"q0": "21", "q5": "21"}
        row = store.acceptances()[-1]
        assert (row.id, row.who, row.reason) == (number, "ada", "too soon")
        assert row.withdrawal is not None
        assert (row.withdrawal.who, row.withdrawal.reason) == ("bob", "the wrong run")

    def test_before_it_was_withdrawn_it_counted(self, store: Store) -> None:
        store.accept(record(store, night()), "ada", "right", ["q5"])
        between = datetime.now(UTC)
        store.withdraw(store.acceptances()[0].id, "bob", "wrong")
        assert set(store.accepted(*PLACE, between)) == {"q5"}
        assert store.accepted(*PLACE, datetime.now(UTC)) == {}

    def test_twice_or_of_nothing_or_without_a_reason_is_refused(self, store: Store) -> None:
        store.accept(record(store, night()), "ada", "right", ["q5"])
        number = store.acceptances()[0].id
        with pytest.raises(StoreError, match="needs a reason"):
            store.withdraw(number, "bob", " ")
        with pytest.raises(
            StoreError, match=rf"there is no acceptance {number + 1}; `nexmark acks`"
        ):
            store.withdraw(number + 1, "bob", "x")
        store.withdraw(number, "bob", "wrong")
        with pytest.raises(StoreError, match="by bob already"):
            store.withdraw(number, "eve", "again")

    @pytest.mark.parametrize(
        "change", ["UPDATE withdrawal SET who='eve'", "DELETE FROM withdrawal"]
    )
    def test_withdrawals_are_only_ever_added(
        self, store: Store, database: str, change: str
    ) -> None:
        store.accept(record(store, night()), "ada", "right", ["q5"])
        store.withdraw(store.acceptances()[0].id, "bob", "wrong")
        connection = connect(database).connect()
        with connection, pytest.raises(SQLAlchemyError, match="only ever added"):
            connection.exec_driver_sql(change)


class TestWhatIsKept:
    def test_build_size_metric_and_link(self, store: Store) -> None:
        run = record(store, night())
        verdicts = [by_bounds("q5", Value.REGRESSION, metric="wall_s", ratio=1.25)]
        store.record_verdicts(run, verdicts)
        store.accept(run, "ada", "wanted", link="https://issues/SPARK-1")
        q0, q5 = store.acceptances()
        assert (q5.build_id, q5.metric, q5.size) == ("sha-430", "wall_s", 1.25)
        assert (q0.build_id, q0.metric, q0.size) == ("sha-430", "cpu_s_per_mevent", None)
        assert {row.link for row in (q0, q5)} == {"https://issues/SPARK-1"}
        assert q5.expires is None

    def test_an_unknown_query_names_the_nearest(self, store: Store) -> None:
        run = record(store, night())
        with pytest.raises(StoreError, match=r"has no query 'q55'; did you mean 'q5'\?"):
            store.accept(run, "ada", "right", ["q0", "q55"])
        assert store.acceptances() == []

    @pytest.mark.parametrize("reason", ["", " "])
    def test_an_acceptance_without_reason_is_none(self, store: Store, reason: str) -> None:
        with pytest.raises(StoreError, match="needs a reason"):
            store.accept(record(store, night()), "ada", reason)


class TestFindRun:
    def test_a_run_is_found_by_name_run_id_or_unique_part(self, store: Store) -> None:
        for number in (1, 2):
            store.record_night(night(number))
        for name in (night(2).run, night(2).run_id, "11-22"):
            assert store.find_run(name).id == night(2).run

    def test_an_unknown_run_names_the_nearest(self, store: Store) -> None:
        for number in (1, 2):
            store.record_night(night(number))
        with pytest.raises(
            StoreError, match=r"'manual__2026-12-22' is not known; the nearest are: nex"
        ):
            store.find_run("manual__2026-12-22")

    def test_a_part_of_several_names_them(self, store: Store) -> None:
        for number in (1, 2):
            store.record_night(night(number))
        with pytest.raises(StoreError, match=r"may be any of: .*2026-11-22, .*2026-11-21; give"):
            store.find_run("manual")

    def test_no_name_lists_the_newest(self, store: Store) -> None:
        store.record_night(night())
        with pytest.raises(StoreError, match=r"which run\? The newest are: .*2026-11-21"):
            store.find_run("")

    def test_an_empty_store_says_so(self, store: Store) -> None:
        with pytest.raises(StoreError, match="no run is recorded yet"):
            store.find_run("x")
