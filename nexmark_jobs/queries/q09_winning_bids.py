"""q9 winning bids: every auction with its winning bid.

    SELECT id, itemName, description, initialBid, reserve, dateTime, expires, seller, category,
           extra, auction, bidder, price, bid_dateTime, bid_extra
    FROM (
        SELECT A.*, B.auction, B.bidder, B.price, B.dateTime AS bid_dateTime, B.extra AS bid_extra,
               ROW_NUMBER() OVER (PARTITION BY A.id ORDER BY B.price DESC, B.dateTime) AS place
        FROM auction A, bid B
        WHERE A.id = B.auction AND B.dateTime BETWEEN A.dateTime AND A.expires
    )
    WHERE place = 1

Deviations:
- The join and the ranking are one aggregation over both streams (see `auction_bids`), in update
  mode: an auction's row is replaced when a better bid comes.
- Ties of price and time are broken by the event number.
"""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from nexmark_jobs.queries.auction_bids import best_bids
from nexmark_jobs.queries.formulation import Query, Streams, ways

_AUCTION = ("itemName", "description", "initialBid", "reserve")
_DETAILS = ("seller", "category", "extra")
_BID = ("auction", "bidder", "price", "bid_dateTime", "bid_extra")


def union(streams: Streams) -> DataFrame:
    """Aggregate the union of auctions and bids per auction."""
    auction, bid = ["id", *_AUCTION, *_DETAILS], ["bidder", "extra"]
    winning = best_bids(streams, auction, bid, window=False)
    return winning.select(
        "auction.id",
        *(f"auction.{name}" for name in (*_AUCTION, "dateTime", "expires", *_DETAILS)),
        F.col("auction.id").alias("auction"),
        "best.bidder",
        "best.price",
        F.timestamp_micros(-F.col("best.negative_time")).alias("bid_dateTime"),
        F.col("best.extra").alias("bid_extra"),
    )


QUERY = Query(
    "q9", ("id", *_AUCTION, "dateTime", "expires", *_DETAILS, *_BID), ways(union), key=("id",)
)
