"""q13 bounded side input join: every bid enriched from a small fixed table.

    SELECT B.auction, B.bidder, B.price, B.dateTime, S.value
    FROM bid B
    JOIN side_input FOR SYSTEM_TIME AS OF B.p_time S ON MOD(B.auction, 10000) = S.key

side_input has the rows (i, i) for i = 0..9999, its value being text. Deviations:
- The side input never changes, so a join with a static table takes the place of the lookup by
  processing time; it is made up on the spot instead of being read from a file.
"""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from nexmark_jobs.queries.formulation import Query, Streams, ways

COLUMNS = ("auction", "bidder", "price", "dateTime", "value")
SIDE_INPUT_ROWS = 10_000


def broadcast_join(streams: Streams) -> DataFrame:
    """Join with the broadcast side input."""
    key, value = F.col("id").alias("key"), F.col("id").cast("string").alias("value")
    side_input = F.broadcast(streams.spark.range(SIDE_INPUT_ROWS).select(key, value))
    has_key = F.col("auction") % SIDE_INPUT_ROWS == F.col("key")
    return streams.plain_bids.join(side_input, has_key).select(*COLUMNS)


QUERY = Query("q13", COLUMNS, ways(broadcast_join))
