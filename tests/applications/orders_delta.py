"""An application of a company that writes Delta tables: by the sink, and by MERGE in foreachBatch.

orders_delta.py INPUT OUTPUT CHECKPOINT
"""

import sys

from pyspark.sql import DataFrame, SparkSession

source, output, checkpoint = sys.argv[1:4]
spark = SparkSession.builder.appName("orders").getOrCreate()
schema = "id long, country string, amount double, at timestamp"
orders = spark.readStream.schema(schema).option("maxFilesPerTrigger", 1).json(source)
spark.sql(f"CREATE TABLE delta.`{output}/counts` (country string, count long) USING delta")


def merge(counts: DataFrame, batch: int) -> None:
    """Put the new counts in place of those that the table has."""
    counts.createOrReplaceTempView("new")
    counts.sparkSession.sql(
        f"MERGE INTO delta.`{output}/counts` AS old USING new ON old.country = new.country "
        "WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
    )


counts = orders.groupBy("country").count().writeStream.outputMode("update").foreachBatch(merge)
counts.option("checkpointLocation", f"{checkpoint}/counts").start()
large = orders.where("amount > 50").writeStream.format("delta").queryName("large")
large.option("checkpointLocation", f"{checkpoint}/large").start(f"{output}/large")
spark.streams.awaitAnyTermination()
