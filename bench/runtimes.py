"""Try each Spark with some JDKs and Pythons: ``python -m bench.runtimes --java-home DIR``.

For each engine of ``engines.yaml``, q5 runs over 2,000 events, and then a query with a Python
worker, each in its own application. The command prints a line for each engine, JDK and Python:
`ok` if both ended well, else the reason. ``--java-home`` and ``--python`` may be given several
times; the defaults are the JDK and the Python with which this machine runs Spark.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Sequence
from itertools import product
from pathlib import Path

import nexmark_jobs
from bench.arguments import Parser, given
from nexmark.config import load, paths
from nexmark.engines import Build, local_environment, resolve
from nexmark.engines.prerequisites import java_program

_TIMEOUT_S = 300
_WORKER = """
from pyspark.sql import SparkSession
from pyspark.sql.functions import udf

spark = SparkSession.builder.getOrCreate()
plus_one = udf(lambda number: number + 1, "long")
rows = spark.range(10).select(plus_one("id").alias("n")).agg({"n": "sum"}).collect()
assert rows[0][0] == 55, rows
"""
_SIZE = ["--events", "2000", "--tps", "1000", "--rows-per-batch", "1000"]
_QUERY = ["--query", "q5", "--source", "datagen", *_SIZE, "--sink", "noop"]


def attempt(build: Build, java_home: str, python: str, directory: Path) -> str:
    """Run both applications; return `ok`, or the last error that Spark or Python printed.

    Args:
        build: The Spark build.
        java_home: The directory of the JDK.
        python: The path of the Python interpreter.
        directory: A directory for temporary files.
    """
    worker = directory / "worker.py"
    worker.write_text(_WORKER)
    query = str(Path(nexmark_jobs.__file__).with_name("run_query.py"))
    environment = local_environment(build.spark_home, directory) | {
        "JAVA_HOME": java_home,
        "PYSPARK_PYTHON": python,
        "PYSPARK_DRIVER_PYTHON": python,
    }
    submit = [str(build.spark_home / "bin" / "spark-submit"), "--master", "local[1]"]
    submit += ["--conf", "spark.ui.enabled=false", "--conf", "spark.log.level=ERROR"]
    result = str(directory / "result.json")
    for job in ([query, *_QUERY, "--result", result], [str(worker)]):
        run = subprocess.run(
            [*submit, *job], env=environment, capture_output=True, text=True, timeout=_TIMEOUT_S
        )
        if run.returncode != 0:
            lines = [line for line in run.stderr.splitlines() if "Error" in line or "Excep" in line]
            return " ".join((lines or run.stderr.splitlines() or ["no message"])[-1].split())[:160]
    return "ok"


def version_of(*command: str) -> str:
    """Return the first line of the version that a command prints."""
    run = subprocess.run(command, capture_output=True, text=True, check=True)
    return (run.stdout or run.stderr).splitlines()[0]


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; return 0, or 1 if an application failed."""
    parser = Parser(prog="nexmark bench runtimes", description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--java-home", type=given, action="append", help="a JDK to try")
    parser.add_argument("--python", type=given, action="append", help="an interpreter to try")
    arguments = parser.parse_args(argv)
    homes = arguments.java_home or [str(java_program("java").parents[1])]
    pythons = arguments.python or [sys.executable]
    builds = [resolve(engine.build, paths.builds_dir()) for engine in load().engines.values()]
    outcomes = []
    for build, home, python in product(builds, homes, pythons):
        with tempfile.TemporaryDirectory() as directory:
            outcomes.append(attempt(build, home, python, Path(directory)))
        java = version_of(f"{home}/bin/java", "--version")
        versions = (f"Spark {build.version}", java, version_of(python, "-V"))
        print(" | ".join([*versions, outcomes[-1]]), flush=True)
    return 0 if set(outcomes) == {"ok"} else 1


if __name__ == "__main__":
    sys.exit(main())
