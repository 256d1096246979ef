"""long_window: bids and their value per slot of auctions, in windows of 1 h that slide by 1 minute.

SELECT auction % 100 AS slot, window_start, window_end, COUNT(*) AS bids, SUM(price) AS total
FROM HOP(bid, dateTime, slide 1 minute, size 1 hour)
GROUP BY auction % 100, window_start, window_end
"""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from nexmark_jobs.queries.formulation import Formulation, Query, Streams

SIZE, SLIDE = "1 hour", "1 minute"
SLOTS = 100


def windows(streams: Streams) -> DataFrame:
    """Spark's own way: each bid becomes sixty rows, one per window."""
    return _named(
        _slots(streams)
        .groupBy(F.window("dateTime", SIZE, SLIDE), "slot")
        .agg(F.count(F.lit(1)).alias("bids"), F.sum("price").alias("total"))
    )


def panes(streams: Streams) -> DataFrame:
    """Aggregate panes of a minute first; each pane, not each bid, becomes sixty rows."""
    per_pane = (
        _slots(streams)
        .groupBy(F.window("dateTime", SLIDE), "slot")
        .agg(F.count(F.lit(1)).alias("bids"), F.sum("price").alias("total"))
    )
    return _named(
        per_pane.groupBy(F.window(F.window_time("window"), SIZE, SLIDE), "slot").agg(
            F.sum("bids").alias("bids"), F.sum("total").alias("total")
        )
    )


def _slots(streams: Streams) -> DataFrame:
    slot: Column = F.col("auction") % SLOTS
    return streams.bids.select(slot.alias("slot"), "price", "dateTime")


def _named(counted: DataFrame) -> DataFrame:
    return counted.select(
        "slot",
        F.col("window.start").alias("window_start"),
        F.col("window.end").alias("window_end"),
        "bids",
        "total",
    )


QUERY = Query(
    "long_window",
    ("slot", "window_start", "window_end", "bids", "total"),
    (Formulation("windows", windows), Formulation("panes", panes)),
    needs_end_of_input=True,
)
