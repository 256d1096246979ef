"""An application of a company, as it runs: two streaming queries, and nothing of ours.

orders.py INPUT OUTPUT CHECKPOINT
"""

import sys

from order_schema import SCHEMA  # of `py_files`
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

source, output, checkpoint = sys.argv[1:4]
spark = SparkSession.builder.appName("orders").getOrCreate()
orders = spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1).json(source)
by_minute = orders.withWatermark("at", "1 minute").groupBy("country", F.window("at", "1 minute"))
counts = by_minute.count().writeStream.format("parquet").outputMode("append")
counts.option("checkpointLocation", f"{checkpoint}/counts").start(f"{output}/counts")
large = orders.where("amount > 50").writeStream.format("json").queryName("large")
large.option("checkpointLocation", f"{checkpoint}/large").start(f"{output}/large")
spark.streams.awaitAnyTermination()
