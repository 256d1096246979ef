"""Spark builds: their sources, their checks and their identity."""

from nexmark.engines.build import (
    Build,
    BuildError,
    find_spark_home,
    known_version,
    local_environment,
    parse_source,
    spark_version,
)
from nexmark.engines.fetch import MissingBuild, UnusableBuild, resolve, snapshot, usable
from nexmark.engines.prerequisites import (
    disk_problem,
    files_problem,
    java_majors,
    java_problem,
    job_python,
    job_python_problem,
    job_version,
    spark_problem,
)

__all__ = [
    "Build",
    "BuildError",
    "MissingBuild",
    "UnusableBuild",
    "disk_problem",
    "files_problem",
    "find_spark_home",
    "java_majors",
    "java_problem",
    "job_python",
    "job_python_problem",
    "job_version",
    "known_version",
    "local_environment",
    "parse_source",
    "resolve",
    "snapshot",
    "spark_problem",
    "spark_version",
    "usable",
]
