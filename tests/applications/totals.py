"""An application that ends by itself: the amount of all orders, by country, after each file.

totals.py INPUT OUTPUT CHECKPOINT
"""

import sys

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

source, output, checkpoint = sys.argv[1:4]
spark = SparkSession.builder.appName("totals").getOrCreate()
schema = "id long, country string, amount double, at timestamp"
orders = spark.readStream.schema(schema).option("maxFilesPerTrigger", 1).json(source)
totals = orders.groupBy("country").agg(F.sum("amount").alias("amount"))


def write(rows, number):  # type: ignore[no-untyped-def]
    """Write the rows of a batch to a directory of its own, so a second time changes nothing."""
    rows.coalesce(1).write.mode("overwrite").json(f"{output}/batch={number}")


written = totals.writeStream.outputMode("complete").foreachBatch(write)
written = written.option("checkpointLocation", checkpoint).trigger(availableNow=True)
written.start().awaitTermination()
