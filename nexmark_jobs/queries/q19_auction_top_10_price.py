"""q19 auction top 10 price: the ten highest bids of every auction.

    SELECT auction, bidder, price, channel, url, dateTime, extra, rank_number
    FROM (
        SELECT *, ROW_NUMBER() OVER (PARTITION BY auction ORDER BY price DESC) AS rank_number
        FROM bid
    )
    WHERE rank_number <= 10

Deviations:
- ROW_NUMBER is refused on a stream: `max_by(.., k)` keeps ten bids per auction; before Spark 4.3
  all bids of an auction are collected and sorted.
- Of equal prices the lower event number comes first; of events without one, the earlier bid.
"""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from nexmark_jobs.queries.formulation import Formulation, Query, Streams

COLUMNS = ("auction", "bidder", "price", "channel", "url", "dateTime", "extra")
RANKS = 10
_KEY = "auction"
_ROW = tuple(name for name in COLUMNS if name != _KEY)


def max_by_k(streams: Streams) -> DataFrame:
    """Keep the ten highest bids per auction."""
    order, bids = _order(streams.plain_bids)
    top = F.expr(f"max_by(struct({', '.join(_ROW)}), struct({', '.join(order)}), {RANKS})")
    return _ranked(bids, top)


def sorted_list(streams: Streams) -> DataFrame:
    """Collect all bids per auction, sort them, take the first ten."""
    order, bids = _order(streams.plain_bids)
    rest = [name for name in _ROW if name not in order]
    bids_of_auction = F.collect_list(F.struct(*order, *rest))
    return _ranked(bids, F.slice(F.sort_array(bids_of_auction, asc=False), 1, RANKS))


def _order(bids: DataFrame) -> tuple[list[str], DataFrame]:
    """Columns by which a greater bid ranks before a lesser one, and bids that have them."""
    first = F.col("n") if "n" in bids.columns else F.unix_micros("dateTime")
    return ["price", "first"], bids.withColumn("first", -first)


def _ranked(bids: DataFrame, top: Column) -> DataFrame:
    tops = bids.groupBy(_KEY).agg(top.alias("top"))
    ranked = tops.select(_KEY, F.posexplode("top").alias("place", "bid"))
    rank = (F.col("place") + 1).cast("bigint").alias("rank_number")
    return ranked.select(_KEY, *(f"bid.{name}" for name in _ROW), rank)


QUERY = Query(
    "q19",
    (*COLUMNS, "rank_number"),
    (Formulation("max_by_k", max_by_k, min_spark=(4, 3)), Formulation("sorted_list", sorted_list)),
    key=(_KEY, "rank_number"),
)
