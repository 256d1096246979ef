"""q20 expand bid with auction: every bid on an auction of category 10, with that auction.

    SELECT B.auction, B.bidder, B.price, B.channel, B.url, B.dateTime AS bid_dateTime,
           B.extra AS bid_extra, A.itemName, A.description, A.initialBid, A.reserve,
           A.dateTime AS auction_dateTime, A.expires, A.seller, A.category,
           A.extra AS auction_extra
    FROM bid B
    JOIN auction A ON B.auction = A.id
    WHERE A.category = 10

There is no bound in time: bids before the opening and after the end match too, and both sides are
kept for ever, as in Flink. No deviation.
"""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from nexmark_jobs.queries.formulation import AUCTION, RENAMED, Query, Streams, ways

CATEGORY = 10
_BID = ("auction", "bidder", "price", "channel", "url", "bid_dateTime", "bid_extra")


def join(streams: Streams) -> DataFrame:
    """Join the bids with the auctions of the category."""
    bids = streams.plain_bids.withColumnsRenamed({"dateTime": "bid_dateTime", "extra": "bid_extra"})
    auctions = streams.plain_auctions.where(F.col("category") == CATEGORY)
    auctions = auctions.withColumnsRenamed(RENAMED).select("id", *AUCTION)
    joined = bids.select(*_BID).join(auctions, F.col("auction") == F.col("id"))
    return joined.select(*_BID, *AUCTION)


QUERY = Query("q20", _BID + AUCTION, ways(join))
