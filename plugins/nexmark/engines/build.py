"""A concrete Spark build, named by what it contains."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from nexmark.config import BuildSource
from nexmark.errors import NexmarkError


class BuildError(NexmarkError):
    """A Spark build cannot be had; one line with what, where and the remedy."""


@dataclass(frozen=True)
class Build:
    """A Spark build that is on this machine.

    Attributes:
        id: hash of every file's path and content, 16 hexadecimal digits.
        version: Spark's version, e.g. `4.3.0`.
        spark_home: the directory with `bin/` and `jars/`.
        source: where it came from, as in the DAG's `candidate` param.
    """

    id: str
    version: str
    spark_home: Path
    source: str


def parse_source(text: str) -> BuildSource:
    """A build as written in a DAG param or on a command line.

    `pypi:4.3.0`, `tarball:PATH-OR-URL#sha512=HEX` or `directory:PATH`; BuildError for any other.
    """
    kind, _, value = text.strip().partition(":")
    forms = "pypi:4.3.0, tarball:PATH-OR-URL#sha512=HEX or directory:PATH"
    fields: dict[str, str] = {kind: value}
    if kind == "tarball":
        fields["tarball"], separator, fields["sha512"] = value.rpartition("#sha512=")
        if not separator:
            raise BuildError(f"build {text!r}: a tarball needs its #sha512=HEX; add it")
    elif kind not in ("pypi", "directory"):
        raise BuildError(f"build {text!r}: not known; write {forms}")
    try:
        return BuildSource.model_validate(fields)
    except ValueError:
        raise BuildError(f"build {text!r}: {kind} is not well-formed; write {forms}") from None


def find_spark_home(directory: Path) -> Path:
    """The SPARK_HOME in `directory`: itself, its `pyspark`, or its only subdirectory.

    Those are the shapes of an unpacked build, of `pip install --target`, and of a tarball.
    """
    candidates = [directory, directory / "pyspark"]
    subdirectories = [p for p in directory.iterdir() if p.is_dir()] if directory.is_dir() else []
    if len(subdirectories) == 1:
        candidates += subdirectories
    for candidate in candidates:
        if (candidate / "bin" / "spark-submit").is_file() and _core_jars(candidate):
            return candidate
    raise BuildError(
        f"{directory}: not a Spark build (no bin/spark-submit beside jars/spark-core_*.jar); "
        "give the directory that has bin/ and jars/"
    )


def spark_version(spark_home: Path) -> str:
    """The version that the jars of `spark_home` are of, e.g. `4.3.0` or `4.4.0-SNAPSHOT`."""
    names = [re.fullmatch(r"spark-core_[0-9.]+-(.+)\.jar", p.name) for p in _core_jars(spark_home)]
    versions = sorted({match[1] for match in names if match})
    if len(versions) != 1:
        found = " and ".join(versions) or "none"
        raise BuildError(
            f"{spark_home}/jars: expected one version of spark-core, found {found}; "
            "give a build that is whole"
        )
    return versions[0]


def _core_jars(spark_home: Path) -> list[Path]:
    return list((spark_home / "jars").glob("spark-core_*.jar"))


__all__ = ["Build", "BuildError", "find_spark_home", "parse_source", "spark_version"]
