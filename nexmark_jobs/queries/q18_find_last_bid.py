"""q18 find last bid: every bidder's last bid on every auction.

    SELECT auction, bidder, price, channel, url, dateTime, extra
    FROM (
        SELECT *, ROW_NUMBER() OVER (PARTITION BY bidder, auction ORDER BY dateTime DESC) AS place
        FROM bid
    )
    WHERE place = 1

Deviations:
- ROW_NUMBER is refused on a stream: the greatest struct that begins with the time takes its place.
- Equal times, which are common at high rates, fall to the higher event number.
"""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from nexmark_jobs.queries.formulation import Query, Streams, ways

COLUMNS = ("auction", "bidder", "price", "channel", "url", "dateTime", "extra")
_KEY = ("bidder", "auction")


def max_struct(streams: Streams) -> DataFrame:
    """Keep, per bidder and auction, the greatest struct of time, event number and the rest."""
    bids = streams.bids
    order = [name for name in ("dateTime", "n") if name in bids.columns]
    rest = [name for name in COLUMNS if name not in (*_KEY, *order)]
    last = bids.groupBy(*_KEY).agg(F.max(F.struct(*order, *rest)).alias("last"))
    return last.select(*(name if name in _KEY else f"last.{name}" for name in COLUMNS))


QUERY = Query("q18", COLUMNS, ways(max_struct), key=_KEY)
