"""Run directories of nights of mode history, which is gone: they are read, and not judged again."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from nexmark.config import Config, load
from nexmark.config.fields import without_removed
from nexmark.errors import NexmarkError
from nexmark.night.plan import Deployment, Deployments, Night
from nexmark.night.planning import make_night
from nexmark.store import Store, open_store
from nexmark.tasks import infrastructure, judging
from tests.unit.store.history_nights import OLD_KEYS, SLOWER, verdicts
from tests.unit.tasks.in_task import in_task_of

REFUSAL = "mode history was removed; use paired or bounds"


@pytest.fixture(scope="module")
def config() -> Config:
    return load()


@pytest.fixture(autouse=True)
def _home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NEXMARK_HOME", str(tmp_path))
    monkeypatch.delenv("NEXMARK_DB", raising=False)


def plan(config: Config, **params: Any) -> Night:
    asked = {"workload": "smoke", "cluster": "local", "queries": "q0,q5", **params}
    return make_night(config, "spark-4.3.0", "nexmark_spark_4_3_0", "run 1", asked)


def make_old(night: Night, mode: str = "history") -> Night:
    """Write the plan as an earlier version did; return what is read of it."""
    night.write()
    path = night.directory / "night.json"
    content = json.loads(path.read_text())
    content["mode"] = mode
    content["gate"] |= {"mode": mode, "modes": {"small": "history"}, **OLD_KEYS}
    path.write_text(json.dumps(content))
    return Night.read(night.dag_id, night.run_id)


@pytest.fixture
def old(config: Config) -> Night:
    return make_old(plan(config))


@pytest.fixture
def store(old: Night, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Store]:
    """With the old night, judged by the version that it is of."""
    in_task_of(Night.read(old.dag_id, old.run_id), monkeypatch)
    build = Deployment(
        **{"build": "0123456789abcdef", "spark_version": "4.3.0", "spark_home": "/opt/spark"},
        **{"source": "pypi:4.3.0", "jobs": "fedc", "jobs_home": "/opt/jobs"},
    )
    infrastructure.record_night(old, Deployments(candidate=build))
    with open_store(f"sqlite:///{tmp_path / 'results.db'}") as opened:
        opened.record_verdicts(old.name, verdicts(old.name))
        yield opened


def test_the_plan_of_a_night_of_the_mode_can_be_read(old: Night) -> None:
    assert old.mode == "history"
    assert old.arms == ("candidate",)
    assert old.gate.modes == {}


def test_the_plan_of_any_night_of_an_earlier_version_can_be_read(config: Config) -> None:
    found = make_old(plan(config, mode="paired"), "paired")
    assert (found.mode, found.gate.mode) == ("paired", "paired")


def test_what_was_not_removed_stays_in_a_stored_gate() -> None:
    assert without_removed({"version": 5, "mode": "bounds", "modes": None, **OLD_KEYS}) == {
        **{"version": 5, "mode": "bounds", "modes": {}}
    }


def test_judging_such_a_night_again_is_refused_in_one_line(old: Night, store: Store) -> None:
    from airflow.sdk.exceptions import AirflowFailException

    with pytest.raises(AirflowFailException, match=REFUSAL) as caught:
        judging.judge()
    assert "\n" not in str(caught.value)
    assert store.query_verdicts(old.name) == verdicts(old.name)


def test_its_report_can_be_written_again(old: Night, store: Store) -> None:
    told = judging.report()
    assert SLOWER in told["text"]
    assert "mode history" in told["text"]
    assert (old.directory / "report" / "alarms" / "q5" / "evidence.html").is_file()


@pytest.mark.parametrize("against", [None, "pypi:4.3.0"])
def test_a_new_night_of_the_mode_is_refused_in_one_line(
    config: Config, against: str | None
) -> None:
    with pytest.raises(NexmarkError) as caught:
        plan(config, mode="history", against=against)
    assert str(caught.value) == f"mode: {REFUSAL}"
