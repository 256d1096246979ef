"""`nexmark_rollout` to its end: green triggers the next stage, red stops, a person goes on."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from nexmark.config import ROLLOUT_DAG_ID
from nexmark.engines import Build
from nexmark.rollout.state import Rollout
from tests.airflow_site import ENDED, Airflow, airflow_of
from tests.site import ENGINE, Site, make_site

pytestmark = [pytest.mark.spark, pytest.mark.long]

ROUNDS = {"rounds": [3, 4], "pursue_z": [1.0]}
PARAMS = {
    "engine": ENGINE,
    "workload": "tiny",
    "cluster": "local",
    "candidate_conf": {"spark.sql.shuffle.partitions": 16},
    "stages": "q0; q11",
    "name": "slow",
    "repetitions": 3,
}


@pytest.fixture(scope="module")
def site(
    tmp_path_factory: pytest.TempPathFactory, engine_build: Callable[[str], Build]
) -> Iterator[Site]:
    directory = tmp_path_factory.mktemp("rollout_dag")
    made = make_site(
        directory / "home", directory / "conf", engine_build(ENGINE), queries=["q0", "q11"]
    )
    made.gate(mode="paired", **ROUNDS, comparison=ROUNDS | {"matters": 1.0})
    yield made
    made.stop()


@pytest.fixture(scope="module")
def airflow(site: Site, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Airflow]:
    with airflow_of(site, tmp_path_factory.mktemp("logs"), ROLLOUT_DAG_ID) as made:
        yield made


def runs(airflow: Airflow) -> list[dict[str, Any]]:
    found = airflow.ask(f"/api/v2/dags/{ROLLOUT_DAG_ID}/dagRuns?order_by=run_after")
    return list(found["dag_runs"])


def states(site: Site, patch: pytest.MonkeyPatch) -> list[str]:
    patch.setenv("NEXMARK_HOME", str(site.home))
    return [stage.state for stage in Rollout.read("slow").stages]


def ended(airflow: Airflow, count: int) -> Callable[[], bool]:
    def condition() -> bool:
        found = runs(airflow)
        return len(found) == count and all(run["state"] in ENDED for run in found)

    return condition


def test_a_rollout_stops_goes_back_and_goes_on_after_an_acceptance(
    airflow: Airflow, site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = airflow.trigger(ROLLOUT_DAG_ID, PARAMS)
    airflow.wait(ended(airflow, 2), ROLLOUT_DAG_ID, first)
    of_q0, of_q11 = runs(airflow)
    assert (of_q0["state"], of_q11["state"]) == ("success", "failed")
    assert of_q11["conf"]["resume"] == "slow"
    assert states(site, monkeypatch) == ["green", "red"]
    rollout = Rollout.read("slow")
    (step,) = rollout.stages[1].steps
    assert (step.forward, step.backward) == ("right", "right")
    assert airflow.task(ROLLOUT_DAG_ID, of_q11["dag_run_id"], "next_stage") != "success"
    page = site.home / "rollouts" / "slow.html"
    assert "rolled back: right: the old arm went on from checkpoints of the new one: q11" in (
        page.read_text()
    )
    assert Path(rollout.stages[1].evidence).is_file()

    assert airflow.run(ROLLOUT_DAG_ID, {"resume": "slow"}) == "failed"  # nobody has accepted it
    assert states(site, monkeypatch) == ["green", "red"]
    airflow.run(ROLLOUT_DAG_ID, {"resume": "slow", "accept": "to try it"})
    assert states(site, monkeypatch) == ["green", "accepted"]
    assert len(runs(airflow)) == 4
    assert site.leftovers() == []
    assert list((site.home / "clusters").rglob("nexmark-compat-*")) == []
