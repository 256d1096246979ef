"""Check the prerequisites of the machine: Python, a JDK, disk space, open files.

It imports the standard library only: `make env` runs this file with the system's Python before
there is an environment.
"""

import importlib.util
import os
import re
import resource
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

#: Environment (1.3 GB), one build (0.5 GB), and room to unpack and to run.
SETUP_BYTES = 4 * 10**9
#: The usual limit of open files, with which Spark runs.
LEAST_FILES = 1024
#: The variables that java needs to start; options in others would be printed with its version.
_OF_PROGRAMS = ("HOME", "JAVA_HOME", "LD_LIBRARY_PATH", "PATH")


@dataclass(frozen=True)
class Runtime:
    """What a feature release of Spark runs on: JDKs, and the newest Python of its jobs."""

    java: tuple[int, ...]
    python: tuple[int, int]


#: The version of this Python.
HERE: tuple[int, ...] = sys.version_info[:3]
#: The Pythons that this package runs on: what Airflow, Great Expectations and PySpark all support.
PYTHONS = ((3, 11), (3, 12), (3, 13))
#: Runtimes by feature release; `nexmark bench runtimes` tries each of them.
RUNTIMES = {
    "3.5": Runtime((17,), (3, 12)),
    "4.0": Runtime((17, 21), (3, 13)),
    "4.1": Runtime((17, 21), (3, 13)),
    "4.2": Runtime((17, 21, 25), (3, 14)),
    "4.3": Runtime((17, 21, 25), (3, 14)),
}


def runtime(spark_version: str = "") -> Runtime:
    """Return the runtime of Spark `spark_version`; an unknown version counts as the newest one."""
    return RUNTIMES.get(".".join(spark_version.split(".")[:2]), [*RUNTIMES.values()][-1])


#: The oldest Spark that the jobs run on.
LEAST_SPARK = (3, 5)


def spark_problem(spark_version: str) -> str:
    """Return the reason why the jobs do not run on a version of Spark, or ''."""
    match = re.match(r"(\d+)\.(\d+)", spark_version)
    if match is None or (int(match[1]), int(match[2])) >= LEAST_SPARK:
        return ""
    least = ".".join(map(str, LEAST_SPARK))
    return f"Spark {spark_version} is too old; give {least} or newer"


def java_majors(spark_version: str = "") -> tuple[int, ...]:
    """Return the versions of the JDK that Spark `spark_version` supports."""
    return runtime(spark_version).java


def java_problem(spark_version: str = "", environment: Mapping[str, str] = os.environ) -> str:
    """Return the problem of the JDK for Spark `spark_version`, with the remedy, or ''."""
    wanted = java_majors(spark_version)
    remedy = f"install a JDK {' or '.join(map(str, wanted))} and set JAVA_HOME to it"
    text, problem = _ask_java(environment)
    match = re.search(r'version "(?:1\.)?(\d+)', text)
    if not problem and match is None:
        problem = f"java -version says {text[:100]!r}"
    if not problem and match and int(match[1]) not in wanted:
        problem = f"java is version {match[1]}, which this Spark does not support"
    return f"JDK: {problem}; {remedy}" if problem else ""


def java_version() -> str:
    """Return the output of `java -version`, or '' without java."""
    return _ask_java(os.environ)[0]


def java_program(name: str) -> Path:
    """Return the path of program `name` in the JDK that runs Spark here; it may not exist."""
    if home := os.environ.get("JAVA_HOME"):
        return Path(home) / "bin" / name
    return Path(shutil.which("java") or "java").resolve().with_name(name)


def _ask_java(environment: Mapping[str, str]) -> tuple[str, str]:
    """Return the output of `java -version`, and the problem if there is no output."""
    home = environment.get("JAVA_HOME")
    java = f"{home}/bin/java" if home else shutil.which("java", path=environment.get("PATH"))
    if java is None:
        return "", "there is no java on the PATH and JAVA_HOME is not set"
    if home and not os.access(java, os.X_OK):
        return "", f"JAVA_HOME is {home}, but there is no bin/java in it"
    try:
        plain = {name: os.environ[name] for name in _OF_PROGRAMS if name in os.environ}
        plain["LC_ALL"] = "C.UTF-8"
        run = subprocess.run(
            [java, "-version"], env=plain, capture_output=True, text=True, timeout=60
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return "", f"{java} does not run: {error}"
    if run.returncode != 0:
        return "", f"`{java} -version` failed with exit code {run.returncode}"
    return (run.stderr + run.stdout).strip(), ""


def python_problem(version: tuple[int, ...] = HERE) -> str:
    """Return the problem of this Python, with the remedy, or ''."""
    if version[:2] in PYTHONS:
        return ""
    known = ", ".join(map(_dotted, PYTHONS[:-1]))
    remedy = f"install Python {known} or {_dotted(PYTHONS[-1])} (make PYTHON=/path/to/python3.12)"
    return f"Python: this is {_dotted(version)}; {remedy}"


def venv_problem() -> str:
    """Return the problem of a Python that cannot create an environment, or ''.

    Debian's Python cannot, without a package of its own.
    """
    if importlib.util.find_spec("ensurepip"):
        return ""
    name = _dotted(HERE[:2])
    return f"Python: ensurepip is missing; install the package python{name}-venv"


def job_version(*spark_versions: str) -> tuple[int, ...]:
    """Return the minor version of the Python that runs the jobs of these Spark versions, or ().

    This Python runs them if all of these Sparks support it; else the newest `python3.x` on the PATH
    that they all support. A night has one Python for both arms.
    """
    newest = min(runtime(version).python for version in spark_versions)
    if HERE[:2] <= newest:
        return HERE[:2]
    wanted = (version for version in reversed(PYTHONS) if version <= newest)
    return next(filter(_installed, wanted), ())


def job_python(*spark_versions: str) -> str:
    """Return the interpreter of the version that `job_version` returns, or ''.

    A job needs the standard library of the interpreter only.
    """
    version = job_version(*spark_versions)
    return sys.executable if version == HERE[:2] else _installed(version)


def job_python_problem(*spark_versions: str) -> str:
    """Return the problem if no Python here runs the jobs of these Spark versions, or ''."""
    if job_python(*spark_versions):
        return ""
    oldest = min(spark_versions, key=lambda version: runtime(version).python)
    newest, here = _dotted(runtime(oldest).python), _dotted(HERE)
    problem = f"Spark {oldest} runs jobs up to Python {newest}, and this is {here}"
    return f"Python: {problem}; install python{newest}, so that it is on the PATH"


def _installed(version: tuple[int, ...]) -> str:
    """Return the path of this Python if it is on the PATH and runs, else ''."""
    python = shutil.which(f"python{_dotted(version)}") if version else None
    if python is None:
        return ""
    try:  # pyenv has a program for each version that it knows, and it may refuse to run
        run = subprocess.run([python, "-c", ""], capture_output=True, timeout=60)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return python if run.returncode == 0 else ""


def _dotted(version: tuple[int, ...]) -> str:
    return ".".join(map(str, version))


def files_problem(limit: int | None = None) -> str:
    """Return the problem of the number of files that a process may have open, or ''.

    `limit` is that number; None takes the limit of this process, which all its children inherit.
    """
    allowed = resource.getrlimit(resource.RLIMIT_NOFILE)[0] if limit is None else limit
    if allowed == resource.RLIM_INFINITY or allowed >= LEAST_FILES:
        return ""
    problem = f"a process may have {allowed} open, and Spark opens about 300 jars and more"
    return f"open files: {problem}; raise the limit: ulimit -n 4096"


def disk_problem(directory: Path, needed: int = SETUP_BYTES) -> str:
    """Return the problem of the free space at `directory`, which may not exist yet, or ''.

    `needed` is in bytes.
    """
    existing = directory.resolve()
    while not existing.exists():
        existing = existing.parent
    free = shutil.disk_usage(existing).free
    if free >= needed:
        return ""
    problem = f"{free / 1e9:.1f} GB are free in {existing}, {needed / 1e9:.1f} GB are needed"
    return f"disk: {problem}; free some or put NEXMARK_HOME on another disk"


def main() -> int:
    """Print one line per problem; return exit code 2 if there is one."""
    problems = [
        python_problem(),
        venv_problem(),
        java_problem(),
        files_problem(),
        disk_problem(Path.cwd()),
    ]
    for problem in filter(None, problems):
        print(problem, file=sys.stderr)
    return 2 if any(problems) else 0


if __name__ == "__main__":
    sys.exit(main())
