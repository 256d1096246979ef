"""What explains a change comes first, and everything adds up to it."""

from __future__ import annotations

import pytest

from nexmark.attribution.attribute import attribute
from nexmark.attribution.explained import ChangeKind, CostChange, words
from nexmark.model import Value
from tests.unit.attribution.observed_builder import PLAN, arm, explained, plan

SORTED = (*PLAN[:3], "Sort", *PLAN[3:])


class TestKinds:
    def test_slower_with_the_same_plan(self) -> None:
        assert explained(arm({"StateStoreSave": 6.0}), arm()).kind is ChangeKind.SLOWER

    def test_without_a_plan_of_an_arm_nothing_is_said_of_its_operators(self) -> None:
        slower, usual = arm({"StateStoreSave": 6.0}), arm()
        kinds = ChangeKind.SLOWER_PLAN_NOT_KNOWN, ChangeKind.FASTER_PLAN_NOT_KNOWN
        assert explained(arm({"StateStoreSave": 6.0}, plan=None), usual).kind is kinds[0]
        assert explained(slower, arm(plan=None)).kind is kinds[0]
        assert explained(arm(plan=None), slower).kind is kinds[1]

    def test_slower_with_another_plan(self) -> None:
        found = explained(arm({"Sort": 3.0}, SORTED), arm())
        assert found.kind is ChangeKind.SLOWER_PLAN_CHANGED
        assert (found.plan.added, found.plan.removed) == (("Sort",), ())

    def test_the_mirror_for_faster(self) -> None:
        assert explained(arm(), arm({"StateStoreSave": 6.0})).kind is ChangeKind.FASTER
        assert explained(arm(), arm({"Sort": 3.0}, SORTED)).kind is ChangeKind.FASTER_PLAN_CHANGED

    def test_another_plan_at_the_same_speed_is_a_warning(self) -> None:
        assert explained(arm(None, SORTED), arm()).kind is ChangeKind.PLAN_CHANGED
        assert explained(arm(None, SORTED), arm(wall_s=15.0)).kind is ChangeKind.PLAN_CHANGED

    def test_more_wall_time_without_more_cpu_time_is_waiting(self) -> None:
        assert explained(arm(wall_s=15.0), arm()).kind is ChangeKind.WAITING
        assert explained(arm(), arm(wall_s=15.0)).kind is ChangeKind.WAITING_LESS

    def test_nothing_to_explain(self) -> None:
        assert explained(arm(noise=(1.0,) * 6), arm()).kind is ChangeKind.NOTHING

    @pytest.mark.parametrize("verdict", [Value.OK])
    def test_what_the_gate_calls_unchanged_is(self, verdict: Value) -> None:
        found = explained(arm({"StateStoreSave": 5.0}), arm(), verdict=verdict)
        assert found.kind is ChangeKind.NOTHING
        assert {part.share for part in found.parts} == {None}

    def test_what_the_gate_calls_a_regression_is_of_the_size_it_says(self) -> None:
        stated = CostChange(1.011, 1.003, 1.02)
        found = explained(
            arm({"StateStoreSave": 4.1}), arm(), verdict=Value.REGRESSION, stated=stated
        )
        assert (found.kind, found.cpu) == (ChangeKind.SLOWER, stated)

    def test_a_few_pairs_are_no_ground_without_the_gate(self) -> None:
        found = explained(arm({"StateStoreSave": 6.0}, pairs=3), arm(pairs=3))
        assert found.kind is ChangeKind.NOTHING
        sure = explained(arm({"StateStoreSave": 6.0}, pairs=3), arm(), verdict=Value.REGRESSION)
        assert sure.kind is ChangeKind.SLOWER

    def test_a_wall_clock_that_the_gate_does_not_trust_is_no_waiting(self) -> None:
        found = explained(arm(wall_s=15.0), arm(), wall_verdict=Value.OK)
        assert found.kind is ChangeKind.NOTHING


class TestRanking:
    def test_what_contributes_most_comes_first(self) -> None:
        found = explained(arm({"StateStoreSave": 6.0, "HashAggregate": 2.4}), arm())
        first, second, *_ = found.parts
        assert (first.name, second.name) == ("StateStoreSave", "HashAggregate")
        assert first.contribution == pytest.approx(2.0, abs=0.05)
        assert first.share == pytest.approx(2.0 / 2.4, abs=0.05)
        assert first.change is not None
        assert first.change.lo is not None
        assert first.change.hi is not None
        assert first.change.lo < 1.5 < first.change.hi
        assert first.lo < 2.0 < first.hi

    def test_of_a_faster_query_what_saves_most_comes_first(self) -> None:
        found = explained(arm({"StateStoreSave": 2.0, "HashAggregate": 2.4}), arm())
        assert found.parts[0].name == "StateStoreSave"
        assert found.parts[-1].name == "HashAggregate"

    def test_contributions_add_up_to_the_change(self) -> None:
        costs = {"StateStoreSave": 6.0, "HashAggregate": 1.0, "outside of tasks": 2.7, "Sort": 0.5}
        found = explained(arm(costs, SORTED), arm())
        total = sum(part.contribution for part in found.parts)
        assert total == pytest.approx(found.contribution)
        assert sum(part.share or 0 for part in found.parts) == pytest.approx(1.0)

    def test_estimates_are_marked(self) -> None:
        found = explained(arm({"StateStoreSave": 6.0}), arm())
        marks = {part.name: part.estimated for part in found.parts}
        assert marks["StateStoreSave"]
        assert marks["rest of stage 1"]
        assert not marks["outside of tasks"]

    def test_metrics_that_changed_most_come_first(self) -> None:
        ours = {"StateStoreSave": {"rows": 100.0, "time to commit changes [s]": 1.61}}
        theirs = {"StateStoreSave": {"rows": 100.0, "time to commit changes [s]": 1.0}}
        found = explained(arm({"StateStoreSave": 6.0}, metrics=ours), arm(metrics=theirs))
        assert [x.name for x in found.parts[0].metrics] == ["time to commit changes [s]", "rows"]
        assert "100% StateStoreSave in stage 2 (time to commit changes +61%)" in words(found)


class TestAnotherPlan:
    def test_the_operators_that_are_in_both_keep_their_partners(self) -> None:
        found = explained(arm({"Sort": 3.0}, SORTED), arm())
        matches = {part.name: part.match for part in found.parts}
        assert matches["Sort"] == "added"
        assert matches["StateStoreSave"] == matches["HashAggregate"] == "both"
        assert (found.parts[0].name, found.parts[0].baseline) == ("Sort", 0.0)

    def test_an_operator_that_is_gone_counts_for_what_it_cost(self) -> None:
        found = explained(arm(), arm({"Sort": 3.0}, SORTED))
        assert found.parts[0].match == "removed"
        assert found.parts[0].contribution == pytest.approx(-3.0, abs=0.05)

    def test_the_diff_goes_from_baseline_to_candidate(self) -> None:
        diff = explained(arm({"Sort": 3.0}, SORTED), arm()).plan.diff
        assert "+      Sort" in diff
        assert diff[:2] == ("--- baseline", "+++ candidate")

    def test_other_expressions_in_the_same_operators_are_a_note(self) -> None:
        ours = plan(text="Project [a + 1]\n  MicroBatchScan")
        found = explained(arm(plan=ours), arm(plan=plan(text="Project [a]\n  MicroBatchScan")))
        assert not found.plan.changed
        assert "-Project [a]" in found.plan.diff
        assert "the operators are the same, their expressions differ: see the diff" in found.notes

    def test_another_number_of_partitions_is_no_other_plan(self) -> None:
        texts = [
            f"StateStoreSave [a], state info [numPartitions = {x}], Append, 2\n"
            f"  Exchange hashpartitioning(a, {x}), REQUIRED_BY_STATEFUL_OPERATOR"
            for x in (2, 16)
        ]
        found = explained(arm(plan=plan(text=texts[1])), arm(plan=plan(text=texts[0])))
        assert (found.plan.changed, found.notes) == (False, ())

    def test_other_formulations_are_reported(self) -> None:
        found = explained(arm(formulation="union"), arm())
        assert found.notes == ("the arms ran other formulations: union and panes",)


class TestConfs:
    def test_a_conf_of_one_arm_comes_first(self) -> None:
        confs = {"spark.sql.shuffle.partitions": "16", "spark.eventLog.dir": "x", "spark.a": "1"}
        found = explained(arm({"StateStoreSave": 6.0}, confs=confs), arm())
        assert [(x.name, x.baseline, x.candidate) for x in found.confs] == [
            ("spark.a", None, "1"),
            ("spark.sql.shuffle.partitions", "2", "16"),
        ]
        said = words(found)
        assert said.startswith("conf spark.a (not set) -> 1, spark.sql.shuffle.partitions 2 -> 16;")

    def test_where_an_arm_runs_is_no_difference(self) -> None:
        base = {"spark.driver.defaultJavaOptions": "-XX:SharedArchiveFile=/b.jsa -Da=1"}
        base |= {"spark.driver.extraJavaOptions": '"-Djava.io.tmpdir=/b c"'}
        base |= {"spark.jars": "/x.jar,file:///b c/jobs/2/nexmark_jobs/own/busy/busy.jar"}
        ours = {
            "spark.driver.defaultJavaOptions": "-XX:SharedArchiveFile=/a.jsa -Da=1",
            "spark.driver.extraJavaOptions": "-Djava.io.tmpdir=/a",
            "spark.driver.extraClassPath": "/home/remote-fs/1a",
            "spark.jars": "/x.jar,file:///b c/jobs/1/nexmark_jobs/own/busy/busy.jar",
            "spark.master": "spark://127.0.0.1:26010",
            "spark.sql.streaming.checkpointLocation": "file:///a",
            "spark.nexmark.build": "1",
        }
        assert explained(arm(confs=ours), arm(confs=base)).confs == ()

    def test_a_secret_that_differs_is_not_shown(self) -> None:
        ours, theirs = ({"spark.my.password": x} for x in ("hush", "hash"))
        (conf,) = explained(arm(confs=ours), arm(confs=theirs)).confs
        assert (conf.candidate, conf.baseline) == ("***", "***")


class TestPairs:
    def test_there_is_none_without_a_pair(self) -> None:
        assert attribute("q5", arm(), []) is None
        assert attribute("q5", arm(basis="application"), arm()) is None

    def test_arms_on_two_bases_are_explained_by_confs_and_plans_if_the_gate_compared_them(
        self,
    ) -> None:
        ours = arm(basis="application", confs={"spark.sql.shuffle.partitions": "24"})
        gate = {"stated": CostChange(3.2), "verdict": Value.REGRESSION}
        found = explained(ours, arm(), **gate)
        assert (found.kind, found.cpu.ratio, found.parts) == (ChangeKind.SLOWER, 3.2, ())
        assert words(found) == "conf spark.sql.shuffle.partitions 2 -> 24"
        assert found.basis == "application against steady"
        assert found.notes == (
            f"operators cannot be compared: no pair was measured on one basis ({found.basis})",
        )

    def test_one_short_repetition_puts_all_pairs_on_the_basis_of_the_gate(self) -> None:
        short = arm({"StateStoreSave": 6.0}, basis="application")
        ours = [*arm({"StateStoreSave": 6.0})[:4], *short[4:]]
        theirs = [*arm()[:5], arm(basis="application")[5]]
        found = explained(ours, theirs, verdict=Value.REGRESSION)
        assert (found.basis, found.pairs) == ("application", 1)
        assert found.notes == ("5 pairs were left out: not both were measured on application",)

    def test_without_a_pair_on_the_common_basis_only_the_gate_has_something_to_explain(
        self,
    ) -> None:
        ours = [*arm()[:5], arm(basis="application")[5]]
        assert attribute("q5", ours, arm()) is None
        found = explained(ours, arm(), stated=CostChange(1.2), verdict=Value.REGRESSION)
        assert (found.parts, found.basis) == ((), "steady and application against steady")

    def test_the_class_is_known_without_any_event_log(self) -> None:
        slower = arm({"StateStoreSave": 6.0}, parts=(), problem="the event log is cut off")
        found = explained(slower, arm())
        assert (found.kind, found.parts) == (ChangeKind.SLOWER, ())
        assert found.notes == ("operators of 0 of 6 pairs are known: the event log is cut off",)

    def test_a_pair_without_event_log_is_left_out_of_the_ranking(self) -> None:
        ours = arm({"StateStoreSave": 6.0})
        ours[0] = arm({"StateStoreSave": 60.0}, parts=(), problem="cut off")[0]
        found = explained(ours, arm())
        assert found.pairs == 5
        assert found.parts[0].contribution == pytest.approx(2.0, abs=0.05)

    def test_waits_are_ranked_by_time(self) -> None:
        ours = arm(wall_s=15.0, phases={"walCommit": 9.0, "addBatch": 5.5})
        found = explained(ours, arm(phases={"walCommit": 1.0, "addBatch": 5.0}))
        assert [x.name for x in found.waits[:2]] == ["driver: walCommit", "driver: addBatch"]
        assert words(found) == "waiting in driver: walCommit +8.0 s, driver: addBatch +0.5 s"
