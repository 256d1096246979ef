"""The fingerprint of a plan is the same from run to run, and another one for another plan."""

from __future__ import annotations

from nexmark_jobs.plan_fingerprint import from_text

PLAN = """== Physical Plan ==
*(3) HashAggregate(keys=[w#24-T4000ms], functions=[max(count#25L)])
+- StateStoreSave [w#24-T4000ms], [ runId = 00034751-8931-4658-b5da-2934bba20204, opId = 0], 2
   +- Exchange hashpartitioning(w#24-T4000ms, auction#3L, 200), REQUIRED_BY, [plan_id=150]
      +- StreamingSymmetricHashJoin [id#48L], [auction#17L], Inner
         :- Exchange hashpartitioning(id#48L, 200), [plan_id=340]
         :  +- *(2) Filter isnotnull(dateTime#56-T4000ms)
         :     +- EventTimeWatermark e79877a2-f532-45ff-8d01-b5637217989e, dateTime#56: timestamp
         +- Exchange hashpartitioning(auction#17L, 200), [plan_id=351]
            +- StreamingRelation rate-micro-batch, [timestamp#0, value#1L]
"""

SKELETON = """HashAggregate
  StateStoreSave
    Exchange (w, auction)
      StreamingSymmetricHashJoin
        Exchange (id)
          Filter
            EventTimeWatermark
        Exchange (auction)
          StreamingRelation"""


def test_skeleton_and_counts() -> None:
    found = from_text(PLAN)
    assert found.skeleton == SKELETON
    assert (found.exchanges, found.stateful_operators) == (3, 2)
    assert len(found.skeleton_hash) == 16


def test_what_differs_from_run_to_run_is_left_out() -> None:
    other = PLAN
    for old, new in (
        ("#24", "#99"),
        ("plan_id=150", "plan_id=7"),
        ("*(3)", "*(11)"),
        ("00034751-8931-4658-b5da-2934bba20204", "99934751-8931-4658-b5da-2934bba20204"),
        ("e79877a2-f532-45ff-8d01-b5637217989e", "089877a2-f532-45ff-8d01-b5637217989e"),
    ):
        other = other.replace(old, new)
    assert other != PLAN
    assert from_text(other) == from_text(PLAN)


def test_confs_and_versions_leave_the_skeleton_alone() -> None:
    other = PLAN.replace("200)", "2)").replace("REQUIRED_BY", "ENSURE")
    assert from_text(other).skeleton_hash == from_text(PLAN).skeleton_hash
    assert from_text(other).text != from_text(PLAN).text


def test_another_operator_or_key_is_another_plan() -> None:
    hashes = {
        from_text(PLAN.replace(old, new)).skeleton_hash
        for old, new in (("", ""), ("HashAggregate(", "SortAggregate("), ("auction#3L, ", ""))
    }
    assert len(hashes) == 3


def test_numbers_and_times_that_spark_makes_up_are_left_out() -> None:
    numbered = "Project [filter(xs, lambda x_{}.y > 0), _common_expr_{}, [{},{}] AS window]"
    one = from_text(numbered.format(1, 2, 1795479600000000, 1795479610000000))
    other = from_text(numbered.format(8, 9, 1795479620000000, 1795479630000000))
    assert one == other
    assert "lambda x.y > 0" in one.text
