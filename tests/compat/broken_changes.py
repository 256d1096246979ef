"""Changes of queries that a running job does not survive, and one more that Spark lets through."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from nexmark_jobs.queries import Formulation, Streams
from nexmark_jobs.queries.distinct_counts import RANK1_BELOW, RANK2_BELOW
from nexmark_jobs.queries.q20_expand_bid_with_auction import CATEGORY, QUERY

_EXTREMA = {"min_price": F.min, "max_price": F.max}


def statistics(
    streams: Streams,
    *,
    key: str = "bigint",
    total: Column | None = None,
    average: Column | None = None,
    extrema: tuple[str, ...] = ("min_price", "max_price"),
    least: int = 0,
) -> DataFrame:
    """q17, with a change; see its module."""
    bids = streams.plain_bids.select(
        F.col("auction").cast(key).alias("auction"),
        F.to_date("dateTime").alias("date"),
        "price",
        "bidder",
    )
    price = F.col("price")
    bids = bids.where(price > least) if least else bids
    functions = {
        "total_bids": F.count(F.lit(1)) if total is None else total,
        "rank1_bids": F.count_if(price < RANK1_BELOW),
        "rank2_bids": F.count_if((price >= RANK1_BELOW) & (price < RANK2_BELOW)),
        "rank3_bids": F.count_if(price >= RANK2_BELOW),
        **{name: _EXTREMA[name]("price") for name in extrema},
        "sum_price": F.sum("price"),
        **({} if average is None else {"average": average}),
    }
    grouped = bids.groupBy("auction", "date").agg(*(f.alias(n) for n, f in functions.items()))
    mean = F.expr("sum_price div total_bids") if average is None else F.col("average")
    return grouped.select(
        F.col("auction").cast("bigint").alias("auction"),
        F.date_format("date", "yyyy-MM-dd").alias("day"),
        *("total_bids", "rank1_bids", "rank2_bids", "rank3_bids", "min_price", "max_price"),
        mean.cast("bigint").alias("avg_price"),
        "sum_price",
    )


def key_type(streams: Streams) -> DataFrame:
    """The same result, with the auction as a string in the state."""
    return statistics(streams, key="string")


def added_aggregate(streams: Streams) -> DataFrame:
    """The same result, with the mean as an aggregate of its own."""
    return statistics(streams, average=F.avg("price"))


def count_as_max(streams: Streams) -> DataFrame:
    return statistics(streams, total=F.max("bidder"))


def added_filter(streams: Streams) -> DataFrame:
    return statistics(streams, least=1000)


def other_order(streams: Streams) -> DataFrame:
    """The same result; the state has the maximum where it had the minimum."""
    return statistics(streams, extrema=("max_price", "min_price"))


def auctions_first(streams: Streams) -> DataFrame:
    """q20 with the sides of its join in the other order."""
    bids = streams.plain_bids.withColumnsRenamed({"dateTime": "bid_dateTime", "extra": "bid_extra"})
    auctions = streams.plain_auctions.where(F.col("category") == CATEGORY).withColumnsRenamed(
        {"dateTime": "auction_dateTime", "extra": "auction_extra"}
    )
    joined = auctions.drop("n").join(bids.drop("n"), F.col("auction") == F.col("id"))
    return joined.select(*QUERY.columns)


FORMULATIONS = {
    "q17": tuple(
        Formulation(build.__name__, build)
        for build in (key_type, added_aggregate, count_as_max, added_filter, other_order)
    ),
    "q20": (Formulation("auctions_first", auctions_first),),
}
