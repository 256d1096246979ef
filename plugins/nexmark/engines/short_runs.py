"""What lets a short Spark application start and end sooner, where its time is not the subject."""

from pathlib import Path

from nexmark.config import paths
from nexmark.engines.class_archive import ClassArchive, spark_conf_dir
from nexmark_jobs.feature_release import feature_release

#: The first compiler only: a short run ends before the second one pays.
C1 = "-XX:TieredStopAtLevel=1"

_STREAMING = "org.apache.spark.sql.execution.streaming"
_MOVED = (4, 1)


def untimed_options(spark_home: Path, version: str) -> str:
    """JVM options of an application whose time does not count, in `build.local_environment`."""
    archive = ClassArchive.of(spark_home, version, spark_conf_dir(paths.home()))
    return " ".join([C1, *archive.use()])


def checkpoint_confs(version: str) -> dict[str, str]:
    """Spark confs for checkpoints on a local disk without Hadoop's native library.

    Spark's default file manager then starts a process, `readlink`, several times for each file.
    """
    moved = feature_release(version) >= _MOVED
    room = f"{_STREAMING}.checkpointing" if moved else _STREAMING
    name = "spark.sql.streaming.checkpointFileManagerClass"
    return {name: f"{room}.FileSystemBasedCheckpointFileManager"}
