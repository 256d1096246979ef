"""Stages of a rollout: what a person may write, and what is refused in one line."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from nexmark.config import load, paths
from nexmark.errors import NexmarkError
from nexmark.jobs.job_template import write_new
from nexmark.night.params import RolloutParams
from nexmark.rollout.state import parse_stages, rollout_of

KNOWN = ("q0", "q1", "q2", "q5", "q10", "q14_python_udf")


@pytest.mark.parametrize(
    ("text", "stages"),
    [
        ("q1, q0; q2-q10; all", (("q0", "q1"), ("q2", "q5", "q10"), ("q14_python_udf",))),
        ("all", (KNOWN,)),
        ("q14_python_udf", (("q14_python_udf",),)),
        ("q0,q5-q10", (("q0", "q5", "q10"),)),
    ],
)
def test_lists_ranges_and_what_is_left(text: str, stages: tuple[tuple[str, ...], ...]) -> None:
    assert parse_stages(text, KNOWN) == stages


def test_a_job_of_a_person_is_a_query_of_a_stage(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If the workload names it; its nights have it among their jobs."""
    conf = tmp_path / "conf"
    shutil.copytree(paths.repository() / "include" / "conf", conf)
    monkeypatch.setenv("NEXMARK_CONF", str(conf))
    monkeypatch.setenv("NEXMARK_HOME", str(tmp_path / "home"))
    write_new("busy_auctions", conf)
    asked = RolloutParams.of({"build": "pypi:4.2.1", "stages": "busy_auctions; all"})
    with pytest.raises(NexmarkError, match="no query 'busy_auctions' in the workload"):
        rollout_of(asked, load())
    text = (conf / "workloads.yaml").read_text()
    named = text.replace("  compare:\n", "  compare:\n    queries: [q0, q5, busy_auctions]\n")
    (conf / "workloads.yaml").write_text(named)
    begun = rollout_of(asked, load())
    assert [stage.queries for stage in begun.stages] == [("busy_auctions",), ("q0", "q5")]
    (conf / "jobs" / "busy_auctions.yaml").write_text("tables: nexmark\nsqll: a.sql\n")
    broken = asked.model_copy(update={"name": "other"})
    with pytest.raises(NexmarkError, match=r"busy_auctions.yaml:2: sqll: unknown key"):
        rollout_of(broken, load())


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("q0;q3", "no query 'q3' in the workload; did you mean 'q"),
        ("q0;q0", "stage 2: q0 is named twice; name it once"),
        ("q0,q0-q2", "stage 1: q0 is named twice"),
        ("q0;;q1", "stage 2: '' has no query left; leave it out"),
        ("all;all", "stage 2: 'all' has no query left"),
        ("q5-q1", "'q5-q1' goes backwards; write q1-q5"),
    ],
)
def test_what_cannot_be_is_one_line(text: str, says: str) -> None:
    with pytest.raises(NexmarkError) as caught:
        parse_stages(text, KNOWN)
    assert says in str(caught.value)
    assert "\n" not in str(caught.value)
