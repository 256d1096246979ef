"""The deployed builds and jobs of a night: preflight plans them, the task `deploy` writes them."""

import hashlib
import os
import shutil
import sys
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from pathlib import Path

from pydantic import Field

import nexmark_jobs
from nexmark.cluster import Release
from nexmark.config import Job
from nexmark.config.fields import Model
from nexmark.engines.build import FileRecord, Manifest, scan
from nexmark.home import whole_directory, write_text
from nexmark.model import Arm
from nexmark.night.night_plan import Night, text_of
from nexmark.secrets import shown_build
from nexmark_jobs.host.leases import locked

#: Where the jobs of a person's own are in the copy (`nexmark_jobs.own_jobs`).
OWN = "own"


class Deployment(Model):
    """A deployed Spark build and the deployed jobs, each named by its content.

    `program` is the hash of what a timed run imports of the jobs.
    `python` is the interpreter of drivers on this machine, the same for all arms of a night.
    `revision` is the commit that the build was made from, "" if that is not known.
    """

    build: str
    spark_version: str
    spark_home: str
    source: str
    jobs: str
    jobs_home: str
    program: str
    python: str = sys.executable
    revision: str = ""

    @property
    def name(self) -> str:
        """The build for people: version and origin first, then the id, without secrets."""
        return shown_build(self.spark_version, self.source, self.build)

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
        return cls.model_validate_json(text_of(night.files.deployment))


def deploy_jobs(target: Path, jobs: Iterable[Job] = ()) -> tuple[str, Path]:
    """Copy `nexmark_jobs` to `<target>/<id>/nexmark_jobs`, where no later edit reaches it.

    Returns the id (hash of the content) and the directory of the package.

    Args:
        target: Where the copies are.
        jobs: The jobs of a person's own that the copy has, too.
    """
    source = Path(nexmark_jobs.__path__[0])
    added = {f"{OWN}/{name}": text for job in jobs for name, text in job.files().items()}
    name = _with_files(scan(source), added).id
    package = target / name / "nexmark_jobs"
    with locked(target / ".lock"):
        if not (package.is_dir() and scan(package).id == name):
            _replace_copy(source, package.parent, added)
        os.utime(package.parent)  # what was not used for longest is removed first
    return name, package


def _with_files(manifest: Manifest, added: Mapping[str, bytes]) -> Manifest:
    """Return the manifest of a directory to which files are added: content by path."""
    records = {
        path: FileRecord(len(content), 0, hashlib.sha256(content).hexdigest())
        for path, content in added.items()
    }
    return Manifest({**manifest.files, **records})


def _replace_copy(source: Path, directory: Path, added: Mapping[str, bytes]) -> None:
    """Copy `source` into `directory`, which is there whole or not at all.

    A damaged one is moved aside: who reads one of its files keeps that file.

    Args:
        source: The package to copy.
        directory: Where the copy goes.
        added: Files of the copy that `source` has not: content by path.
    """
    damaged = directory.with_name(f".{directory.name}-damaged-{os.getpid()}")
    shutil.rmtree(damaged, ignore_errors=True)
    with whole_directory(directory) as copy:
        package = copy / source.name
        shutil.copytree(source, package, ignore=shutil.ignore_patterns("__pycache__"))
        for path, content in added.items():
            (package / path).parent.mkdir(parents=True, exist_ok=True)
            (package / path).write_bytes(content)
        if directory.exists():
            directory.rename(damaged)
    shutil.rmtree(damaged, ignore_errors=True)
