"""q7 highest bid: the highest bids of every ten seconds.

    SELECT B.auction, B.price, B.bidder, B.dateTime, B.extra
    FROM bid B
    JOIN (
        SELECT MAX(price) AS maxprice, window_end
        FROM TUMBLE(bid, dateTime, size 10 seconds)
        GROUP BY window_start, window_end
    ) W
    ON B.price = W.maxprice
       AND B.dateTime BETWEEN W.window_end - 10 seconds AND W.window_end

Deviations:
- The sink of the original names the second column bidder and the third price (PR nexmark#61); here
  the columns are what their names say.
- The upper bound is inclusive: a bid at the very end of a window also matches that window, though
  it does not count towards its maximum. Both formulations therefore put every bid into windows
  that are one millisecond (the resolution of event time) longer than their slide.
- `max_by_k` keeps the 1000 highest bids of every window instead of joining. More bids than that
  with the same highest price are an error, never a wrong result.
- `join` is the text's own way. Spark keeps the bids until the watermark passes their window; the
  original keeps them for ever.
"""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from nexmark_jobs.queries.formulation import Formulation, Query, Streams

COLUMNS = ("auction", "bidder", "price", "dateTime", "extra")
SIZE = "10 seconds"
_SIZE_WITH_END = "10001 milliseconds"
_KEPT = 1000


def max_by_k(streams: Streams) -> DataFrame:
    """Keep the highest bids of every window in one aggregation."""
    windowed = _windowed(streams)
    top = f"max_by(struct({', '.join(COLUMNS)}), price, {_KEPT}) FILTER (WHERE inside)"
    highest = windowed.groupBy("window").agg(
        F.max(F.when(F.col("inside"), F.col("price"))).alias("maxprice"),
        F.expr(top).alias("bids"),
        F.collect_list(F.when(~F.col("inside"), F.struct(*COLUMNS))).alias("at_end"),
    )

    def is_highest(bid: Column) -> Column:
        return bid["price"] == F.col("maxprice")

    error = F.lit(f"q7: {_KEPT} or more bids of a window tie; use --formulation join")
    of_type = f"array<{windowed.select(*COLUMNS).schema.simpleString()}>"
    inside = F.filter("bids", is_highest)
    many = F.size(inside) >= _KEPT
    checked = F.when(many, F.raise_error(error).cast(of_type)).otherwise(inside)
    ties = F.concat(checked, F.filter("at_end", is_highest))
    return highest.select(F.explode(ties).alias("bid")).select("bid.*")


def join(streams: Streams) -> DataFrame:
    """Join the bids with the maximum of their window."""
    tumbling = streams.bids.groupBy(F.window("dateTime", SIZE).alias("tumbling"))
    of = F.window(F.window_time("tumbling"), _SIZE_WITH_END, SIZE).alias("of")
    maxima = tumbling.agg(F.max("price").alias("maxprice")).select(of, "maxprice")
    # A join takes one event time per side: here the window's, so that the bid's own must be plain.
    plain_time = F.timestamp_micros(F.unix_micros("dateTime"))
    bids = _windowed(streams).withColumn("dateTime", plain_time)
    is_highest = (F.col("window") == F.col("of")) & (F.col("price") == F.col("maxprice"))
    return bids.join(maxima, is_highest).select(*COLUMNS)


def _windowed(streams: Streams) -> DataFrame:
    """Return bids with each of their windows, and whether they are inside or just at its end."""
    window = F.window("dateTime", _SIZE_WITH_END, SIZE).alias("window")
    windowed = streams.bids.select(window, *COLUMNS)
    end = F.col("window.start") + F.expr(f"INTERVAL {SIZE}")
    return windowed.withColumn("inside", F.col("dateTime") < end)


QUERY = Query(
    "q7",
    COLUMNS,
    (Formulation("max_by_k", max_by_k, min_spark=(4, 3)), Formulation("join", join)),
    needs_end_of_input=True,
)
