"""A home and a configuration of its own, to run whole nights in."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import yaml

from nexmark.cluster import open_cluster
from nexmark.config import Gate, load, paths
from nexmark.config.load import load_gate
from nexmark.engines import Build
from nexmark.model import Arm
from nexmark.store import Store, open_store
from nexmark_jobs.host.processes import owned, owner_mark
from tests.class_archive import share_class_archive
from tests.prepared_airflow import share_prepared_airflow

ENGINE = "spark-4.3.0"
DAG_ID = "nexmark_spark_4_3_0"
TINY = {"events": 20_000, "tps": 1_000, "rows_per_batch": 10_000}
NIGHT_TIMEOUT_S = 3600
#: By bounds and in no order, where a test asks for nothing else.
_GATE = {
    **{"version": 1, "metric": "cpu_s_per_mevent", "max_ratio": 2.0},
    **{"mode": "bounds", "order_seed": None},
    # The tests run beside other load: that the canary is read is tested, not what it says.
    **{"canary": 1, "canary_bound": 9.0, "canary_memory_bound": 9.0},
    **{"canary_widening": 0.0, "canary_limits": {}},
}
#: To generate and compile code takes a short run a sixth of its processor time.
_INTERPRETED = """
spark.sql.codegen.wholeStage   false
spark.sql.codegen.factoryMode  NO_CODEGEN
"""
#: Below the ports that outgoing connections get. Each site has a block for both arms.
_FIRST_PORT, _PORTS = 20_000, 20


@dataclass(frozen=True)
class Site:
    """A home and a configuration of its own; `engine` edits the engine's entry."""

    home: Path
    conf: Path

    @property
    def environment(self) -> dict[str, str]:
        return {**os.environ, "NEXMARK_HOME": str(self.home), "NEXMARK_CONF": str(self.conf)}

    def engine(self, **conf: object) -> None:
        """Set the engine's confs."""
        path = self.conf / "engines.yaml"
        content = yaml.safe_load(path.read_text())
        content["engines"][ENGINE]["conf"] = conf
        path.write_text(yaml.safe_dump(content))

    def command(self, *options: str) -> list[str]:
        """The command that runs a night on the workload `tiny`."""
        return [sys.executable, "-m", "nexmark.cli", "run", "--workload", "tiny", *options]

    def night(self, *options: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            self.command(*options),
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=NIGHT_TIMEOUT_S,
        )

    def store(self) -> Store:
        return open_store(f"sqlite:///{self.home / 'results.db'}")

    def gate(self, **settings: object) -> Gate:
        """Set the gate."""
        path = self.conf / "gate.yaml"
        path.write_text(yaml.safe_dump(_GATE | settings))
        return load_gate(path)

    def gate_in_one_round(self, pairs: int) -> Gate:
        """Set the gate: pairs in one round, in comparisons too, and nothing else is run."""
        one_round: dict[str, object] = {"rounds": [pairs], "pursue_z": []}
        nothing_else: dict[str, object] = {"self_test": 0, "flame_graphs": False, "canary": 0}
        return self.gate(mode="paired", **nothing_else, **one_round, comparison=one_round)

    def stop(self) -> None:
        """End what nights have left of the cluster `local`, of both arms."""
        local = load(self.conf).clusters["local"]
        for arm in (Arm.CANDIDATE, Arm.BASELINE):
            open_cluster(local.of_arm(arm), self.home).stop()

    def leftovers(self) -> list[str]:
        marks = [owner_mark(self.home, name) for name in ("local", "local-baseline")]
        return [process.command for mark in marks for process in owned(mark)]


def run_name(night: subprocess.CompletedProcess[str]) -> str:
    """The name of the run of a night that was recorded."""
    return run_of(night.stdout + night.stderr)


def run_of(output: str) -> str:
    """The same, of what a night has printed."""
    match = re.search(rf"Run ({DAG_ID}/\S+)", output)
    assert match, output
    return match[1]


def make_site(
    home: Path,
    conf: Path,
    build: Build,
    *,
    shares: bool = True,
    interpreted: bool = False,
    **workload: object,
) -> Site:
    """A site whose only engine has `build`, with ports of its own and a workload of seconds.

    `shares`: its drivers start from the class archive of all sites. `interpreted`: its queries run
    without generated code, for nights that are not about the queries. `workload`: what that has
    otherwise.
    """
    shutil.copytree(paths.repository() / "include" / "conf", conf)
    if interpreted:
        with (conf / "spark" / "quick.conf").open("a") as profile:
            profile.write(_INTERPRETED)
    home.mkdir(parents=True, exist_ok=True)
    share_prepared_airflow(home)
    if shares:
        share_class_archive(build, home)
    tiny = {**TINY, "verify": TINY, "repetitions": 2, "warmup_batches": 1}
    tiny |= {"sampling_interval_s": 0.2, "conf_profile": "quick"} | workload
    engine = {"build": {"directory": str(build.spark_home)}, "workload": "tiny"}
    (conf / "engines.yaml").write_text(yaml.safe_dump({"engines": {ENGINE: engine}}))
    (conf / "workloads.yaml").write_text(yaml.safe_dump({"workloads": {"tiny": tiny}}))
    cluster = yaml.safe_load((conf / "clusters.yaml").read_text())
    names = ("master_port", "worker_port", "master_ui_port", "worker_ui_port")
    first = _FIRST_PORT + _PORTS * (os.getpid() % 500)  # another test process has others
    cluster["clusters"]["local"] |= {name: first + i for i, name in enumerate(names)}
    cluster["clusters"]["local"]["kafka_port"] = first + 8  # and the next one
    (conf / "clusters.yaml").write_text(yaml.safe_dump(cluster))
    site = Site(home, conf)
    site.gate()
    return site
