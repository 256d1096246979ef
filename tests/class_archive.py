"""The class archive that the nights of all sites use: each site would make its own otherwise."""

from __future__ import annotations

import subprocess
import tempfile
from pathlib import Path

import nexmark_jobs
from nexmark.config import load, paths
from nexmark.engines import Build, local_environment, resolve
from nexmark.engines.short_runs import ClassArchive, spark_conf_dir
from nexmark_jobs.host.leases import locked
from tests.quick_jvm import QUICK_JVM

_MAKING_S = 600


def share_builds(home: Path) -> None:
    """Let a home have the builds that `make run` has, and the newest engine's archive."""
    home.mkdir(parents=True, exist_ok=True)
    (home / "builds").symlink_to(paths.builds_dir())
    newest = next(iter(load().engines.values()))
    share_class_archive(resolve(newest.build, paths.builds_dir()), home)


def share_class_archive(build: Build, home: Path) -> None:
    """Let the nights of a home use the archive of a build; it is made if it is not there."""
    conf_dir = spark_conf_dir(paths.home())
    (home / "no-spark-conf").symlink_to(conf_dir)
    archive = ClassArchive.of(build.spark_home, build.version, conf_dir)
    with locked(archive.path.with_suffix(".lock"), _MAKING_S):
        if not archive.use():
            conf_dir.mkdir(exist_ok=True)
            _make(build, archive)


def _make(build: Build, archive: ClassArchive) -> None:
    with tempfile.TemporaryDirectory() as temporary:
        work = Path(temporary)
        unfinished = archive.unfinished("tests")
        options = f"{QUICK_JVM} -XX:ArchiveClassesAtExit={unfinished}"
        command = [
            *(str(build.spark_home / "bin" / "spark-submit"), "--master", "local[1]"),
            *("--conf", f"spark.driver.defaultJavaOptions={options}"),
            *("--conf", "spark.sql.shuffle.partitions=2", "--conf", "spark.ui.enabled=false"),
            *("--conf", "spark.eventLog.enabled=true", "--conf", f"spark.eventLog.dir={work}"),
            str(Path(nexmark_jobs.__file__).parent / "run_query.py"),
            *("--query", "q5", "--events", "6000", "--tps", "100", "--rows-per-batch", "3000"),
            *("--sink", f"parquet:{work / 'archive'}", "--result", str(work / "archive.json")),
        ]
        environment = local_environment(build.spark_home, work)
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
        unfinished.replace(archive.path)
