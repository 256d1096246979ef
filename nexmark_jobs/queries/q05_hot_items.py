"""q5 hot items: in each sliding window, the auctions with the most bids.

    SELECT A.auction, A.num
    FROM (
        SELECT auction, COUNT(*) AS num, window_start, window_end
        FROM HOP(bid, dateTime, slide 2 seconds, size 10 seconds)
        GROUP BY auction, window_start, window_end
    ) A
    JOIN (
        SELECT MAX(num) AS most, window_start, window_end
        FROM (the counts above)
        GROUP BY window_start, window_end
    ) B
    ON A.window_start = B.window_start AND A.window_end = B.window_end AND A.num >= B.most

Deviations:
- The window's bounds are part of the result: without them equal rows of several windows look like
  duplicates.
- The maximum and those who reach it come from one aggregation per window instead of a self join.
- `panes` counts each bid once, in a pane as long as the slide, and adds five panes up to a window;
  `windows`, the text's own way, counts each bid five times.
"""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from nexmark_jobs.queries.formulation import Query, Streams, ways

SIZE, SLIDE = "10 seconds", "2 seconds"


def panes(streams: Streams) -> DataFrame:
    """Count per pane, add the panes up per window, keep the maxima."""
    in_pane = streams.bids.groupBy(F.window("dateTime", SLIDE), "auction")
    counts = in_pane.agg(F.count(F.lit(1)).alias("num"))
    in_window = counts.groupBy(F.window(F.window_time("window"), SIZE, SLIDE), "auction")
    return _hottest(in_window.agg(F.sum("num").alias("num")))


def windows(streams: Streams) -> DataFrame:
    """Count per sliding window, keep the maxima."""
    in_window = streams.bids.groupBy(F.window("dateTime", SIZE, SLIDE), "auction")
    return _hottest(in_window.agg(F.count(F.lit(1)).alias("num")))


def _hottest(counts: DataFrame) -> DataFrame:
    """Keep, per window, the rows of `counts` (window, auction, num) with the greatest num."""
    per_window = counts.groupBy("window").agg(
        F.max("num").alias("most"), F.collect_list(F.struct("auction", "num")).alias("items")
    )

    def is_hottest(item: Column) -> Column:
        return item["num"] == F.col("most")

    items = per_window.select("window", F.explode(F.filter("items", is_hottest)).alias("item"))
    start, end = F.col("window.start"), F.col("window.end")
    bounds = start.alias("window_start"), end.alias("window_end")
    return items.select("item.auction", "item.num", *bounds)


QUERY = Query(
    "q5",
    ("auction", "num", "window_start", "window_end"),
    ways(panes, windows),
    needs_end_of_input=True,
)
