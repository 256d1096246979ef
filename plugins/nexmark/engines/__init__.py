"""Spark builds: their sources, their checks and their identity."""

from nexmark.engines.build import (
    Build,
    BuildError,
    find_spark_home,
    local_environment,
    parse_source,
)
from nexmark.engines.fetch import MissingBuild, resolve, snapshot
from nexmark.engines.prerequisites import disk_problem, files_problem, java_majors, java_problem

__all__ = [
    "Build",
    "BuildError",
    "MissingBuild",
    "disk_problem",
    "files_problem",
    "find_spark_home",
    "java_majors",
    "java_problem",
    "local_environment",
    "parse_source",
    "resolve",
    "snapshot",
]
