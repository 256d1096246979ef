"""The scripts for Spark's own developers in docs/spark-releases run with nothing but Spark."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pyspark

SCRIPTS = Path(__file__).resolve().parents[2] / "docs" / "spark-releases"
LONGEST = 60


def test_they_are_short_and_do_not_need_this_package() -> None:
    for script in SCRIPTS.glob("*.py"):
        text = script.read_text()
        assert len(text.splitlines()) <= LONGEST, script
        assert "nexmark" not in text, script


def test_a_spark_without_volatile_fields_computes_strings(tmp_path: Path) -> None:
    old, new = Path(pyspark.__file__).parent, tmp_path / "new" / "pyspark"

    def run(*command: str, **variables: str) -> str:
        done = subprocess.run(
            [sys.executable, *command],
            cwd=SCRIPTS,
            env={**os.environ, **variables},
            capture_output=True,
            text=True,
            timeout=180,
            check=True,
        )
        return done.stdout

    assert "4 fields of UTF8String were volatile" in run("without_volatile.py", str(old), str(new))
    jars = tmp_path / "jars-only"
    (jars / "jars").mkdir(parents=True)
    (changed,) = (new / "jars").glob("spark-unsafe_*.jar")
    shutil.copy(changed, jars / "jars")
    again = run("without_volatile.py", str(jars), str(tmp_path / "again"))
    assert "0 fields of UTF8String were volatile" in again
    home = {"SPARK_HOME": str(new), "PYTHONPATH": str(new.parent)}
    head, *lines = run("computed_strings.py", "100", **home).splitlines()
    shutil.rmtree(new)
    assert head.startswith("Spark 4.3.")
    assert [line.split()[0] for line in lines] == ["0", *"1111", *"2222", *"4444"]
