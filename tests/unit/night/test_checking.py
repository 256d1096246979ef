"""What a night says of a verification run: right over generated and boundary events, or not."""

from __future__ import annotations

import json
import os
import shutil
from contextlib import suppress
from pathlib import Path

import pytest

from nexmark.config import load
from nexmark.errors import ConfigError
from nexmark.expectations.checks import invariants
from nexmark.expectations.tables import open_events
from nexmark.night.deployments import Deployment
from nexmark.night.make_night import make_night
from nexmark.night.night_plan import Night
from nexmark.night.verification import checked_early, plan_together, take, verify
from nexmark_jobs import boundary
from tests.expectations.event_builders import RECORDED
from tests.expectations.wrong_engines import right_sql
from tests.waiting import wait_for

WRONG_Q7 = {"ON highest.price = bid.price": "ON highest.price <= bid.price"}
"""Takes higher bids at the end of a window, too: nothing but a bid at that very time shows it."""


@pytest.fixture
def night(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Night:
    """A night whose q7 is right over both inputs."""
    monkeypatch.setenv("NEXMARK_HOME", str(tmp_path / "home"))
    params = {"workload": "smoke", "cluster": "local", "queries": "q7"}
    night = make_night(load(), "spark-4.3.0", "nexmark_spark_4_3_0", "run 1", params)
    night.events_dir.mkdir(parents=True)
    shutil.copy(RECORDED, night.events_dir)
    put_out(night.events_dir, right_sql("q7"), night.verified_dir("q7"))
    put_out(boundary_events(tmp_path), right_sql("q7"), night.boundary_dir("q7"))
    return night


def boundary_events(tmp_path: Path) -> Path:
    directory = tmp_path / "boundary"
    directory.mkdir(exist_ok=True)
    boundary.write(directory)
    return directory


def put_out(events: Path, sql: str, directory: Path) -> None:
    """Leave what a query job leaves: the rows of `sql` over the events."""
    directory.mkdir(parents=True, exist_ok=True)
    with open_events(events) as opened:
        opened.connection.execute(f"COPY ({sql}) TO '{directory}/part-0.parquet'")


def test_right_over_both(night: Night) -> None:
    found = verify(night, "q7")
    assert (found.success, found.failures) == (True, ())
    numbers = found.statistics
    assert numbers["events"] == 10_000
    assert numbers["boundary_rows"] == numbers["boundary_reference_rows"]
    assert found.evaluated == 2 * (6 + len(invariants("q7")))
    index = (night.directory / "data_docs" / "index.html").read_text()
    assert "q7_boundary" in index


def test_a_near_miss_is_wrong_although_it_is_right_over_the_generated_events(
    night: Night, tmp_path: Path
) -> None:
    wrong = right_sql("q7")
    for old, new in WRONG_Q7.items():
        assert old in wrong
        wrong = wrong.replace(old, new)
    put_out(boundary_events(tmp_path), wrong, night.boundary_dir("q7"))
    found = verify(night, "q7")
    assert not found.success
    assert found.statistics["missing_rows"] == found.statistics["unexpected_rows"] == 0
    assert found.failures[0].startswith("over the boundary events: ")


def test_no_rows_over_the_boundary_events(night: Night) -> None:
    shutil.rmtree(night.boundary_dir("q7"))
    found = verify(night, "q7")
    assert not found.success
    (failure,) = found.failures
    assert failure.startswith("over the boundary events: no output directory")


def note(night: Night, query: str, state: str) -> None:
    """Leave what the application of all verification runs leaves in its log."""
    line = {"query": query, "state": state, "reason": state}
    with (night.directory / "verify.jsonl").open("a") as log:
        log.write(json.dumps(line) + "\n")


def test_a_query_is_checked_while_others_still_run(night: Night) -> None:
    early = night.query_dir("q7") / "verify" / "verification.json"
    with checked_early(night):
        note(night, "q7", "done")
        wait_for(early.exists, 60)
    found = take(night, "q7")
    assert found is not None
    assert found.success
    assert take(night, "q7") is None, "a task that is cleared has to check it by itself"


def test_a_check_does_not_stand_behind_every_busy_program(night: Night) -> None:
    early = night.query_dir("q7") / "verify" / "verification.json"
    seen = set()

    def checked() -> bool:
        for thread in Path("/proc/self/task").iterdir():
            with suppress(ProcessLookupError):
                seen.add(os.getpriority(os.PRIO_PROCESS, int(thread.name)))
        return early.exists()

    with checked_early(night):
        note(night, "q7", "done")
        wait_for(checked, 60)
    assert seen == {os.getpriority(os.PRIO_PROCESS, 0)}


def test_what_ends_last_is_checked_before_the_task_ends(night: Night) -> None:
    with checked_early(night):
        note(night, "q7", "done")
    assert take(night, "q7") is not None


def test_a_query_that_failed_is_left_to_its_own_task(night: Night) -> None:
    note(night, "q7", "failed")
    with checked_early(night):
        pass
    assert take(night, "q7") is None


def test_an_added_expectation_that_nobody_knows_ends_the_night_before_it_runs(
    night: Night, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NEXMARK_CONF", str(tmp_path / "conf"))
    (tmp_path / "conf" / "expectations").mkdir(parents=True)
    added = tmp_path / "conf" / "expectations" / "q7.json"
    added.write_text('{"expectations": [{"type": "expect_nothing_at_all"}]}')
    build = Deployment(
        **{"build": "b", "spark_version": "4.3.0", "spark_home": "s", "source": "pypi:4.3.0"},
        **{"jobs": "j", "jobs_home": "j", "program": "p"},
    )
    with pytest.raises(ConfigError, match=r"q7\.json:1: expectations\.0: unknown expectation"):
        plan_together(night, build)
