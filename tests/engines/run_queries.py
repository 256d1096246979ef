"""Run by a test under each engine: runs of the query job, all in one application.

Reads a list of argument lists from stdin; writes a line of JSON per run: its result, or {"error"}.
"""

from __future__ import annotations

import json
import sys

from pyspark.sql import SparkSession

from nexmark.engines.short_runs import checkpoint_confs
from nexmark_jobs.errors import JobError
from nexmark_jobs.options import parse
from nexmark_jobs.run_query import run
from tests.quick_jvm import QUICK_JVM


def main() -> None:
    spark = (
        SparkSession.builder.master("local[2]")
        .config("spark.driver.memory", "2g")
        .config("spark.driver.extraJavaOptions", QUICK_JVM)
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.ui.enabled", "false")
        .getOrCreate()
    )
    for name, value in checkpoint_confs(spark.version).items():
        spark.conf.set(name, value)
    spark.sparkContext.setLogLevel("ERROR")
    for arguments in json.load(sys.stdin):
        try:
            line = run(spark, parse(arguments), quiet=True)
        except JobError as error:
            line = {"error": str(error)}
        sys.stdout.write(json.dumps(line) + "\n")
        sys.stdout.flush()
    spark.stop()


main()
