"""Let a short Spark application start and end sooner, where its time is not measured.

A JVM that uses a class archive (JDK class data sharing) starts in half the time. It takes one only
with the JDK and the class path that made it, and Spark's class path is SPARK_CONF_DIR and the jars
of the build. So every Spark on this machine has the same empty SPARK_CONF_DIR, and the archives lie
beside it.
"""

import hashlib
import os
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from nexmark.config import paths
from nexmark.engines.jvm import java_option
from nexmark.engines.prerequisites import java_version
from nexmark_jobs.feature_release import feature_release

#: Use the JVM's first compiler only: a short run ends before the second one has saved time.
C1 = "-XX:TieredStopAtLevel=1"

_STREAMING = "org.apache.spark.sql.execution.streaming"
_MOVED = (4, 1)


def spark_conf_dir(home: Path) -> Path:
    """Return the empty SPARK_CONF_DIR of a home.

    If it is a link to another home's, both homes share it, and the class archives beside it.
    """
    return (home / "no-spark-conf").resolve()


@dataclass(frozen=True)
class ClassArchive:
    """The class archive of one build on one JDK, which may not be there yet."""

    path: Path

    @classmethod
    def of(cls, spark_home: Path, version: str, conf_dir: Path) -> "ClassArchive":
        """Return the archive for a build and a SPARK_CONF_DIR.

        Its name has all that the JVM checks before it uses an archive: the JVM and the class path.
        """
        jars = sorted((p.name, p.stat().st_mtime_ns) for p in (spark_home / "jars").glob("*.jar"))
        java = _java(os.environ.get("JAVA_HOME"), os.environ.get("PATH"))
        text = repr((java, str(conf_dir), str(spark_home), jars))
        name = f"{version}-{hashlib.sha256(text.encode()).hexdigest()[:16]}.jsa"
        return cls(conf_dir.parent / "archives" / name)

    def unfinished(self, maker: str) -> Path:
        """Return the path of the archive while `maker` makes it."""
        return self.path.with_suffix(f".{hashlib.sha256(maker.encode()).hexdigest()[:8]}.tmp")

    def make(self, maker: str) -> str:
        """Return the JVM option with which `maker` makes it."""
        return java_option(f"-XX:ArchiveClassesAtExit={self.unfinished(maker)}")

    def use(self) -> list[str]:
        """Return the JVM options to use it; none if it does not exist."""
        return [java_option(f"-XX:SharedArchiveFile={self.path}")] if self.path.exists() else []


@cache
def _java(home: str | None, path: str | None) -> str:
    """Return the output of `java -version` with these variables; ask once, not per repetition."""
    return java_version()


def untimed_options(spark_home: Path, version: str) -> str:
    """Return JVM options for an application whose time is not measured.

    It has to run in the environment of `build.local_environment`.
    """
    archive = ClassArchive.of(spark_home, version, spark_conf_dir(paths.home()))
    return " ".join([C1, *archive.use()])


def checkpoint_confs(version: str) -> dict[str, str]:
    """Return Spark confs for checkpoints on a local disk without Hadoop's native library.

    Without them, Spark's file manager starts the process `readlink` several times for each file.
    """
    moved = feature_release(version) >= _MOVED
    room = f"{_STREAMING}.checkpointing" if moved else _STREAMING
    name = "spark.sql.streaming.checkpointFileManagerClass"
    return {name: f"{room}.FileSystemBasedCheckpointFileManager"}
