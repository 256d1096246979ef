"""q23 join of bid, person and auction: every bid with its bidder and all that the bidder sells.

    SELECT B.bidder, B.price, B.channel, B.url, B.extra AS bid_extra, P.id AS person_id, P.name,
           P.emailAddress, P.creditCard, P.city, P.state, P.extra AS person_extra, A.itemName,
           A.description, A.initialBid, A.reserve, A.dateTime AS auction_dateTime, A.expires,
           A.seller, A.category, A.extra AS auction_extra
    FROM bid B
    JOIN person P ON P.id = B.bidder
    JOIN auction A ON A.seller = B.bidder

No join has a bound in time. Deviations:
- Persons and auctions are joined first and the bids last: the state then has the many bids once,
  and not once more beside their person. The result is the same.
"""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from nexmark_jobs.queries.formulation import AUCTION, RENAMED, Query, Streams, ways

_BID = ("bidder", "price", "channel", "url", "bid_extra")
_PERSON = ("person_id", "name", "emailAddress", "creditCard", "city", "state", "person_extra")


def sellers_first(streams: Streams) -> DataFrame:
    """Join persons with their auctions, then with the bids."""
    bids = streams.plain_bids.withColumnRenamed("extra", "bid_extra")
    persons = streams.plain_persons.withColumnsRenamed({"id": "person_id", "extra": "person_extra"})
    auctions = streams.plain_auctions.withColumnsRenamed(RENAMED)
    sold = F.col("person_id") == F.col("seller")
    sellers = persons.select(*_PERSON).join(auctions.select(*AUCTION), sold)
    joined = bids.select(*_BID).join(sellers, F.col("bidder") == F.col("person_id"))
    return joined.select(*_BID, *_PERSON, *AUCTION)


QUERY = Query("q23", _BID + _PERSON + AUCTION, ways(sellers_first))
