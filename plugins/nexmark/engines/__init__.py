"""Spark builds: where they come from, how they are checked, and what names them."""

from __future__ import annotations

from nexmark.engines.build import Build, BuildError, parse_source
from nexmark.engines.cache import resolve
from nexmark.engines.prerequisites import disk_problem, java_majors, java_problem, java_version
from nexmark.engines.snapshots import MissingBuild, snapshot

__all__ = [
    "Build",
    "BuildError",
    "MissingBuild",
    "disk_problem",
    "java_majors",
    "java_problem",
    "java_version",
    "parse_source",
    "resolve",
    "snapshot",
]
