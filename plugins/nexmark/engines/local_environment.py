"""The environment of a Spark application that is started on this machine."""

from __future__ import annotations

import os
import sys
from pathlib import Path

_FOREIGN = (
    *("SPARK_", "PYSPARK_", "PYTHONPATH", "PYTHONHOME", "HADOOP_CONF_DIR", "YARN_CONF_DIR"),
    *("AIRFLOW_", "NEXMARK_DB", "NEXMARK_AIRFLOW_TOKEN"),  # our secrets
)


def own_environment() -> dict[str, str]:
    """This process's environment without what would change a Spark, and without secrets."""
    return {name: value for name, value in os.environ.items() if not name.startswith(_FOREIGN)}


def local_environment(spark_home: Path, scratch: Path) -> dict[str, str]:
    """Of an application in local mode, or with a cluster of its own; it writes to `scratch`."""
    return own_environment() | {
        "SPARK_HOME": str(spark_home),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_LOCAL_DIRS": str(scratch),
        "TMPDIR": str(scratch),
        "PYSPARK_PYTHON": sys.executable,
    }
