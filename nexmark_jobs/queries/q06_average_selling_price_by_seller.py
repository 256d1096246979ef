"""q6 average selling price by seller: the mean price of each seller's last 10 sold auctions.

    SELECT seller, AVG(price) OVER (PARTITION BY seller ORDER BY dateTime
                                    ROWS BETWEEN 10 PRECEDING AND CURRENT ROW)
    FROM (
        SELECT A.seller, B.price, B.dateTime,
               ROW_NUMBER() OVER (PARTITION BY A.id ORDER BY B.price DESC, B.dateTime) AS place
        FROM auction A, bid B
        WHERE A.id = B.auction AND B.dateTime BETWEEN A.dateTime AND A.expires
    )
    WHERE place = 1

Flink cannot run it (FLINK-19059). Deviations:
- Ten auctions, as the query's text says; the frame above holds eleven.
- One row per seller, the one after the last sale; sales are in order of the winning bid's time,
  then of the auction's id.
- The join and the ranking are one aggregation over both streams (see `auction_bids`), followed by
  one per seller; both in append mode, in one window of all time, which the sentinels close.
- AVG(BIGINT) truncates.
- `max_by(.., k)` keeps ten sales per seller; before Spark 4.3 all sales are collected and sorted.
"""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from nexmark_jobs.queries.auction_bids import best_bids
from nexmark_jobs.queries.formulation import Formulation, Query, Streams

LAST = 10


def max_by_k(streams: Streams) -> DataFrame:
    """Keep the last ten prices per seller."""
    prices = F.expr(f"max_by(price, struct(time, id), {LAST})")
    return _mean_per_seller(streams, prices)


def sorted_list(streams: Streams) -> DataFrame:
    """Collect all sales per seller, sort them, take the last ten."""
    sales = F.collect_list(F.struct("time", "id", "price"))
    last = F.slice(F.sort_array(sales, asc=False), 1, LAST)
    return _mean_per_seller(streams, last["price"])


def _mean_per_seller(streams: Streams, prices: Column) -> DataFrame:
    winning = best_bids(streams, auction=["id", "seller"], bid=[], window=True)
    time = (-F.col("best.negative_time")).alias("time")
    sales = winning.select("window", "auction.seller", "auction.id", "best.price", time)
    sellers = sales.groupBy("window", "seller").agg(prices.alias("prices"))
    total = F.aggregate("prices", F.lit(0).cast("bigint"), lambda sum_, price: sum_ + price)
    sums = sellers.select("seller", total.alias("total"), F.size("prices").alias("count"))
    return sums.select("seller", F.expr("total div count").alias("avg_price"))


QUERY = Query(
    "q6",
    ("seller", "avg_price"),
    (Formulation("max_by_k", max_by_k, min_spark=(4, 3)), Formulation("sorted_list", sorted_list)),
    needs_end_of_input=True,
)
