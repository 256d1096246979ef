"""joined_counts: bids on each auction, and what its bids are worth, joined from two aggregations.

SELECT B.auction, B.window_start, B.bids, V.highest
FROM (SELECT auction, COUNT(*) AS bids FROM TUMBLE(bid, 10 seconds) GROUP BY auction, window) B
JOIN (SELECT auction, MAX(price) AS highest FROM TUMBLE(bid, 10 seconds)
      WHERE price > 10000 GROUP BY auction, window) V
ON B.auction = V.auction AND B.window_start = V.window_start
"""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from nexmark_jobs.queries.formulation import Query, Streams, ways

SIZE = "10 seconds"
FROM_PRICE = 10_000


def shuffled(streams: Streams) -> DataFrame:
    """Count on both sides and join the counts by other keys: 4 exchanges."""
    counts, values = _sides(streams)
    key = F.concat_ws("-", F.col("auction"), F.unix_micros("window.start"))
    other = F.concat_ws("-", F.col("item"), F.unix_micros("of.start"))
    same = (F.col("key") == F.col("other")) & (F.col("window") == F.col("of"))
    return _named(counts.withColumn("key", key).join(values.withColumn("other", other), same))


def one_stage(streams: Streams) -> DataFrame:
    """Join by the keys of the aggregations: they and the join are one stage, 2 exchanges."""
    counts, values = _sides(streams)
    same = (F.col("window") == F.col("of")) & (F.col("auction") == F.col("item"))
    return _named(counts.join(values, same))


def one_aggregation(streams: Streams) -> DataFrame:
    """Compute both aggregates in one aggregation: both read the same stream."""
    both = streams.bids.groupBy(F.window("dateTime", SIZE), "auction").agg(
        F.count(F.lit(1)).alias("bids"),
        F.max(F.when(F.col("price") > FROM_PRICE, F.col("price"))).alias("highest"),
    )
    return _named(both.where(F.col("highest").isNotNull()))


def _sides(streams: Streams) -> tuple[DataFrame, DataFrame]:
    counts = streams.bids.groupBy(F.window("dateTime", SIZE), "auction")
    worth = streams.bids.where(F.col("price") > FROM_PRICE)
    values = worth.groupBy(F.window("dateTime", SIZE).alias("of"), F.col("auction").alias("item"))
    highest = values.agg(F.max("price").alias("highest"))
    return counts.agg(F.count(F.lit(1)).alias("bids")), highest


def _named(joined: DataFrame) -> DataFrame:
    return joined.select("auction", F.col("window.start").alias("window_start"), "bids", "highest")


QUERY = Query(
    "joined_counts",
    ("auction", "window_start", "bids", "highest"),
    ways(shuffled, one_stage, one_aggregation),
    needs_end_of_input=True,
)
