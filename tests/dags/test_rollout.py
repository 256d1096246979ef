"""A rollout through real nights: too many partitions stop it, and the way back is right."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Callable, Iterator

import pytest

from nexmark.engines import Build
from nexmark.rollout.state import Rollout
from tests.site import ENGINE, NIGHT_TIMEOUT_S, Site, make_site
from tests.waiting import wait_for

pytestmark = [pytest.mark.spark, pytest.mark.long]

ROUNDS = {"rounds": [3, 4], "pursue_z": [1.0]}
PARTITIONS = "spark.sql.shuffle.partitions"
BEGIN = ("--conf", f"{PARTITIONS}=16", "--stages", "q0; q11; all", "--name", "slow")


@pytest.fixture(scope="module")
def site(
    tmp_path_factory: pytest.TempPathFactory, engine_build: Callable[[str], Build]
) -> Iterator[Site]:
    directory = tmp_path_factory.mktemp("rollout")
    queries = ["q0", "q11", "q17"]
    made = make_site(directory / "home", directory / "conf", engine_build(ENGINE), queries=queries)
    made.gate(mode="paired", **ROUNDS, comparison=ROUNDS | {"matters": 1.0})
    yield made
    made.stop()


def command(*options: str) -> list[str]:
    return [sys.executable, "-m", "nexmark.cli", "rollout", *options]


def rollout(site: Site, *options: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command(*options),
        env=site.environment,
        capture_output=True,
        text=True,
        timeout=NIGHT_TIMEOUT_S,
    )


@pytest.fixture(scope="module")
def stopped(site: Site) -> subprocess.CompletedProcess[str]:
    place = ("--workload", "tiny", "--cluster", "local", "--repetitions", "3")
    return rollout(site, *BEGIN, *place)


def test_it_stops_at_the_first_stateful_stage_and_goes_back_right(
    stopped: subprocess.CompletedProcess[str],
) -> None:
    said = stopped.stdout
    assert stopped.returncode == 1, said + stopped.stderr
    assert "stopped: stage 2 is red: q11" in said
    assert "rolled back: right: the old arm went on from checkpoints of the new one: q11" in said
    assert f"the second side asked for {PARTITIONS}=16, the checkpoint has 2" in said
    assert f"going back, the first side asked for {PARTITIONS}=2, the checkpoint has 16" in said


def test_nothing_is_left_of_it(site: Site, stopped: subprocess.CompletedProcess[str]) -> None:
    assert site.leftovers() == []
    assert list((site.home / "clusters").rglob("nexmark-compat-*")) == []


def test_it_goes_on_after_an_acceptance_and_ctrl_c_leaves_nothing(
    site: Site, stopped: subprocess.CompletedProcess[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    refused = rollout(site, "--resume", "slow")
    assert refused.returncode == 2
    assert refused.stderr.startswith("rollout slow: stage 2 is red: q11")
    again = subprocess.Popen(
        command("--resume", "slow", "--accept", "to try it"),
        env=site.environment,
        stdout=subprocess.PIPE,
        text=True,
    )
    wait_for(lambda: bool(site.leftovers()), 600)
    again.send_signal(signal.SIGINT)
    assert again.wait(120) == 130
    assert site.leftovers() == []
    monkeypatch.setenv("NEXMARK_HOME", str(site.home))
    states = [stage.state for stage in Rollout.read("slow").stages]
    assert states == ["green", "accepted", "waiting"]
