"""What a sign-off is asked to do, and which decisions count."""

from __future__ import annotations

import shutil
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from nexmark.config import load, paths
from nexmark.jobs.job_template import write_new
from nexmark.model import GROWTH
from nexmark.night.make_night import make_night
from nexmark.tasks.signoff_steps import Approval, night_params


def params(**changes: Any) -> dict[str, Any]:
    values = {
        "engine": "spark-4.3.0",
        "build": "pypi:4.3.0",
        "against": "pypi:4.2.1",
        "workload": "nightly",
        "cluster": "local",
        "mode": "paired",
        "pairs": None,
        "budget_minutes": None,
        "batches": None,
        "verify_scale": 5,
        "compatibility": True,
    }
    return {**values, **changes}


def test_the_rounds_of_a_comparison_and_five_times_the_verification_on_all_queries() -> None:
    config = load()
    asked = night_params(params())
    night = make_night(config, "spark-4.3.0", "nexmark_signoff", "r", asked)
    workload = config.workloads["nightly"]
    assert night.gate.rounds == config.gate.comparison.rounds
    assert night.gate.matters == config.gate.comparison.matters
    assert night.workload.repetitions == night.gate.rounds[0]
    assert night.workload.verify.events == 5 * workload.verify.events
    assert night.workload.verify.rows_per_batch == workload.verify.rows_per_batch
    assert night.queries == workload.queries
    assert (str(night.candidate), asked["against"]) == ("pypi:4.3.0", "pypi:4.2.1")


def test_a_workload_of_a_sign_off_may_name_a_job(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    conf = tmp_path / "conf"
    shutil.copytree(paths.repository() / "include" / "conf", conf)
    monkeypatch.setenv("NEXMARK_CONF", str(conf))
    write_new("busy_auctions", conf)
    text = (conf / "workloads.yaml").read_text()
    named = text.replace("  nightly:\n", "  nightly:\n    queries: [q5, busy_auctions]\n")
    (conf / "workloads.yaml").write_text(named)
    night = make_night(load(), "spark-4.3.0", "nexmark_signoff", "r", night_params(params()))
    assert night.queries == ("q5", "busy_auctions")
    assert night.jobs["busy_auctions"].is_proven
    assert night.against.keys() == {"q5", "busy_auctions"}


def test_pairs_that_are_given_count() -> None:
    asked = night_params(params(pairs=3))
    night = make_night(load(), "spark-4.3.0", "nexmark_signoff", "r", asked)
    assert (night.gate.rounds, night.workload.repetitions) == ((3,), 3)


def test_a_sign_off_has_the_budget_that_is_given_and_else_none() -> None:
    for minutes in (None, 120):
        asked = night_params(params(budget_minutes=minutes))
        night = make_night(load(), "spark-4.3.0", "nexmark_signoff", "r", asked)
        assert night.gate.budget_minutes == minutes


def test_a_soak_of_many_batches_can_be_signed_off() -> None:
    asked = night_params(params(workload="soak", batches=5_000))
    night = make_night(load(), "spark-4.3.0", "nexmark_signoff", "r", asked)
    assert night.workload.size_of("q5").events == 5_000 * night.workload.rows_per_batch
    assert night.gate.metric == GROWTH


def event(option: str, reason: str = "") -> dict[str, Any]:
    return {
        "chosen_options": [option],
        "params_input": {"reason": reason},
        "responded_at": datetime(2026, 11, 21, 9, tzinfo=UTC),
        "responded_by_user": {"id": "7", "name": "ada"},
    }


def test_a_decision_has_who_when_and_why() -> None:
    made = Approval.of(event("Approve", " all well "), "Approve")
    assert made == Approval(
        choice="approved", who="ada (7)", when="2026-11-21T09:00:00+00:00", reason="all well"
    )


@pytest.mark.parametrize(
    ("option", "reason", "red", "objection"),
    [
        ("Approve", "", False, ""),
        ("Approve", "known, SPARK-1", True, ""),
        ("Approve", "  ", True, "approved by ada (7) without a reason, which a red night needs"),
        ("Reject", "", False, "rejected by ada (7)"),
        ("Reject", "slow", True, "rejected by ada (7): slow"),
    ],
)
def test_a_red_night_is_approved_with_a_reason_only(
    option: str, reason: str, red: bool, objection: str
) -> None:
    found = Approval.of(event(option, reason), "Approve").objection(red)
    assert found.partition(";")[0] == objection


def test_no_answer_is_no_approval() -> None:
    made = Approval.of({"error": "no response", "error_type": "timeout"}, "Approve")
    assert made.objection(red=False) == "nobody decided: timeout"
