"""The job of the first night that reads files of a person's own: Python, with a reference.

It reads a stream of Parquet files and a static CSV file, and has a conf and a function in a JAR.
"""

from __future__ import annotations

from pathlib import Path

import duckdb
import yaml

from tests.applications.order_files import write_orders

JOB = "spending"
JAR = "orders.jar"
FILES, ROWS = 4, 500
PARTITIONS = 3
_PYTHON = """\
from pyspark.sql import functions as F


def build(spark, tables):
    spark.udf.registerJavaFunction("plus_one", "PlusOne", "bigint")
    orders = tables["orders"].withColumn("amount", F.expr("plus_one(amount)"))
    orders = orders.join(tables["countries"], "country")
    windows = orders.groupBy("name", F.window("at", "1 minute"))
    return windows.agg(F.sum("amount").alias("amount"), F.count("*").alias("orders")).select(
        "name", F.col("window.start").alias("begin"), "amount", "orders"
    )
"""
_REFERENCE = """\
SELECT name, time_bucket(INTERVAL '1 minute', "at") AS begin,
       sum(amount + 1)::BIGINT AS amount, count(*) AS orders
FROM orders JOIN countries USING (country)
GROUP BY ALL
"""


def write_job(conf: Path, data: Path) -> None:
    """Write the job below `conf`, and its files into `data`, the dates against the names."""
    source = data / "orders"
    source.mkdir(parents=True)
    for path in sorted(write_orders(data / "json", FILES, ROWS).iterdir()):
        parquet = source / f"{path.stem}.parquet"
        duckdb.sql(f"SELECT * FROM read_json('{path}')").write_parquet(str(parquet))
    names = "".join(f"{letter},Land {letter.upper()}\n" for letter in "abcdef")
    (data / "countries.csv").write_text(f"country,name\n{names}")
    orders = {"files": f"{source}/*.parquet", "event_time": "at", "watermark": "10 seconds"}
    tables = {
        "orders": {**orders, "rows_per_batch": 600},
        "countries": {"files": str(data / "countries.csv"), "static": True},
    }
    jobs = conf / "jobs"
    (jobs / f"{JOB}.py").write_text(_PYTHON)
    (jobs / f"{JOB}.duckdb.sql").write_text(_REFERENCE)
    job = {
        "tables": tables,
        "python": f"{JOB}.py:build",
        "key": ["name", "begin"],
        "reference": f"{JOB}.duckdb.sql",
        "jars": [JAR],
        "confs": {"spark.sql.shuffle.partitions": PARTITIONS},
    }
    (jobs / f"{JOB}.yaml").write_text(yaml.safe_dump(job))
