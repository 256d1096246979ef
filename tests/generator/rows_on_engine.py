"""Run by a test under each engine: cases as JSON on stdin, a line of JSON for each.

It has the rows, and the columns that cannot be null.
"""

from __future__ import annotations

import json
import sys

from pyspark.sql import SparkSession

from nexmark_jobs import generator
from tests.generator.rows import millis
from tests.quick_jvm import QUICK_JVM


def main() -> None:
    spark = (
        SparkSession.builder.master("local[1]")
        .config("spark.driver.extraJavaOptions", QUICK_JVM)
        .config("spark.ui.enabled", "false")
        .config("spark.driver.memory", "1g")
        .getOrCreate()
    )
    spark.sparkContext.setLogLevel("ERROR")
    for kind, (start, stop), options, end in json.load(sys.stdin):
        frame = spark.range(start, stop, 1, 1).toDF("n")
        events = getattr(generator, f"{kind}s")(frame, generator.GeneratorConfig(**options), end)
        rows = [row.asDict() for row in millis(events).orderBy("n").collect()]
        filled = [field.name for field in events.schema if not field.nullable]
        sys.stdout.write(json.dumps([rows, filled]) + "\n")
    spark.stop()


main()
