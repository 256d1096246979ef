"""The same result with keys that need more exchanges, and with keys that need fewer.

Spark spares the exchange before a stateful operator only if the rows come partitioned by exactly
its keys.

distinct_bidders: how many bidders each auction had in each window of 10 seconds.

    SELECT auction, window_start, COUNT(DISTINCT bidder) AS bidders
    FROM TUMBLE(bid, dateTime, 10 seconds) GROUP BY auction, window_start, window_end

new_sellers: how many auctions each person began in the window of 10 seconds in which he registered.

    SELECT A.seller, A.window_start, COUNT(*) AS auctions
    FROM TUMBLE(auction, dateTime, 10 seconds) A JOIN TUMBLE(person, dateTime, 10 seconds) P
    ON A.seller = P.id AND A.window_start = P.window_start
    GROUP BY A.seller, A.window_start, A.window_end
"""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from nexmark_jobs.queries.formulation import Query, Streams, ways

SIZE = "10 seconds"
_MICROS = 10_000_000


def deduplicated(streams: Streams) -> DataFrame:
    """De-duplicate by auction, bidder and window; then count by auction and window: 2 exchanges."""
    bids = streams.bids.select("auction", "bidder", F.window("dateTime", SIZE).alias("of"))
    distinct = bids.dropDuplicates(["of", "auction", "bidder"])
    return _bidders(distinct.groupBy("of", "auction").agg(F.count(F.lit(1)).alias("bidders")))


def collected(streams: Streams) -> DataFrame:
    """Aggregate once by auction and window, keeping the set of bidders: 1 exchange."""
    bids = streams.bids.groupBy(F.window("dateTime", SIZE).alias("of"), "auction")
    sets = bids.agg(F.collect_set("bidder").alias("bidder_set"))
    count = F.size("bidder_set").cast("bigint").alias("bidders")
    return _bidders(sets.select("of", "auction", count))


def _bidders(counted: DataFrame) -> DataFrame:
    return counted.select("auction", F.col("of.start").alias("window_start"), "bidders")


def joined_by_seller(streams: Streams) -> DataFrame:
    """Join by seller, with the window as a condition; then count by both: 3 exchanges."""
    auctions, persons = _sides(streams)
    begin = F.timestamp_micros(F.unix_micros("personTime") - F.unix_micros("personTime") % _MICROS)
    size, came, sold = F.expr(f"INTERVAL {SIZE}"), F.col("personTime"), F.col("auctionTime")
    of_window = (sold >= begin) & (sold < begin + size)
    near = sold.between(came - size, came + size)
    joined = auctions.join(persons, (F.col("seller") == F.col("id")) & of_window & near)
    sales = joined.select("seller", "auctionTime")
    per_seller = sales.groupBy(F.window("auctionTime", SIZE), "seller")
    return _sellers(per_seller.agg(F.count(F.lit(1)).alias("auctions")))


def joined_by_window(streams: Streams) -> DataFrame:
    """Join by window and seller; count by the same keys: 2 exchanges."""
    auctions, persons = _sides(streams)
    auctions = auctions.select("seller", F.window("auctionTime", SIZE))
    persons = persons.select("id", F.window("personTime", SIZE).alias("of"))
    same = (F.col("window") == F.col("of")) & (F.col("seller") == F.col("id"))
    joined = auctions.join(persons, same).select("window", "seller")
    return _sellers(joined.groupBy("window", "seller").agg(F.count(F.lit(1)).alias("auctions")))


def _sides(streams: Streams) -> tuple[DataFrame, DataFrame]:
    return (
        streams.auctions.select("seller", F.col("dateTime").alias("auctionTime")),
        streams.persons.select("id", F.col("dateTime").alias("personTime")),
    )


def _sellers(counted: DataFrame) -> DataFrame:
    return counted.select("seller", F.col("window.start").alias("window_start"), "auctions")


DISTINCT_BIDDERS = Query(
    "distinct_bidders",
    ("auction", "window_start", "bidders"),
    ways(deduplicated, collected),
    needs_end_of_input=True,
)

NEW_SELLERS = Query(
    "new_sellers",
    ("seller", "window_start", "auctions"),
    ways(joined_by_seller, joined_by_window),
    needs_end_of_input=True,
)
