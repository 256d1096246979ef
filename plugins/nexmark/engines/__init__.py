"""Spark builds: their sources, their checks and their identity."""

from nexmark.engines.build import Build as Build
from nexmark.engines.build import BuildError as BuildError
from nexmark.engines.build import find_spark_home as find_spark_home
from nexmark.engines.build import local_environment as local_environment
from nexmark.engines.build import parse_source as parse_source
from nexmark.engines.fetch import MissingBuild as MissingBuild
from nexmark.engines.fetch import resolve as resolve
from nexmark.engines.fetch import snapshot as snapshot
from nexmark.engines.prerequisites import disk_problem as disk_problem
from nexmark.engines.prerequisites import java_majors as java_majors
from nexmark.engines.prerequisites import java_problem as java_problem
