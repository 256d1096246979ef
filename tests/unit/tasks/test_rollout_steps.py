"""Runs of `nexmark_rollout`: each takes the next stage, a red one waits for a person."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from airflow.sdk.exceptions import AirflowFailException, AirflowSkipException

from nexmark.rollout.state import Rollout
from nexmark.tasks import rollout_steps
from tests.unit.rollout.test_rolling import CONF, Nights

NEW = {"candidate_conf": CONF, "stages": "q0; q5; q17", "name": "slow", "workload": "nightly"}
ON = {"resume": "slow"}


class Runs:
    """Runs of the DAG, without the tasks of their nights."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._patch = monkeypatch
        self._nights = Nights({"q5": 1.5}, dag_id="nexmark_rollout")
        self._count = 0
        self.asked: list[dict[str, Any]] = []
        self.set("prepare_night", lambda engine, params: self.asked.append(params))
        self.set("no_night", AirflowSkipException)

    def set(self, name: str, value: Any) -> None:
        self._patch.setattr(rollout_steps, name, value)

    def begin(self, **params: Any) -> None:
        self._count += 1
        run = SimpleNamespace(
            dag_id="nexmark_rollout",
            run_id=f"run-{self._count}",
            triggering_user_name="ada",
            conf=params,
        )
        context = {"params": params, "dag_run": run, "dag": SimpleNamespace(params=params)}
        self.set("get_current_context", lambda: context)
        rollout_steps.rollout_preflight()

    def end(self) -> list[dict[str, str]]:
        name = self._nights(self.asked[-1]["queries"].split(","))
        self.set("current_night", lambda: SimpleNamespace(name=name))
        return rollout_steps.judge_stage()


@pytest.fixture
def runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Runs:
    monkeypatch.setenv("NEXMARK_HOME", str(tmp_path))
    monkeypatch.delenv("NEXMARK_DB", raising=False)
    return Runs(monkeypatch)


def states() -> list[str]:
    return [stage.state for stage in Rollout.read("slow").stages]


def test_a_green_stage_names_the_next_run_and_a_red_one_waits_for_a_person(runs: Runs) -> None:
    runs.begin(**NEW)
    assert runs.end() == [ON]
    runs.begin(**ON)
    with pytest.raises(AirflowFailException, match=r"stage 2 is red: q5 .*; rolled back: right: "):
        runs.end()
    with pytest.raises(AirflowFailException, match="stage 2 is red: q5"):
        runs.begin(**ON)
    runs.begin(**ON, accept="it has to be")
    assert runs.end() == []
    assert states() == ["green", "accepted", "green"]
    assert Rollout.read("slow").stages[1].accepted.endswith("by ada: it has to be")
    assert [asked["queries"] for asked in runs.asked] == ["q0", "q5", "q17"]
    assert all(asked["candidate_conf"] == CONF for asked in runs.asked)
    with pytest.raises(AirflowSkipException, match="all stages have it"):
        runs.begin(**ON)


def test_a_cleared_task_stays_with_the_stage_of_its_run(runs: Runs) -> None:
    runs.begin(**NEW)
    rollout_steps.rollout_preflight()
    assert [asked["queries"] for asked in runs.asked] == ["q0", "q0"]
    assert runs.end() == rollout_steps.judge_stage() == [ON]
    assert states() == ["green", "waiting", "waiting"]


@pytest.mark.parametrize(
    ("params", "says"),
    [
        ({**NEW, "stages": None}, "stages: none are given"),
        ({"stages": "q0"}, "nothing to roll out"),
        ({**ON, "stages": "q0"}, "resume: a rollout keeps its first params"),
        (ON, "resume: no rollout 'slow'"),
    ],
)
def test_bad_params_fail_in_one_line(runs: Runs, params: dict[str, Any], says: str) -> None:
    with pytest.raises(AirflowFailException, match=says):
        runs.begin(**params)
