"""JVM options: quick starts, without touching what is measured.

A night is many short applications, and most of their time is the start of the driver: loading
classes and compiling them. Two things halve it:

- *A class archive* of the driver (JDK class data sharing), made by the first verification run of a
  build and used by every driver after it, and by the executors of what is not timed. It changes how
  classes are loaded, nothing else. Timed pairs use it only where both builds have one.
- *C1 only* in applications that are not timed: for a run of seconds the optimising compiler costs
  more than it gives.

Executors of timed repetitions get no option at all, with two exceptions. Those that are recorded
for flame graphs run with the flight recorder of the JDK, and count for nothing else. With the
profile `quick`, whose figures are mostly the start of the JVM, they use the archive as well. The
options are Spark's `defaultJavaOptions`, to which `extraJavaOptions` of a profile or an engine are
added.
"""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from nexmark.config import paths
from nexmark.engines import java_version
from nexmark.flames.jfr import RECORDER
from nexmark.night.plan import Deployment

_C1 = "-XX:TieredStopAtLevel=1"
_DRIVER = "spark.driver.defaultJavaOptions"
_EXECUTOR = "spark.executor.defaultJavaOptions"


@dataclass(frozen=True)
class Archive:
    """The class archive of the drivers of one build on one JDK.

    `maker` is the cluster that makes it if it is not there: one night at a time has a cluster.
    """

    path: Path
    maker: str = ""

    @classmethod
    def of(cls, deployment: Deployment, conf_dir: Path, maker: str = "") -> Archive:
        """The archive for a deployment, which may not be there yet.

        Its name has all that the JVM checks before it uses one: itself and the class path, which is
        SPARK_CONF_DIR and the jars.
        """
        home = Path(deployment.spark_home)
        jars = sorted((p.name, p.stat().st_mtime_ns) for p in (home / "jars").glob("*.jar"))
        java = _java(os.environ.get("JAVA_HOME"), os.environ.get("PATH"))
        text = repr((java, str(conf_dir), str(home), jars))
        digest = hashlib.sha256(text.encode()).hexdigest()[:16]
        return cls(paths.archives_dir() / f"{deployment.spark_version}-{digest}.jsa", maker)

    @property
    def unfinished(self) -> Path:
        """Where it is while it is made."""
        return self.path.with_suffix(f".{self.maker}.tmp" if self.maker else ".tmp")

    def use(self) -> list[str]:
        """The options to use it, none if it is not there."""
        return [f"-XX:SharedArchiveFile={self.path}"] if self.path.exists() else []

    def make(self) -> list[str]:
        """The options to make it when the JVM ends."""
        return [f"-XX:ArchiveClassesAtExit={self.unfinished}"]


@cache
def _java(home: str | None, path: str | None) -> str:
    """Return the output of `java -version` with these variables; ask once, not per repetition."""
    return java_version()


def untimed_options(archive: Archive, *, may_make: bool, executors_here: bool) -> dict[str, str]:
    """Confs of an application that is not timed.

    It makes the archive if it `may_make` it and it is not there yet. `executors_here`: whether the
    executors run on this machine too.
    """
    options = archive.use()
    if may_make and not options:
        archive.path.parent.mkdir(parents=True, exist_ok=True)
        options = archive.make()
    executor = [_C1, *(archive.use() if executors_here else [])]
    return {_DRIVER: " ".join([_C1, *options]), _EXECUTOR: " ".join(executor)}


def timed_options(archive: Archive | None, *, quick_executors: bool = False) -> dict[str, str]:
    """Confs of a timed repetition. `archive` is None unless all arms have one: a fair start."""
    options = " ".join(archive.use()) if archive else ""
    if not options:
        return {}
    return {_DRIVER: options} | ({_EXECUTOR: options} if quick_executors else {})


def recorded_options(archive: Archive | None) -> dict[str, str]:
    """Confs of a repetition whose executors run with the flight recorder."""
    return timed_options(archive) | {_EXECUTOR: " ".join(RECORDER)}
