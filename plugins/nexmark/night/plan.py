"""The plan of one DAG run: preflight decides it once, tasks only read it.

<run directory>/night.json        Night: engine, workload, cluster, queries, gate as they were
<run directory>/deployment.json   Deployments: the builds and the jobs that were deployed
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import Literal

from pydantic import Field

from nexmark.cluster import Release, SparkCluster, open_cluster
from nexmark.config import (
    AnyCluster,
    BuildSource,
    Engine,
    Gate,
    Mode,
    Size,
    Span,
    SparkConf,
    Workload,
    paths,
)
from nexmark.config.fields import Model, without_removed
from nexmark.errors import NexmarkError
from nexmark.model import Arm, RunKey


class Night(Model):
    """The plan of one DAG run: a change of `include/conf` while it runs does not reach it.

    Attributes:
        candidate_conf: Spark confs of the candidate alone, if the night tests a setting.
        mode: how it is judged: by bounds or paired (`include/conf/gate.yaml`); plans of earlier
            versions can have history, which is read and not judged.
        against: by query the build to compare with in this night, if there is one.
        accepted: by query the id of the build in `against`, if it is the accepted build.
        teaches: whether the gate learns from it (`checks.teaches`).
        compatibility: the size at which the baseline and the candidate go on from each other's
            checkpoints; None: they do not.
        self_test: by arm (control, slowed) the query by which the gate itself is tested.
        slowed_confs: in a paced night, what makes the rows of the slowed arm later.
        seed: decides which arm of a query is first.
    """

    dag_id: str
    run_id: str
    engine: Engine
    workload: Workload
    cluster: AnyCluster
    gate: Gate
    queries: tuple[str, ...]
    candidate: BuildSource
    candidate_conf: SparkConf = Field(default_factory=dict)
    mode: Mode | Literal["history"] = "bounds"
    teaches: bool = True
    against: Mapping[str, BuildSource] = Field(default_factory=dict)
    accepted: Mapping[str, str] = Field(default_factory=dict)
    compatibility: Span | None = None
    self_test: Mapping[str, str] = Field(default_factory=dict)
    slowed_confs: Mapping[str, str] = Field(default_factory=dict)
    seed: int = 0

    @property
    def directory(self) -> Path:
        """The run directory."""
        return paths.run_dir(self.dag_id, self.run_id)

    @property
    def name(self) -> str:
        """The name of the night in the results database."""
        return str(RunKey(self.dag_id, self.run_id))

    @property
    def conf_profile(self) -> str:
        """The engine's conf profile, else the workload's."""
        return self.engine.conf_profile or self.workload.conf_profile

    @property
    def slowed(self) -> Size:
        """The seeded slowdown: more events in each batch, by `self_test`, that are not counted.

        Its size is known and the same for every query, and it is real work of the query itself. In
        a paced night rows are later instead (`slowed_confs`).
        """
        more = 1 if self.workload.is_paced else 1 + self.gate.self_test
        return Size(
            events=round(self.workload.events * more),
            tps=self.workload.tps,
            rows_per_batch=round(self.workload.rows_per_batch * more),
        )

    @cached_property
    def clusters(self) -> Mapping[str, SparkCluster]:
        """The cluster of each arm that there can be."""
        return {
            arm: open_cluster(self.cluster.of_arm(arm), paths.home())
            for arm in (Arm.CANDIDATE, Arm.BASELINE)
        }

    @property
    def arms(self) -> tuple[str, ...]:
        """The arms of this night."""
        return (Arm.CANDIDATE, Arm.BASELINE) if self.against else (Arm.CANDIDATE,)

    @property
    def spark_cluster(self) -> SparkCluster:
        """The cluster of the candidate; it also runs every application that is not timed."""
        return self.clusters[Arm.CANDIDATE]

    @property
    def data_dir(self) -> Path:
        """Where applications write what executors write; the run directory if it can be."""
        return self.spark_cluster.data_dir(self.directory)

    @property
    def events_dir(self) -> Path:
        """The events of the verification runs, as the reference reads them."""
        return self.data_dir / "events"

    def query_dir(self, query: str) -> Path:
        """Where everything about `query` goes."""
        return self.directory / query

    def verified_dir(self, query: str) -> Path:
        """Return the output of the verification run of `query`."""
        return self.data_dir / query / "verify" / "output"

    def boundary_dir(self, query: str) -> Path:
        """Return the output of the verification run of `query` over the boundary events."""
        return self.verified_dir(query).with_name("boundary")

    def write(self) -> None:
        """Write it where `read` finds it."""
        _write(self.directory / "night.json", self)

    @classmethod
    def read(cls, dag_id: str, run_id: str) -> Night:
        """The plan of a DAG run; NexmarkError if its preflight has not been passed."""
        plan = json.loads(_text(paths.run_dir(dag_id, run_id) / "night.json"))
        if isinstance(plan.get("gate"), dict):  # of an earlier version, maybe
            plan["gate"] = without_removed(plan["gate"])
        return cls.model_validate_json(json.dumps(plan))


class Deployment(Model):
    """A deployed Spark build and the deployed jobs, each named by its content."""

    build: str
    spark_version: str
    spark_home: str
    source: str
    jobs: str
    jobs_home: str

    @property
    def spark_release(self) -> Release:
        """Return the deployed build."""
        return Release(f"spark-{self.build}", self.build, Path(self.spark_home))

    @property
    def jobs_release(self) -> Release:
        """Return the deployed jobs."""
        return Release(f"jobs-{self.jobs}", self.jobs, Path(self.jobs_home))


class Deployments(Model):
    """The builds of the arms of a night; a query that is compared with none has no baseline."""

    candidate: Deployment
    baselines: Mapping[str, Deployment] = Field(default_factory=dict)

    def of(self, arm: str, query: str) -> Deployment:
        """Return the deployment that `arm` of `query` runs."""
        return self.candidate if arm == Arm.CANDIDATE else self.baselines[query]

    def arms(self, query: str) -> list[Deployment]:
        """Return the deployments of `query`: the candidate's, and a baseline's if it has one."""
        return [self.candidate, *([self.baselines[query]] if query in self.baselines else [])]

    def write(self, night: Night) -> None:
        """Write it where `read` finds it."""
        _write(night.directory / "deployment.json", self)

    @classmethod
    def read(cls, night: Night) -> Deployments:
        """The deployments of `night`; NexmarkError if there are none."""
        return cls.model_validate_json(_text(night.directory / "deployment.json"))


def _write(path: Path, content: Model) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_suffix(".tmp")
    temporary.write_text(content.model_dump_json(indent=1))
    temporary.replace(path)


def _text(path: Path) -> str:
    try:
        return path.read_text()
    except FileNotFoundError:
        raise NexmarkError(f"{path}: there is no such file; start a new DAG run") from None
