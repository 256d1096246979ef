"""`nexmark bench queries --hot-methods` records the threads that compute, in a JVM of its own."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.quick_jvm import QUICK_JVM

SCRIPT = """
import sys
from pathlib import Path
from pyspark.sql import SparkSession
from bench.hot_methods import JAVA_OPTIONS, recorded, write

builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
options = f"{sys.argv[2]} {JAVA_OPTIONS}"
spark = builder.config("spark.driver.defaultJavaOptions", options).getOrCreate()
with recorded(spark) as counts:
    spark.range(20_000_000).selectExpr("bit_xor(xxhash64(id, id + 1))").collect()
write(Path(sys.argv[1]), "q0", counts)
"""


def test_what_a_session_computes_is_recorded_and_what_waits_for_python_is_not(
    tmp_path: Path,
) -> None:
    command = [sys.executable, "-c", SCRIPT, str(tmp_path / "new"), QUICK_JVM]
    root = Path(__file__).resolve().parents[2]
    done = subprocess.run(command, cwd=root, capture_output=True, text=True, timeout=180)
    assert done.returncode == 0, done.stderr
    stacks = (tmp_path / "new" / "q0.txt").read_text()
    assert "Executor task launch worker;" in stacks
    of_main = [line for line in stacks.splitlines() if line.startswith("main;")]
    assert not any("FileInputStream.readBytes" in line for line in of_main)
