"""q17 auction statistics: the bids of each auction and day.

    SELECT auction, DATE_FORMAT(dateTime, 'yyyy-MM-dd') AS day,
           COUNT(*) AS total_bids,
           COUNT(*) FILTER (WHERE price < 10000) AS rank1_bids,
           COUNT(*) FILTER (WHERE price >= 10000 AND price < 1000000) AS rank2_bids,
           COUNT(*) FILTER (WHERE price >= 1000000) AS rank3_bids,
           MIN(price) AS min_price, MAX(price) AS max_price,
           AVG(price) AS avg_price, SUM(price) AS sum_price
    FROM bid
    GROUP BY auction, DATE_FORMAT(dateTime, 'yyyy-MM-dd')

Deviations:
- AVG(BIGINT) truncates in Flink and is a double in Spark: sum div count.
- Groups are kept by date and formatted afterwards.
"""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from nexmark_jobs.queries.distinct_counts import RANK1_BELOW, RANK2_BELOW
from nexmark_jobs.queries.formulation import Query, Streams, ways

_COUNTS = ("total_bids", "rank1_bids", "rank2_bids", "rank3_bids")


def aggregate(streams: Streams) -> DataFrame:
    """Aggregate per auction and date."""
    price = F.col("price")
    bids = streams.plain_bids.select("auction", F.to_date("dateTime").alias("date"), "price")
    statistics = bids.groupBy("auction", "date").agg(
        F.count(F.lit(1)).alias("total_bids"),
        F.count_if(price < RANK1_BELOW).alias("rank1_bids"),
        F.count_if((price >= RANK1_BELOW) & (price < RANK2_BELOW)).alias("rank2_bids"),
        F.count_if(price >= RANK2_BELOW).alias("rank3_bids"),
        F.min("price").alias("min_price"),
        F.max("price").alias("max_price"),
        F.sum("price").alias("sum_price"),
    )
    day = F.date_format("date", "yyyy-MM-dd").alias("day")
    mean = F.expr("sum_price div total_bids").alias("avg_price")
    return statistics.select("auction", day, *_COUNTS, "min_price", "max_price", mean, "sum_price")


QUERY = Query(
    "q17",
    ("auction", "day", *_COUNTS, "min_price", "max_price", "avg_price", "sum_price"),
    ways(aggregate),
    key=("auction", "day"),
)
