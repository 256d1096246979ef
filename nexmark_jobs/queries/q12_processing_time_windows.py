"""q12 processing time windows: how many bids of each bidder were processed in every ten seconds.

    SELECT bidder, COUNT(*) AS bid_count, window_start AS starttime, window_end AS endtime
    FROM TUMBLE(bid, PROCTIME(), size 10 seconds)
    GROUP BY bidder, window_start, window_end

The result depends on the speed of the run; only its sums are certain. Deviations:
- Spark's processing time stands still within a micro-batch, so all its bids fall into one window.
- Counts are updated with every batch (there is no watermark on processing time), where Flink emits
  a window once, when it ends.
"""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from nexmark_jobs.queries.formulation import Query, Streams, ways

SIZE = "10 seconds"


def current_timestamp(streams: Streams) -> DataFrame:
    """Count per bidder and window of the batch's own time."""
    in_window = streams.plain_bids.groupBy("bidder", F.window(F.current_timestamp(), SIZE))
    counts = in_window.agg(F.count(F.lit(1)).alias("bid_count"))
    start, end = F.col("window.start").alias("starttime"), F.col("window.end").alias("endtime")
    return counts.select("bidder", "bid_count", start, end)


QUERY = Query(
    "q12",
    ("bidder", "bid_count", "starttime", "endtime"),
    ways(current_timestamp),
    key=("bidder", "starttime"),
    deterministic=False,
)
