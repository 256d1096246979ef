"""The prerequisites of the machine: Python, a JDK, disk space.

Standard library only and importing nothing of ours: `make env` runs this file with the system's
Python before there is an environment.
"""

import os
import re
import resource
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

#: Environment (1.3 GB), one build (0.5 GB), and room to unpack and to run.
SETUP_BYTES = 4 * 10**9
#: The usual limit of open files, with which Spark runs.
LEAST_FILES = 1024
#: What a program needs to start; options in other variables would be a part of java's answer.
_OF_PROGRAMS = ("HOME", "JAVA_HOME", "LD_LIBRARY_PATH", "PATH")


def java_majors(spark_version: str = "4") -> tuple[int, ...]:
    """The versions of the JDK that Spark `spark_version` supports."""
    return (17,) if spark_version.split(".")[0] == "3" else (17, 21)


def java_problem(spark_version: str = "4", environment: Mapping[str, str] = os.environ) -> str:
    """The problem of the JDK for Spark `spark_version`, with the remedy, or ''."""
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
    """The output of `java -version`, or '' without java."""
    return _ask_java(os.environ)[0]


def java_program(name: str) -> Path:
    """The path of program `name` in the JDK that runs Spark here; it may not exist."""
    if home := os.environ.get("JAVA_HOME"):
        return Path(home) / "bin" / name
    return Path(shutil.which("java") or "java").resolve().with_name(name)


def _ask_java(environment: Mapping[str, str]) -> tuple[str, str]:
    """The output of `java -version`, and the problem if there is none."""
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


def python_problem(version: tuple[int, ...] = sys.version_info[:3]) -> str:
    """The problem of this Python, or ''."""
    if (3, 11) <= version < (3, 13):
        return ""
    found = ".".join(map(str, version))
    return f"Python: this is {found}; install Python 3.11 or 3.12 (make PYTHON=/path/to/python3.11)"


def files_problem(limit: int | None = None) -> str:
    """The problem of the number of files that a process may have open, or ''.

    `limit` is the limit of this process if it is not given; whatever it starts inherits it.
    """
    allowed = resource.getrlimit(resource.RLIMIT_NOFILE)[0] if limit is None else limit
    if allowed == resource.RLIM_INFINITY or allowed >= LEAST_FILES:
        return ""
    problem = f"a process may have {allowed} open, and Spark opens about 300 jars and more"
    return f"open files: {problem}; raise the limit: ulimit -n 4096"


def disk_problem(directory: Path, needed: int = SETUP_BYTES) -> str:
    """The problem of the free space (bytes) at `directory`, which may not exist yet, or ''."""
    existing = directory.resolve()
    while not existing.exists():
        existing = existing.parent
    free = shutil.disk_usage(existing).free
    if free >= needed:
        return ""
    problem = f"{free / 1e9:.1f} GB are free in {existing}, {needed / 1e9:.1f} GB are needed"
    return f"disk: {problem}; free some or put NEXMARK_HOME on another disk"


def main() -> int:
    """Prints one line per problem; returns exit code 1 if there is one."""
    problems = [python_problem(), java_problem(), files_problem(), disk_problem(Path.cwd())]
    for problem in filter(None, problems):
        print(problem, file=sys.stderr)
    return 1 if any(problems) else 0


if __name__ == "__main__":
    sys.exit(main())
