"""The plan of one DAG run: preflight decides it once, tasks only read it; and its deployments."""

import json
import os
import shutil
import socket
import sys
from collections.abc import Mapping
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path

from pydantic import Field

import nexmark_jobs
from nexmark import config
from nexmark.cluster import Release, SparkCluster, open_cluster
from nexmark.config import BuildSource, paths
from nexmark.config.fields import Model
from nexmark.engines.build import scan
from nexmark.errors import NexmarkError
from nexmark.home import whole_directory, write_text
from nexmark.model import ARMS, Arm, Mode, RunKey
from nexmark.night.run_directory import RunDirectory
from nexmark_jobs.host.leases import locked


class Night(Model):
    """The plan of one DAG run: a change of `include/conf` while it runs does not reach it.

    Attributes:
        candidate_conf: Spark confs of the candidate alone, if the night tests a setting.
        mode: how it is judged (`include/conf/gate.yaml`).
        against: by query the build to compare with in this night, if there is one.
        accepted: by query the id of the build in `against`, if it is the accepted build.
        teaches: whether the gate learns from it (`planning.teaches`).
        compatibility: the size at which the baseline and the candidate go on from each other's
            checkpoints; None: they do not.
        self_test: by arm (control, slowed) the query by which the gate itself is tested.
        slowed_confs: in a paced night, what makes the rows of the slowed arm later.
        seed: decides which arm of a query is first.
        deadline: when the budget of the night ends: a round that would last longer is not begun.
        machine: the name of the machine that the preflight ran on.
    """

    dag_id: str
    run_id: str
    engine: config.Engine
    workload: config.Workload
    cluster: config.AnyCluster
    gate: config.Gate
    queries: tuple[str, ...]
    candidate: BuildSource
    candidate_conf: config.SparkConf = Field(default_factory=dict)
    mode: Mode = Mode.BOUNDS
    teaches: bool = True
    against: Mapping[str, BuildSource] = Field(default_factory=dict)
    accepted: Mapping[str, str] = Field(default_factory=dict)
    compatibility: config.Span | None = None
    self_test: Mapping[str, str] = Field(default_factory=dict)
    slowed_confs: Mapping[str, str] = Field(default_factory=dict)
    seed: int = 0
    deadline: datetime | None = None
    machine: str = Field(default_factory=socket.gethostname)

    @property
    def files(self) -> RunDirectory:
        """The files of the night."""
        return RunDirectory.of(self.dag_id, self.run_id)

    @property
    def directory(self) -> Path:
        """The run directory."""
        return self.files.path

    @property
    def name(self) -> str:
        """The name of the night in the results database."""
        return str(RunKey(self.dag_id, self.run_id))

    @property
    def conf_profile(self) -> str:
        """The engine's conf profile, else the workload's."""
        return self.engine.conf_profile or self.workload.conf_profile

    @cached_property
    def clusters(self) -> Mapping[str, SparkCluster]:
        """The cluster of each arm that there can be."""
        return {arm: open_cluster(self.cluster.of_arm(arm), paths.home()) for arm in ARMS}

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
        """Return where everything about `query` goes."""
        return self.files.group(query).path

    def verified_dir(self, query: str) -> Path:
        """Return the output of the verification run of `query`."""
        return RunDirectory(self.data_dir).group(query).verify.path / "output"

    def boundary_dir(self, query: str) -> Path:
        """Return the output of the verification run of `query` over the boundary events."""
        return self.verified_dir(query).with_name("boundary")

    def write(self) -> None:
        """Write it where `read` finds it; NexmarkError if the directory is another run's.

        Characters that a file name should not have are all alike in the name of a directory.
        """
        path = self.files.night
        other = json.loads(path.read_text()).get("run_id") if path.exists() else self.run_id
        if other != self.run_id:
            remedy = "start the DAG run again, with a run id of other letters or digits"
            raise NexmarkError(f"{self.directory}: is the directory of run {other}; {remedy}")
        self.directory.mkdir(parents=True, exist_ok=True)
        write_text(path, self.model_dump_json(indent=1))

    @classmethod
    def read(cls, dag_id: str, run_id: str) -> "Night":
        """Return the plan of a DAG run; NexmarkError if its preflight has not been passed."""
        return cls.model_validate_json(_text(RunDirectory.of(dag_id, run_id).night))


class Deployment(Model):
    """A deployed Spark build and the deployed jobs, each named by its content.

    `program` is the hash of what a timed run imports of the jobs.
    `python` is the interpreter of drivers on this machine, the same for all arms of a night.
    """

    build: str
    spark_version: str
    spark_home: str
    source: str
    jobs: str
    jobs_home: str
    program: str
    python: str = sys.executable

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
        night.directory.mkdir(parents=True, exist_ok=True)
        write_text(night.files.deployment, self.model_dump_json(indent=1))

    @staticmethod
    def written(night: Night) -> datetime:
        """Return when they were written: when the night began."""
        return datetime.fromtimestamp(night.files.deployment.stat().st_mtime, UTC)

    @classmethod
    def read(cls, night: Night) -> "Deployments":
        """Return the deployments of `night`; NexmarkError if there are none."""
        return cls.model_validate_json(_text(night.files.deployment))


def _text(path: Path) -> str:
    try:
        return path.read_text()
    except FileNotFoundError:
        raise NexmarkError(f"{path}: there is no such file; start a new DAG run") from None


def deploy_jobs(target: Path) -> tuple[str, Path]:
    """Copy `nexmark_jobs` to `<target>/<id>/nexmark_jobs`, where no later edit reaches it.

    Returns the id (hash of the content) and the directory of the package.
    """
    source = Path(nexmark_jobs.__path__[0])
    name = scan(source).id
    package = target / name / "nexmark_jobs"
    with locked(target / ".lock"):
        if not (package.is_dir() and scan(package).id == name):
            _replace_copy(source, package.parent)
        os.utime(package.parent)  # what was not used for longest is removed first
    return name, package


def _replace_copy(source: Path, directory: Path) -> None:
    """Copy `source` into `directory`, which is there whole or not at all.

    A damaged one is moved aside: who reads one of its files keeps that file.
    """
    damaged = directory.with_name(f".{directory.name}-damaged-{os.getpid()}")
    shutil.rmtree(damaged, ignore_errors=True)
    with whole_directory(directory) as copy:
        shutil.copytree(source, copy / source.name, ignore=shutil.ignore_patterns("__pycache__"))
        if directory.exists():
            directory.rename(damaged)
    shutil.rmtree(damaged, ignore_errors=True)
