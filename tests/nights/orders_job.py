"""The applications of the first night, as jobs of a person's own: a script, and a JAR."""

from __future__ import annotations

import shutil
import subprocess
import zipfile
from pathlib import Path

import yaml

from nexmark.engines import Build
from nexmark.engines.prerequisites import java_program
from tests.applications.order_files import write_orders

SOURCES = Path(__file__).parents[1] / "applications"
APPLICATIONS = ("orders", "orders_jar")


def write_jobs(conf: Path, data: Path, build: Build, marker: str) -> None:
    """Write the jobs below `conf`, one with a secret, and their input into `data`."""
    source = write_orders(data / "orders")
    jobs = conf / "jobs"
    jobs.mkdir(exist_ok=True)
    shutil.copy(SOURCES / "orders.py", jobs)
    shutil.copy(SOURCES / "order_schema.py", data)
    _write_jar(jobs / "orders.jar", data, build)
    script = {
        "main": "orders.py",
        "py_files": [str(data / "order_schema.py")],
        "args": ["{{ input }}", "{{ output }}", "{{ checkpoint }}"],
        "confs": {"spark.hadoop.orders.password": f"{marker}-application"},
        "input": str(source),
        "output": {"counts": "parquet", "large": "json"},
        "ends": "when the input is read",
    }
    jar = {
        "main": "orders.jar",
        "class": "Orders",
        "args": ["{{ input }}"],
        "input": str(source),
        "ends": "after 3 batches",
    }
    for name, application in zip(APPLICATIONS, (script, jar), strict=True):
        (jobs / f"{name}.yaml").write_text(yaml.safe_dump({"application": application}))


def _write_jar(jar: Path, work: Path, build: Build) -> None:
    """Compile the application in Java, and a function of another job, against a build."""
    classes = work / "classes"
    command = [java_program("javac"), "-J-XX:TieredStopAtLevel=1", "-nowarn", "-d", classes]
    spark = build.spark_home / "jars" / "*"
    sources = [str(SOURCES / name) for name in ("Orders.java", "PlusOne.java")]
    subprocess.run([*map(str, command), "-cp", str(spark), *sources], check=True)
    with zipfile.ZipFile(jar, "w") as archive:
        for path in classes.glob("*.class"):
            archive.write(path, path.name)
