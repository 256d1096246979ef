"""q4 average price for a category: the mean of the winning prices of each category's auctions.

    SELECT category, AVG(final)
    FROM (
        SELECT MAX(B.price) AS final, A.category
        FROM auction A, bid B
        WHERE A.id = B.auction AND B.dateTime BETWEEN A.dateTime AND A.expires
        GROUP BY A.id, A.category
    )
    GROUP BY category

Deviations:
- The join and the inner aggregation are one aggregation over both streams (see `auction_bids`).
- An aggregation of an aggregation is refused in update mode, so both run in append mode, in one
  window of all time: the averages come out once, when the sentinels close it.
- AVG(BIGINT) truncates in Flink and is a double in Spark: sum div count.
"""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from nexmark_jobs.queries.auction_bids import best_bids
from nexmark_jobs.queries.formulation import Query, Streams, ways


def union(streams: Streams) -> DataFrame:
    """Aggregate the union of auctions and bids per auction, then per category."""
    winning = best_bids(streams, auction=["category"], bid=[], window=True)
    prices = winning.select("window", "auction.category", "best.price")
    of_category = prices.groupBy("window", "category")
    sums = of_category.agg(F.sum("price").alias("sum"), F.count("price").alias("count"))
    return sums.select("category", F.expr("sum div count").alias("avg_price"))


QUERY = Query("q4", ("category", "avg_price"), ways(union), needs_end_of_input=True)
