"""A workload's sizes follow from its kind, and what is missing is said with its line."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
import yaml

from nexmark.config import ConfigError, Workload, load, paths
from nexmark.config.workload_models import Recovery

PACED = {
    **{"kind": "paced", "source": "kafka", "partitions": 2, "rate": 500},
    **{"seconds": 20, "warm_up": 10, "trigger": "micro-batch", "queries": ["q0"]},
}


def workload(tmp_path: Path, **changes: Any) -> Workload:
    conf = tmp_path / "conf"
    shutil.copytree(paths.repository() / "include" / "conf", conf)
    content = yaml.safe_load((conf / "workloads.yaml").read_text())
    entry = {name: value for name, value in (PACED | changes).items() if value is not None}
    content["workloads"]["mine"] = entry
    (conf / "workloads.yaml").write_text(yaml.safe_dump(content))
    return load(conf).workloads["mine"]


def test_the_sizes_follow_from_the_rate(tmp_path: Path) -> None:
    made = workload(tmp_path)
    assert (made.events, made.tps, made.rows_per_batch, made.warmup_batches) == (
        15_000,
        500,
        5000,
        1,
    )
    assert Workload.model_validate_json(made.model_dump_json()) == made


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"rate": None}, "workloads.mine.rate: a paced workload needs rate; add it"),
        ({"partitions": None}, "workloads.mine.partitions: a paced workload needs partitions"),
        ({"events": 5}, "workloads.mine.events: events follows from rate, seconds and warm_up"),
        ({"source": None}, "workloads.mine.source: a paced workload reads Kafka"),
        ({"kind": None, "events": 9}, "workloads.mine.rate: rate belongs to kind: paced"),
        ({"seconds": 1}, "workloads.mine.seconds: "),
        ({"rate": "fast"}, "workloads.mine.rate: "),
        ({"trigger": "hourly"}, "workloads.mine.trigger: "),
    ],
)
def test_a_mistake_is_one_line(tmp_path: Path, changes: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigError) as refused:
        workload(tmp_path, **changes)
    assert said in str(refused.value)
    assert "\n" not in str(refused.value)


RECOVERY = {
    **dict.fromkeys(PACED),
    **{"kind": "recovery", "events": 10, "tps": 10, "rows_per_batch": 2, "queries": ["q5"]},
}


def test_a_recovery_workload_verifies_its_own_events(tmp_path: Path) -> None:
    made = workload(tmp_path, **RECOVERY, recovery={"changelog": True})
    assert made.verifies_the_timed_input("q5")
    assert (made.recovered.kill, made.recovered.at, made.recovered.changelog) == ("driver", 0.5, 1)
    assert workload(tmp_path / "plain", **RECOVERY).recovered == Recovery()
    assert Workload.model_validate_json(made.model_dump_json()) == made


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"verify": {"events": 5}}, "mine.verify: verify is given in a recovery workload; remove"),
        ({"source": "kafka"}, "mine.source: source is given in a recovery workload; remove it"),
        ({"recovery": {"kill": "host"}}, "mine.recovery.kill: "),
        ({"recovery": {"at": 1}}, "mine.recovery.at: "),
        (
            {"recovery": {"state": "hdfs", "changelog": True}},
            "recovery.changelog: only RocksDB has",
        ),
        ({"kind": None, "recovery": {}}, "mine.recovery: recovery belongs to kind: recovery"),
    ],
)
def test_a_mistake_in_a_recovery_workload_is_one_line(
    tmp_path: Path, changes: dict[str, Any], said: str
) -> None:
    with pytest.raises(ConfigError) as refused:
        workload(tmp_path, **RECOVERY | changes)
    assert said in str(refused.value)
    assert "\n" not in str(refused.value)
